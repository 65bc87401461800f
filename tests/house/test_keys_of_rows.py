"""Every key of a driver's table, and of a capability's table, stands in its reference."""

import re
from dataclasses import fields

import pytest

from labharness.core.vocabulary import Seal
from labharness.instruments.driver import (
    Ascii,
    AsciiDriver,
    Channel,
    ChannelRow,
    Cools,
    Dark,
    Driver,
    Off,
    Several,
    TableDriver,
    Wants,
    While,
    Who,
)
from labharness.instruments.driver.messages import Call, Json, JsonDriver
from labharness.instruments.driver.modbus import ModbusDriver, ModbusRow, ReadBlock
from labharness.lab.config.kinds import capabilities
from labharness.work.capability import Settings
from rig import HERE

PAGE = HERE.parent / "docs" / "how-to" / "add-a-driver.md"
ROWS = (
    *(Channel, ChannelRow, Ascii, ModbusRow, Json, Several, Who, ReadBlock, Call, Seal),
    *(Wants, While, Off, Dark, Cools),
)
CLASSES = (Driver, TableDriver, AsciiDriver, ModbusDriver, JsonDriver)
LAB_FILE = HERE.parent / "docs" / "reference" / "lab-file.md"
DOCUMENTS = HERE.parent / "docs" / "reference" / "document-analysis.md"
PROSE = re.sub(r"```.*?```", "", PAGE.read_text("utf-8"), flags=re.DOTALL)
WORDS = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", PROSE))))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_the_reference_has_every_key_of_a_row(row: type) -> None:
    keys = {each.name for each in fields(row)}
    assert sorted(keys - WORDS) == []


@pytest.mark.parametrize("driver", CLASSES, ids=lambda driver: driver.__name__)
def test_the_reference_has_every_word_of_a_class(driver: type) -> None:
    stated = {name for name in vars(driver).get("__annotations__", {}) if not name.startswith("_")}
    assert sorted(stated - WORDS) == []


@pytest.mark.parametrize("name", capabilities())
def test_the_reference_has_every_key_of_the_table_of_a_capability(name: str) -> None:
    page = DOCUMENTS if name == "document-analysis" else LAB_FILE
    settings: type[Settings] = getattr(capabilities()[name], "settings", Settings)
    text = page.read_text("utf-8")
    assert f"[capability.{name}]" in text
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", text))))
    assert sorted(settings.model_fields.keys() - words) == []
