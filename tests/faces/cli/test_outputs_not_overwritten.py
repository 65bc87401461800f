"""What somebody keeps in the place of an output is never written over."""

from pathlib import Path

import pytest

from commands import say
from rig import EXAMPLE, SHORT_LINE


@pytest.mark.parametrize(
    "name", ["submit.json", "answer.json", "report.html", "artifacts/mine.csv"]
)
def test_a_run_writes_over_nothing_that_lies_in_its_folder(tmp_path: Path, name: str) -> None:
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine", "utf-8")
    said = say("run", EXAMPLE, "--lab", SHORT_LINE, "--out", tmp_path)
    said.is_one_plain_error(f"{tmp_path} holds {name.split('/')[0]} already", "a fresh folder")
    assert mine.read_text("utf-8") == "mine"
    assert [each.name for each in tmp_path.iterdir()] == [name.split("/")[0]]


def test_a_report_is_written_over_a_report_and_over_no_other_page(tmp_path: Path) -> None:
    lines = ("--lab", SHORT_LINE, "--out", tmp_path / "run")
    assert say("set", "argon.setpoint", "0", "sccm", "--attend", "--for", "1", *lines).code in (
        0,
        2,
    )
    page = tmp_path / "page.html"
    assert say("report", tmp_path / "run", "--out", page).code == 0
    assert say("report", tmp_path / "run", "--out", page, "--lang", "zh").code == 0
    for mine in ("<!doctype html>\n<p>mine", "<!DOCTYPE html><title>labharness</title>mine", ""):
        page.write_text(mine, "utf-8")
        said = say("report", tmp_path / "run", "--out", page)
        said.is_one_plain_error(f"{page} is in the way: it is not a report")
        assert page.read_text("utf-8") == mine
