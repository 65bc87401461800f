"""The corpus of instruments that will not do and of places that take no run: nothing is energised.

An instrument is found out while the line is read-only: the run is rejected with its name, its kind
and what it said, ``lab check --connect`` finds the same, and only reads have left.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import Said, example, payload, say, spawn, spawn_on_full_disk, submit, wrote
from labharness.faces.testing.faults import simulated_of
from labharness.journal import JournalFailed, SqliteJournal
from labharness.lab import Lab
from labharness.lab.config.lab_file import read_lab_file
from rig import EXAMPLE, SHORT_LINE

Spoil = Callable[[Lab, str], None]
LATE = 1.3  # of the longest wait for a reply: too late for its request
IN_PLACE = 2.5  # so late that it arrives as the reply to the next try
VERY_LATE = 3.5  # too late for the next try too


@pytest.fixture
def spoiled(wires: list[Lab]) -> Iterator[Callable[[Spoil, str], None]]:
    """Return a way to spoil an instrument of every lab that is opened, not of the nominal plant."""
    build = Lab.__init__  # it records the wires already
    with pytest.MonkeyPatch.context() as patch:

        def spoil(how: Spoil, name: str) -> None:
            def built(lab: Lab, *args: Any, **options: Any) -> None:
                build(lab, *args, **options)
                if not lab.nominal:
                    how(lab, name)

            patch.setattr(Lab, "__init__", built)

        yield spoil


def face(lab: Lab, name: str) -> Any:
    return simulated_of(lab).faces[name]


def told(change: Callable[[bytes], bytes | None]) -> Spoil:
    """Change every reply of one instrument."""

    def spoil(lab: Lab, name: str) -> None:
        receive = face(lab, name).receive

        def receive_changed(frame: bytes) -> bytes | None:
            reply = receive(frame)
            return None if reply is None else change(reply)

        face(lab, name).receive = receive_changed

    return spoil


def late(times: float) -> Spoil:
    """Delay every reply of one instrument, by its longest wait for an identity that many times."""

    def spoil(lab: Lab, name: str) -> None:
        one = face(lab, name)
        latency_s, receive = one.latency_s, one.receive
        wait_s = lab.line.instruments[name].driver.identify().request.timeout_s

        def receive_and_think(frame: bytes) -> bytes | None:
            one.latency_s = latency_s
            reply: bytes | None = receive(frame)
            one.latency_s += times * wait_s
            return reply

        one.receive = receive_and_think

    return spoil


def at_another_address(lab: Lab, name: str) -> None:
    one = face(lab, name)
    if hasattr(one, "_address"):
        one._address = "077"
    else:
        one.unit = "Z" if isinstance(one.unit, str) else one.unit + 90


ANY: dict[str, Spoil] = {
    "silent": told(lambda reply: None),
    "garbage": told(lambda reply: bytes((byte * 73 + 41) & 0xFF for byte in reply)),
    "cut short": told(lambda reply: reply[:-2]),
    "replying late": late(LATE),
    "replying in the next one's place": late(IN_PLACE),
    "replying very late": late(VERY_LATE),
}
KINDS = {row.name: row.kind for row in read_lab_file(SHORT_LINE)[0].instrument}
ADDRESSED = ("furnace", "sulfur", "argon", "nitrogen", "hydrogen", "box", "gauge", "h2_detector")
SAYS = re.compile(r"no reply within \d\.\d s|bad reply: .+")


def is_found_out(folder: Path, wires: list[Lab], words: str) -> str:
    """See it rejected, and found by a check, with only reads sent; return the message."""
    said = submit(folder, example())
    assert said.code == 2, said
    assert said.err == ""
    answer = said.answer["payload"]
    assert answer["reason_code"] == "resource_unavailable"
    assert "The line cannot be used: " in answer["reason_message"]
    assert words in answer["reason_message"]
    assert "lab check --connect" in answer["suggestion"]
    checked = say("lab", "check", "--connect", "--lab", SHORT_LINE)
    assert checked.code == 1
    assert checked.err == ""
    assert any(row.startswith("finding: ") and words in row for row in checked.out.splitlines())
    assert len(wires) == 2
    assert wrote(wires) == []
    assert any(lab.guard.core.log for lab in wires)
    message: str = answer["reason_message"]
    return message


@pytest.mark.parametrize(
    ("what", "name"),
    [  # daily each instrument in two ways, and each way at a third of them
        pytest.param(what, name, marks=[pytest.mark.thorough] * ((way + place) % 3 > 0))
        for way, what in enumerate(ANY)
        for place, name in enumerate(KINDS)
    ],
)
def test_an_instrument_that_does_not_answer_in_form_and_time_is_named_and_nothing_is_written(
    tmp_path: Path,
    wires: list[Lab],
    spoiled: Callable[[Spoil, str], None],
    what: str,
    name: str,
) -> None:
    spoiled(ANY[what], name)
    assert SAYS.search(is_found_out(tmp_path, wires, f"{name} ({KINDS[name]}): "))


@pytest.mark.parametrize("name", ADDRESSED)
def test_an_instrument_at_another_address_is_not_there(
    tmp_path: Path, wires: list[Lab], spoiled: Callable[[Spoil, str], None], name: str
) -> None:
    spoiled(at_another_address, name)
    is_found_out(tmp_path, wires, f"{name} (")


def named(old: bytes, new: bytes) -> Spoil:
    return told(lambda reply: reply.replace(old, new))


WRONG: dict[str, tuple[str, Spoil, str]] = {
    "a pressure controller": (
        "argon",
        named(b"MC-500SCCM-D", b"PC-30PSIA-D"),
        "argon (alicat_mc): model 'PC-30PSIA-D' is not an MC or MCS mass flow controller",
    ),
    "another full scale": (
        "nitrogen",
        named(b"MC-500SCCM-D", b"MC-5SLPM-D"),
        "has full scale 5000 sccm, the lab file says 500 sccm",
    ),
    "another gauge": (
        "gauge",
        named(b"910", b"925"),
        "gauge (mks_910): model '925' is not an MKS 910",
    ),
    "another library": (
        "spectrometer",
        named(b"Instrument Control Library", b"LabSpec"),
        "'LabSpec' is not the Instrument Control Library",
    ),
    "a controller without stage": (
        "stage",
        named(b"STAGE = ", b"STAGE = NONE\rWAS = "),
        "stage (prior_proscan): the controller has no stage fitted",
    ),
    "old firmware": (
        "argon",
        named(b"10v20.0-R24", b"4v29.0-R12"),
        "argon (alicat_mc): firmware '4v29.0-R12' is not 5v12 or newer",
    ),
    "firmware without number": (
        "argon",
        named(b"10v20.0-R24", b"GP07R100"),
        "argon (alicat_mc): firmware 'GP07R100' is not 5v12 or newer",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_another_model_or_old_firmware_is_named_and_nothing_is_written(
    tmp_path: Path, wires: list[Lab], spoiled: Callable[[Spoil, str], None], what: str
) -> None:
    name, how, words = WRONG[what]
    spoiled(how, name)
    is_found_out(tmp_path, wires, words)


@pytest.mark.parametrize("firmware", [b"5v12.0-R22", b"10v05.0-R2"])
def test_firmware_whose_frames_are_known_is_taken(
    wires: list[Lab], spoiled: Callable[[Spoil, str], None], firmware: bytes
) -> None:
    spoiled(named(b"10v20.0-R24", firmware), "argon")
    assert say("lab", "check", "--connect", "--lab", SHORT_LINE).code == 0


# ---- where a run may not go


def a_file(folder: Path) -> Path:
    (folder / "out").write_text("a file", "utf-8")
    return folder / "out"


def a_run(folder: Path) -> Path:
    (folder / "out").mkdir()
    (folder / "out" / "journal.sqlite").write_bytes(b"")
    return folder / "out"


def a_lost_link(folder: Path) -> Path:
    (folder / "out").symlink_to(folder / "gone")
    return folder / "out"


def read_only(folder: Path) -> Path:
    (folder / "shut").mkdir(mode=0o500)
    return folder / "shut" / "run"


PLACES: dict[str, Callable[[Path], Path]] = {
    "a file": a_file,
    "below a file": lambda folder: a_file(folder) / "run",
    "holds a run already": a_run,
    "a link that leads nowhere": a_lost_link,
    "a name too long": lambda folder: folder / ("x" * 300),
    "read-only": read_only,
    "where the system lets nobody write": lambda folder: Path("/proc/run"),
}


@pytest.mark.parametrize("what", PLACES)
def test_an_output_folder_that_cannot_take_a_run_exits_64_with_one_line(
    tmp_path: Path, wires: list[Lab], what: str
) -> None:
    if what == "read-only" and getattr(os, "geteuid", lambda: 0)() == 0:
        pytest.skip("root may write everywhere; /proc stands for it in this table")
    if what.startswith("where") and not Path("/proc/self").exists():
        pytest.skip("no /proc here")
    out = PLACES[what](tmp_path)
    said = say("run", EXAMPLE, "--lab", SHORT_LINE, "--out", out, "--json")
    said.is_one_plain_error(str(out))
    assert wires == []


def test_an_output_folder_that_is_missing_is_made_with_all_above_it(tmp_path: Path) -> None:
    out = tmp_path / "not" / "yet"
    assert submit(tmp_path, payload(" ", "intent"), "--out", out).code == 2
    assert (out / "answer.json").exists()


@pytest.mark.parametrize("command", [("report",), ("journal", "verify"), ("history", "--runs")])
def test_a_run_folder_that_is_missing_exits_64(tmp_path: Path, command: tuple[str, ...]) -> None:
    say(*command, tmp_path / "gone").is_one_plain_error(str(tmp_path / "gone"))


# ---- full disks


def run_on_full_disk(out: Path, size: int) -> Said:
    """Run the example while the disk fills up."""
    asked = (EXAMPLE, "--lab", SHORT_LINE, "--out", out, "--json")
    return spawn_on_full_disk(size, "run", *asked)


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are Unix's")
@pytest.mark.parametrize(
    ("size", "words"), [(0, "submit.json: "), (20_000, "the output folder cannot take a journal")]
)
def test_a_disk_too_full_to_begin_exits_64_with_one_line(
    tmp_path: Path, size: int, words: str
) -> None:
    said = run_on_full_disk(tmp_path / "run", size)
    said.is_one_plain_error(words, str(tmp_path / "run"))


@pytest.mark.promise(20)
@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are Unix's")
def test_a_disk_that_fills_up_ends_the_run_safe_with_exit_1_and_says_so(tmp_path: Path) -> None:
    said = run_on_full_disk(tmp_path / "run", 90_000)
    assert said.code == 1
    assert "Traceback" not in said.err
    assert said.answer["type"] == "task_failed"
    (event,) = said.answer["payload"]["execution_summary"]["risk_events"]
    assert event["code"] == "journal_lost"
    assert "cannot write" in event["text"]
    again = spawn("run", EXAMPLE, "--lab", SHORT_LINE, "--out", tmp_path / "again", "--json")
    assert again.code == 2
    assert "The line is latched" in again.answer["payload"]["reason_message"]


@pytest.mark.parametrize("records", [0, 5])
def test_a_disk_that_fills_up_before_anything_is_sent_exits_64_and_sends_nothing(
    tmp_path: Path, wires: list[Lab], monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    written = iter(range(records))

    def full(journal: SqliteJournal, *args: object, **options: object) -> int:
        if next(written, None) is None:
            raise JournalFailed(f"{journal.path}: cannot write: database or disk is full")
        return append(journal, *args, **options)  # type: ignore[arg-type]  # passed on as it came

    append = SqliteJournal.append
    monkeypatch.setattr(SqliteJournal, "append", full)
    said = say("run", EXAMPLE, "--lab", SHORT_LINE, "--out", tmp_path / "run", "--json")
    said.is_one_plain_error("disk is full", str(tmp_path / "run"))
    assert wrote(wires) == []
