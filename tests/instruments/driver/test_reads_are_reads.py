"""A driver's word that a frame reads is not enough: a poll that writes is refused with its lab.

The drivers here are somebody else's, with one thing wrong each; the plant says what became of it.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import ROOT, Said, edited_lab, spawn_with
from labharness.core.vocabulary import (
    Exactly,
    Protocol,
    Request,
    Transaction,
    same_frame,
    why_no_read,
)
from platforms import unix
from served import Served

GROUPS = ("drivers", "simulators", "envelopes")
CONTACTOR = 6  # coil of the furnace's mains contactor on the short line
COIL_ON = f"""
    def read(self, block):
        if block.function == 1:
            return self.write_coil({CONTACTOR}, True)
        return super().read(block)

    def known("""
TRUE_POLL = "\n    def known("


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An installed package of somebody else, without a kind yet."""
    home = tmp_path / "site"
    for drawer in GROUPS:
        package = home / f"their_{drawer}"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text('"""Theirs."""\n', "utf-8")
    about = home / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n", "utf-8")
    points = "".join(f"[labharness.{each}]\ntheirs = their_{each}\n" for each in GROUPS)
    (about / "entry_points.txt").write_text(points, "utf-8")
    return home


def their(site: Path, kind: str, old: str = "", new: str = "") -> str:
    """Add a kind: one that ships, with one text of its driver changed; return its name."""
    name = f"their_{kind}"
    for drawer, ending in zip(GROUPS, ("py", "py", "toml"), strict=True):
        source = ROOT / drawer / f"labharness_{drawer}" / f"{kind}.{ending}"
        shutil.copy(source, site / f"their_{drawer}" / f"{name}.{ending}")
    driver = site / "their_drivers" / f"{name}.py"
    text = driver.read_text("utf-8")
    assert old in text
    driver.write_text(text.replace(old, new, 1), "utf-8")
    return name


def check(site: Path, folder: Path, kind: str, theirs: str) -> Said:
    lab = edited_lab(folder, f'kind = "{kind}"', f'kind = "{theirs}"')
    return spawn_with(site, "lab", "check", "--lab", lab)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path / "served") as there:
        yield there


def with_kind(served: Served, kind: str, theirs: str) -> Path:
    """The served line's lab file, with one kind of somebody else's in it."""
    text = served.lab_file.read_text("utf-8")
    assert f'kind = "{kind}"' in text
    lab = served.lab_file.with_name("theirs.toml")
    lab.write_text(text.replace(f'kind = "{kind}"', f'kind = "{theirs}"', 1), "utf-8")
    return lab


def energised(served: Served) -> bool:
    """Whether any frame has closed the contactor: its coil as the board itself says it."""
    with served.serial("relays") as port:
        port.write(bytes.fromhex("01 01 0000 0008 3dcc"))
        reply = port.read(6)
    assert len(reply) == 6
    return bool(reply[3] >> CONTACTOR & 1)


@pytest.mark.promise(4)
@pytest.mark.thorough
@unix
@pytest.mark.parametrize("declares", ["Modbus", pytest.param("text", marks=pytest.mark.soak)])
def test_a_poll_that_is_a_coil_write_never_reaches_the_contactor(
    site: Path, served: Served, declares: str
) -> None:
    kind = their(site, "waveshare_relay", TRUE_POLL, COIL_ON)
    if declares == "text":  # it may say of itself what it likes: the frame is asked
        driver = site / "their_drivers" / f"{kind}.py"
        says = "    write_grammar = (rb'.\\x05.*',)\n    protocol = 'text'\n    def __init__("
        driver.write_text(driver.read_text("utf-8").replace("    def __init__(", says, 1), "utf-8")
    lab = with_kind(served, "waveshare_relay", kind)
    asked = (
        ("read", "box.furnace_contactor", "--lab", lab),
        ("watch", "--for", "1", "--lab", lab),
        ("lab", "check", "--lab", lab),
        ("lab", "check", "--connect", "--lab", lab),
        ("arm", lab),
        ("set", "argon.setpoint", "50", "sccm", "--attend", "--lab", lab),
    )
    answers = [spawn_with(site, *each) for each in asked]
    assert not energised(served), "the plant's contactor comes first"
    for said in answers:
        said.is_one_plain_error(
            "instrument 'box' (their_waveshare_relay), scan 'relays': 01 05 00 06 ff 00 6c 3b is "
            "not a read: it would do Modbus function 5 (write single coil) to unit 1, address 6, "
            "FF00h"
        )
        assert "sets box.furnace_contactor to 1" in said.err
    heard = [data for _, _, _, data in served.log("relays")]
    writes = [data for data in heard if len(data) >= 8 and data[1] not in (1, 2, 3, 4)]
    assert writes == []


@pytest.mark.thorough
@unix
def test_the_same_package_without_the_error_reads_the_contactor(site: Path, served: Served) -> None:
    lab = with_kind(served, "waveshare_relay", their(site, "waveshare_relay"))
    said = spawn_with(site, "read", "box.furnace_contactor", "--lab", lab)
    assert (said.code, said.out.split()[:2]) == (0, ["box.furnace_contactor", "0"]), said


@pytest.mark.promise(4)
@pytest.mark.parametrize(
    ("kind", "old", "new", "words"),
    [
        pytest.param(  # a setpoint instead of a poll
            "alicat_mc",
            '"", 5 * _NUMBER',
            '"S 50.00", 5 * _NUMBER',
            "(their_alicat_mc), scan 'frame': 'AS 50.00\\r' is not a read: argon takes a frame",
            id="setpoint",
        ),
        pytest.param(  # a tare, which this driver never writes: the grammar is the instrument's
            "alicat_mc",
            '"", 5 * _NUMBER',
            '"V", 5 * _NUMBER',
            "'AV\\r' is not a read",
            id="tare",
        ),
        pytest.param(
            "cobolt_laser",
            '"l?",',
            '"l1",',
            "instrument 'laser' (their_cobolt_laser), scan 'emission': 'l1\\r' is not a read: "
            "laser takes a frame like it as a command, by its grammar of what writes; it is a "
            "frame that sets laser.emission to 1",
            id="laser-on",
        ),
        pytest.param(
            "prior_proscan",
            '"$",',
            '"GR,100,0",',
            "'GR,100,0\\r' is not a read",
            id="move",
        ),
        pytest.param(
            "mks_910",
            '"U?",',
            '"U!TORR",',
            "'@253U!TORR;FF' is not a read",
            id="unit",
        ),
        pytest.param(
            "horiba_icl",
            '"ccd_getChipTemperature"',
            '"ccd_setAcquisitionStart"',
            "scan 'chip_temperature'",
            id="exposure",
        ),
        pytest.param(
            "honeywell_midas",
            "    def known(",
            "    def read(self, block):\n        return self.write_register(20, 1)\n    def known(",
            "Modbus function 6 (write single register) to unit 1, address 20, 0001h",
            id="register",
        ),
        pytest.param(  # its own writes are not in its grammar: then the grammar shows nothing
            "cobolt_laser",
            'rb"[^\\r]*[^?\\r]\\r"',
            'rb"@cobasp .*"',
            "which sets laser.emission to 0, is not in its write_grammar",
            id="uncovered",
        ),
        pytest.param(
            "cobolt_laser",
            'rb"[^\\r]*[^?\\r]\\r"',
            'rb"(@cobasp"',
            "is not a regular expression over bytes",
            id="no-regex",
        ),
    ],
)
def test_a_read_that_may_write_is_refused_when_the_lab_is_read(
    site: Path, tmp_path: Path, kind: str, old: str, new: str, words: str
) -> None:
    said = check(site, tmp_path, kind, their(site, kind, old, new))
    said.is_one_plain_error(words)


AS_ANOTHER = (  # whichever unit it is, it polls by a setpoint of unit A
    "    def its_gas(",
    """    def line(self, line, timeout_s=None, obeyed=b""):
        asked = super().line(line, timeout_s, obeyed)
        return asked if line else type(asked)(b"AS 9.00\\r", asked.reply, 0.3)

    def its_gas(""",
)


@pytest.mark.promise(4)
def test_a_read_is_held_against_the_grammars_of_all_on_its_port(site: Path, tmp_path: Path) -> None:
    theirs = their(site, "alicat_mc", *AS_ANOTHER)
    named = 'name = "nitrogen"\nkind = '
    lab = edited_lab(tmp_path, f'{named}"alicat_mc"', f'{named}"{theirs}"')
    said = spawn_with(site, "lab", "check", "--lab", lab)
    said.is_one_plain_error("'nitrogen' (their_alicat_mc), scan 'frame'", "argon takes a frame")


NO_GRAMMAR = ("    write_grammar = (rb", "    not_stated = (rb")


@pytest.mark.promise(4)
@pytest.mark.thorough
@unix
def test_a_text_driver_that_states_no_grammar_of_writes_stays_off_real_links(
    site: Path, tmp_path: Path, served: Served
) -> None:
    theirs = their(site, "cobolt_laser", *NO_GRAMMAR)
    said = check(site, tmp_path, "cobolt_laser", theirs)
    assert (said.code, said.out.splitlines()[-1]) == (1, "1 finding"), said
    assert "finding: approvals: " in said.out, "none is beside a lab of a test's own"
    lab = with_kind(served, "cobolt_laser", theirs)
    spawn_with(site, "lab", "check", "--lab", lab).is_one_plain_error(
        "instrument 'laser' (their_cobolt_laser) sets emission, power", "state write_grammar"
    )


@pytest.mark.promise(4)
def test_without_a_grammar_no_read_is_a_frame_that_its_driver_writes(
    site: Path, tmp_path: Path
) -> None:
    theirs = their(site, "cobolt_laser", *NO_GRAMMAR)
    driver = site / "their_drivers" / f"{theirs}.py"
    driver.write_text(driver.read_text("utf-8").replace('"l?",', '"l1",'), "utf-8")
    said = check(site, tmp_path, "cobolt_laser", theirs)
    said.is_one_plain_error("'l1\\r' is not a read: it is a frame that sets laser.emission to 1")


REPLY = Exactly(12)
WRITE = bytes.fromhex("0000 0000 0006 01 06 0802 0001")
READ = bytes.fromhex("0000 0000 0006 01 03 0802 0001")


@pytest.mark.promise(4)
def test_frames_that_differ_in_the_blank_field_alone_are_the_same() -> None:
    blank = Transaction(0, 2)
    filled = Request(b"\x12\x34" + WRITE[2:], REPLY, 0.3)
    assert same_frame(Request(WRITE, REPLY, 0.3, transaction=blank), filled)
    assert same_frame(filled, Request(WRITE, REPLY, 0.3, transaction=blank))
    assert not same_frame(Request(WRITE, REPLY, 0.3), filled)
    assert not same_frame(Request(READ, REPLY, 0.3, transaction=blank), filled)
    assert not same_frame(Request(WRITE[:-1], REPLY, 0.3, transaction=blank), filled)


@pytest.mark.parametrize(
    ("frame", "blank", "protocol", "why"),
    [
        (READ, Transaction(0, 2), Protocol.MODBUS_TCP, ""),
        (READ, None, Protocol.MODBUS_TCP, ""),
        (READ, Transaction(7, 1), Protocol.MODBUS_TCP, "transaction field is not where"),
        (READ, None, Protocol.MODBUS_RTU, "a frame of modbus_tcp and not of modbus_rtu"),
        (READ + READ, None, Protocol.MODBUS_TCP, "is not a whole frame of modbus_tcp"),
        (WRITE, Transaction(0, 2), Protocol.MODBUS_TCP, "function 6"),
        (WRITE, None, Protocol.TEXT, "function 6"),
        (bytes.fromhex("01 03 0001 0005 d409"), None, Protocol.MODBUS_RTU, ""),
        (bytes.fromhex("01 03 0001 0005 d408"), None, Protocol.MODBUS_RTU, "is not a whole frame"),
        (bytes.fromhex("01 2b 0e01 00 7077"), None, Protocol.MODBUS_RTU, "function 43 (unknown)"),
        (b"A\r", None, Protocol.TEXT, ""),
        (b"A\r", None, Protocol.MODBUS_TCP, "is not a whole frame of modbus_tcp"),
    ],
)
def test_what_a_frame_says_of_itself(
    frame: bytes, blank: Transaction | None, protocol: Protocol, why: str
) -> None:
    found = why_no_read(Request(frame, REPLY, 0.3, transaction=blank), protocol)
    assert (why in found) if why else found == "", found
