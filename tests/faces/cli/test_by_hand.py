"""A line taken by the hand: behind the same gate, and left safe."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from commands import say, spawn_on_full_disk, spawn_where_full, spawn_without_privilege, wrote
from labharness.core.vocabulary.texts import Text
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan, read_lab
from labharness.lab.config.channels import needed_first
from labharness.lab.operate.attend import Attendance
from labharness.line import Line
from labharness.safety.kernel import Bound
from platforms import takes_open_files_away
from rig import ON_SHORT, SHORT_LINE

FAST = ("--attend", "--speed", "fast", "--for", "20", "--name", "Ada")
LONG = ("--attend", "--speed", "fast", "--for", "200", "--name", "Ada")


def kinds(folder: Path) -> list[str]:
    return [each.kind for each in read(folder / "journal.sqlite")]


def test_a_flow_set_by_hand_is_confirmed_journaled_and_left_safe(
    tmp_path: Path, wires: list[Lab]
) -> None:
    said = say("set", "argon.setpoint", 100, "sccm", *ON_SHORT, *FAST, "--out", tmp_path)
    assert said.code == 0, said.err
    assert said.out.startswith("argon.setpoint confirmed, reads 100\n")
    assert "in its safe state, verified" in said.out
    records = list(read(tmp_path / "journal.sqlite"))
    hand = next(each for each in records if each.kind == "by_hand")
    intent = next(
        each
        for each in records
        if each.kind == "intent" and each.body["channel"] == "argon.setpoint"
    )
    assert "Ada" in hand.body["text"]
    assert hand.seq < intent.seq
    made = [each.seq for each in records if each.kind == "make_safe"]
    assert made[0] < intent.seq < made[-1], "safe before, and safe after"


@pytest.mark.promise(20)
@takes_open_files_away
def test_a_folder_that_is_taken_away_meanwhile_trips_and_is_not_said_to_hold_a_journal(
    short_plan: LabPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stay = Attendance._stay

    async def without_a_folder(self: Attendance, line: Line) -> None:
        shutil.rmtree(tmp_path / "run")
        await stay(self, line)

    monkeypatch.setattr(Attendance, "_stay", without_a_folder)
    said = say("set", "argon.setpoint", 100, "sccm", *ON_SHORT, *LONG, "--out", tmp_path / "run")
    assert said.code == 1
    assert "journal.sqlite: cannot write: it was removed or replaced" in said.out
    assert "LATCHED" in said.out
    assert said.out.endswith(f"no journal is kept: {tmp_path / 'run'} holds none\n")


@pytest.mark.parametrize(
    ("channel", "value", "unit", "words"),
    [
        ("argon.setpoint", "600", "sccm", "allowed 0 to 490 sccm"),
        ("argon.setpoint", "nan", "sccm", "allowed 0 to 490 sccm"),
        ("argon.setpoint", "inf", "sccm", "allowed 0 to 490 sccm"),
        ("argon.setpoint", "-inf", "sccm", "allowed 0 to 490 sccm"),
        ("argon.setpoint", "-1e5", "sccm", "asked -100000 sccm, allowed 0 to 490 sccm"),
        ("argon.setpoint", "+6.e2", "sccm", "asked 600 sccm, allowed 0 to 490 sccm"),
        ("argon.setpoint", "-.5", "sccm", "asked -0.5 sccm, allowed 0 to 490 sccm"),
        ("argon.setpoint", "NaN", "sccm", "allowed 0 to 490 sccm"),
        ("furnace.setpoint", "5000", "degC", "allowed"),
        ("box.hydrogen_valve", "1", "", "takes"),
    ],
)
def test_what_the_envelope_does_not_allow_is_refused_by_hand_too(
    tmp_path: Path, wires: list[Lab], channel: str, value: str, unit: str, words: str
) -> None:
    said = say("set", channel, value, unit, *ON_SHORT, *FAST, "--out", tmp_path)
    assert said.code == 2, said
    assert f"{channel} refused" in said.out
    assert words in said.out
    permits = [each for each in wrote(wires) if each == "permit"]
    prepared = sum(len(each.prepare) for each in wires[0].plan.instruments)
    assert len(permits) <= prepared + 5, "only the connect-time settings were written"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("argon", "100", "sccm"), "argon: name a channel: argon.setpoint"),
        (("argn.setpoint", "1", "sccm"), "no instrument 'argn' (did you mean argon?); there are"),
        (("argon.setpont", "1", "sccm"), "no channel 'setpont' (did you mean setpoint?); it has"),
        (("argon.flow", "1", "sccm"), "is read only; to set the flow: argon.setpoint"),
        (("gauge.pressure", "1", "Torr"), "gauge has nothing that may be set"),
        (("argon.setpoint", "100"), "no unit: write 100 sccm"),
        (("argon.setpoint", "100", "slm"), "argon.setpoint is in sccm, not in 'slm'"),
        (("box.vent", "1", "V"), "box.vent has no unit, not in 'V'"),
        (("argon.setpoint", "100sccm"), "put a blank before the unit: 100 sccm"),
        (("argon.setpoint", "10_0", "sccm"), "'10_0' is not a number: write it as 100, 0.5, 1e-3"),
        (("argon.setpoint", "\u0661\u0660", "sccm"), "is not a number: write it as 100, 0.5, 1e-3"),
        (("argon.setpoint", " 10", "sccm"), "' 10' is not a number"),
        (("argon.setpoint", "infinity", "sccm"), "'infinity' is not a number"),
        (("argon.setpoint", "10", "sccm", "--for", "1_0"), "'1_0' is not a duration above 0"),
        (("argon.setpoint", "10", "sccm", "--speed", "\u0661"), "is not fast, real, or a number"),
        (
            ("argon.setpoint", "--", "-5", "sccm", "--attend"),
            "'--attend' stands behind --, where nothing is an option; write it before",
        ),
    ],
)
def test_a_wrong_name_or_unit_is_told_before_anything_is_opened(
    tmp_path: Path, wires: list[Lab], arguments: tuple[str, ...], words: str
) -> None:
    out = tmp_path / "out"
    say("set", *arguments, *ON_SHORT, *FAST, "--out", out).is_one_plain_error(words)
    assert wires == []
    assert not out.exists()


def test_an_instrument_alone_cannot_be_read_and_its_channels_are_named(wires: list[Lab]) -> None:
    said = say("read", "argon", *ON_SHORT)
    assert said.code == 1
    assert "argon: name one of argon." in said.err
    assert "argon.flow, argon.setpoint" in said.err
    assert wires == []


def lacks(condition: Bound) -> Text:
    """Return a refusal as the kernel writes it."""
    why = Text("lacks.found", says=Text("lacks.takes"), condition=str(condition), found="")
    return Text("interlock.missing", channel="furnace.setpoint", value=200.0, lacks=why)


def test_a_refusal_names_the_setting_that_comes_first(tmp_path: Path) -> None:
    """Derived from the interlock's condition, in the unit of its limit."""
    plan = read_lab(SHORT_LINE)
    refusal = lacks(Bound("furnace.setpoint_rate", low=0.1))
    first = needed_first(plan, "furnace.setpoint", refusal)
    command = f"labharness set furnace.setpoint_rate 0.1 degC/min --lab {quote(str(SHORT_LINE))}"
    assert first == f"first (0.1 to 60 degC/min): {command}"
    other = lacks(Bound("furnace.sensor_break", high=0.5))
    assert needed_first(plan, "furnace.setpoint", other) == "", "nobody sets a sensor"


def test_what_is_set_by_hand_is_wished_before_and_told_after(tmp_path: Path) -> None:
    said = say("set", "argon.setpoint", 600, "sccm", *ON_SHORT, *FAST, "--out", tmp_path)
    told = said.err.splitlines()[0]
    assert told.startswith("by hand (Ada): argon.setpoint = 600 sccm REFUSED: argon.setpoint: ")
    records = list(read(tmp_path / "journal.sqlite"))
    wish = next(each for each in records if each.kind == "by_hand")
    assert wish.body["text"] == "set argon.setpoint = 600 sccm by hand (Ada)"


def test_without_an_owner_a_value_is_not_set_and_nothing_is_opened(wires: list[Lab]) -> None:
    said = say("set", "argon.setpoint", 100, "sccm", *ON_SHORT)
    assert said.code == 64
    assert "--attend" in said.err
    assert wires == []


def test_reading_without_an_owner_writes_nothing(wires: list[Lab]) -> None:
    said = say("read", "gauge.pressure", "argon.flow", *ON_SHORT)
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines()] == ["gauge.pressure", "argon.flow"]
    assert wrote(wires) == []


def test_an_unknown_channel_is_one_plain_error_that_names_those_there_are() -> None:
    said = say("read", "gauge.colour", "argon.flow", "--json", *ON_SHORT)
    assert said.code == 1
    assert "it has pressure" in said.err
    found = json.loads(said.out)
    assert [each["ok"] for each in found] == [False, True]


def test_making_safe_needs_no_owner_and_no_arming(wires: list[Lab]) -> None:
    said = say("safe", "--name", "Ada", *ON_SHORT)
    assert said.code == 0, said
    assert said.out == (
        "immediate_shutdown: every step verified\n(nothing was running, so nothing is latched)\n"
    )
    assert set(wrote(wires)) == {"procedure"}


def test_making_safe_goes_on_where_a_port_is_dead_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build = Lab.__init__

    def cut(lab: Lab, *args: Any, **options: Any) -> None:
        build(lab, *args, **options)
        if lab.simulated is not None:
            lab.simulated.buses["heat"].faults.cut = True

    monkeypatch.setattr(Lab, "__init__", cut)
    said = say("safe", *ON_SHORT)
    assert said.code == 1
    assert "NOT verified" in said.out
    assert "furnace.setpoint" in said.out
    assert "box.furnace_contactor" not in said.out, "the other port's steps are verified"


def test_making_safe_waits_for_no_disk_and_for_no_link(
    monkeypatch: pytest.MonkeyPatch, wires: list[Lab], short_plan: LabPlan
) -> None:
    build = Lab.__init__

    def slow(lab: Lab, *args: Any, **options: Any) -> None:
        build(lab, *args, **options)

        async def never() -> None:
            await asyncio.sleep(3600)

        lab.links["stage"].open = never  # type: ignore[method-assign]  # a link that hangs

    monkeypatch.setattr(Lab, "__init__", slow)
    monkeypatch.setenv("TMPDIR", "/nonexistent")
    said = say("safe", "--name", "Ada", "--reason", "smoke", *ON_SHORT)
    assert "port stage: not open within 2 s" in said.out
    assert "nothing was running" not in said.out, "another process may have that port"
    assert "box." not in said.out, "everything else is verified"
    kept = json.loads((short_plan.state_dir / "safes.jsonl").read_text("utf-8"))
    assert (kept["name"], kept["reason"]) == ("Ada", "smoke")


@pytest.mark.parametrize("word", ["hold", "resume", "stop"])
def test_holding_what_nobody_drives_is_one_plain_error(word: str) -> None:
    said = say(word, *ON_SHORT)
    assert said.code == 1
    assert said.err.count("\n") == 1
    assert "nothing runs on lab short-line (a run at --speed fast" in said.err


def test_a_line_whose_owner_listens_to_nobody_is_not_said_to_be_idle(short_plan: LabPlan) -> None:
    short_plan.state_dir.mkdir(parents=True)
    with short_plan.lock(Path("runs/mine")):
        said = say("stop", *ON_SHORT)
    assert said.code == 1
    assert said.err.count("\n") == 1
    assert f"process {os.getpid()} drives lab short-line and writes " in said.err
    assert "listens to no other terminal" in said.err


def test_a_set_without_an_end_in_virtual_time_is_refused() -> None:
    said = say("set", "argon.setpoint", 1, "sccm", "--attend", "--speed", "fast", *ON_SHORT)
    assert said.code == 64
    assert "--for" in said.err


def test_a_folder_that_holds_a_run_is_not_written_into(tmp_path: Path, wires: list[Lab]) -> None:
    journal = tmp_path / "journal.sqlite"
    journal.write_bytes(b"of another run")
    said = say("set", "argon.setpoint", 1, "sccm", *ON_SHORT, *FAST, "--out", tmp_path)
    said.is_one_plain_error(f"{tmp_path} holds a run already; name a fresh folder")
    assert journal.read_bytes() == b"of another run"
    assert wires == []


@pytest.mark.skipif(sys.platform != "linux", reason="root gives up its privilege as on Linux")
@pytest.mark.parametrize("words", [("stop",), ("set", "argon.setpoint", "1", "sccm")])
def test_a_line_of_another_account_is_not_said_to_be_driven_by_nobody(
    words: tuple[str, ...], short_plan: LabPlan
) -> None:
    short_plan.state_dir.mkdir(parents=True)
    short_plan.state_dir.chmod(0)
    try:
        said = spawn_without_privilege(*words, *ON_SHORT)
    finally:
        short_plan.state_dir.chmod(0o700)
    said.is_one_plain_error(f"{short_plan.state_dir / 'control.sock'}: Permission denied")


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are Unix's")
def test_a_trip_of_a_line_that_a_person_drives_is_an_alarm_as_any_other(tmp_path: Path) -> None:
    asked = ("argon.setpoint", 100, "sccm", *ON_SHORT, *FAST[:-4], "--for", 9999)
    said = spawn_on_full_disk(100_000, "set", *asked, "--out", tmp_path / "run")
    assert said.code == 1
    assert "argon.setpoint confirmed" in said.out, "it filled up later"
    assert "SQLITE_IOERR_WRITE); the line is in its safe state, verified" in said.out
    listed = say("alarms", "list", *ON_SHORT)
    assert "trip     journal_lost/" in listed.out
    assert "latched" in listed.out
    slip = say("alarms", "ack", "journal_los/journal", "--name", "A", "--reason", "B", *ON_SHORT)
    assert slip.code == 1
    assert "no alarm 'journal_los/journal' (did you mean journal_lost/" in slip.err


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are Unix's")
def test_a_disk_that_fills_up_while_arming_leaves_no_doubt_about_the_line(tmp_path: Path) -> None:
    journal = tmp_path / "run" / "journal.sqlite"
    asked = ("argon.setpoint", "100", "sccm", *ON_SHORT, *FAST, "--out", journal.parent)
    said = spawn_where_full(journal, "set", *asked)
    assert said.code == 1
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "cannot be written" in said.err
    assert "it is latched; when the cause is gone: labharness reset --name NAME" in said.err
    assert say("reset", "--name", "Ada", "--reason", "made room", *ON_SHORT).out.startswith(
        "reset by"
    )


@pytest.mark.promise(12)
@pytest.mark.thorough
def test_a_hold_by_hand_that_nobody_ends_is_over_after_an_hour_and_leaves_the_line_safe(
    tmp_path: Path, wires: list[Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    stay, told = Attendance._stay, []

    async def held(self: Attendance, line: Line) -> None:
        told.append(await self.hold("to think"))
        await stay(self, line)

    monkeypatch.setattr(Attendance, "_stay", held)
    long = ("--attend", "--speed", "fast", "--for", "20000", "--name", "Ada")
    said = say("set", "argon.setpoint", 100, "sccm", *ON_SHORT, *long, "--out", tmp_path)
    assert told == ["held; unless it is resumed within 60 min, it ends and the line is made safe"]
    ended = "the line was held for 3600 s, the longest allowed"
    assert f"{ended}: the line is made safe" in said.err + said.out
    assert "in its safe state, verified" in said.out
    records = list(read(tmp_path / "journal.sqlite"))
    (over,) = [each for each in records if each.kind == "warning"]
    begun = next(
        each.at_s
        for each in reversed(records)
        if each.kind == "mode" and each.body["mode"] == "held" and each.at_s < over.at_s
    )
    assert over.body["detail"] == ended
    assert 3600 < over.at_s - begun < 3602
    assert any(each.kind == "make_safe" and each.seq > over.seq for each in records)
