"""The latch on disk: it survives, it keeps the first cause, and in doubt it holds."""

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from errno import ENOSPC
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labharness.core.vocabulary import Cause, Trip
from labharness.safety.guard import Latch, LatchUnreadable
from labharness.safety.guard.remote_parts import SeenLatch

LEAK = Trip(
    Cause.GAS_LEAK, "close_all_valves_and_alert", "h2.concentration", 1200.0, 12.5, "1200 ppm"
)
SILENCE = Trip(Cause.COMMUNICATION, "immediate_shutdown", "furnace.temperature", None, 13.0, "")


@given(
    cause=st.sampled_from(Cause),
    value=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    detail=st.text(max_size=40),
)
@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_latch_survives_being_opened_again(
    tmp_path: Path, cause: Cause, value: float | None, detail: str
) -> None:
    path = tmp_path / "latch.json"
    trip = replace(LEAK, cause=cause, value=value, detail=detail)
    Latch(path).close(trip)
    again = Latch(path)
    assert again.trip == trip
    again.open()
    assert Latch(path).trip is None


def test_where_there_is_no_file_nothing_is_latched(tmp_path: Path) -> None:
    assert Latch(tmp_path / "latch.json").trip is None


def test_the_first_trip_stays(tmp_path: Path) -> None:
    path = tmp_path / "latch.json"
    latch = Latch(path)
    latch.close(LEAK)
    latch.close(replace(SILENCE, procedure=LEAK.procedure))
    assert latch.trip == LEAK
    assert Latch(path).trip == LEAK


def test_of_a_trip_that_follows_the_procedure_alone_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "latch.json"
    left = replace(LEAK, procedure=SILENCE.procedure)
    latch = Latch(path)
    latch.close(LEAK)
    latch.close(SILENCE)
    assert latch.trip == Latch(path).trip == left
    after_restart = Latch(path)
    after_restart.close(LEAK)
    assert Latch(path).trip == LEAK, "it ran last"


@pytest.mark.promise(15)
def test_beside_the_first_cause_stands_what_made_safe_at_last(tmp_path: Path) -> None:
    path = tmp_path / "latch.json"
    latch = Latch(path)
    latch.close(SILENCE)
    latch.close(replace(LEAK, cause=Cause.OVER_PRESSURE, procedure="relieve_pressure"))
    assert latch.trip == Latch(path).trip == replace(SILENCE, procedure="relieve_pressure")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{}",
        b'{"cause": "no such cause"}',
        b'{"cause": "gas_leak_detected"}',
        b'{"cause": "gas_leak_detected", "procedure": "p", "channel": "c", "value": 1.0, '
        b'"at_s": 1.0, "detail": "", "more": 1}',
        b'{"cause": "gas_leak_detected", "procedure": ["p"], "channel": "c", "value": 1.0, '
        b'"at_s": 1.0, "detail": ""}',
        b'{"cause": "gas_leak_detected", "procedure": "p", "channel": ["c"], "value": 1.0, '
        b'"at_s": 1.0, "detail": ""}',
        b'{"cause": ["gas_leak_detected"], "procedure": "p", "channel": "c", "value": 1.0, '
        b'"at_s": 1.0, "detail": ""}',
        b"[" * 100_000,
    ],
)
def test_a_latch_that_cannot_be_read_is_an_error_and_never_an_open_latch(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "latch.json"
    path.write_bytes(content)
    with pytest.raises(LatchUnreadable, match=r"stays latched until .* removed the file by hand"):
        Latch(path)
    assert Latch.or_shut(path).trip is not None


def test_a_folder_in_the_latchs_place_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "latch.json"
    path.mkdir()
    with pytest.raises(LatchUnreadable):
        Latch(path)


def test_a_probe_of_the_harness_leaves_a_latch_alone_that_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "latch.json"
    replace_really = Path.replace
    begun: list[Path] = []

    def renamed(fresh: Path, target: Path) -> Path:
        begun.append(fresh)
        return replace_really(fresh, target)

    monkeypatch.setattr(Path, "replace", renamed)
    latch = Latch(path)
    latch.close(LEAK)
    SeenLatch(path).probe()
    assert len({*begun}) == 2, "each writes where no other does"
    assert [file.name for file in tmp_path.iterdir()] == ["latch.json"]


@pytest.mark.parametrize("cut", [0, 1, 20, 10_000])
def test_a_crash_between_writing_and_renaming_leaves_what_was_there_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    path = tmp_path / "latch.json"

    def power_cut(fresh: Path, target: Path) -> None:
        fresh.write_bytes(fresh.read_bytes()[:cut])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", power_cut)
        with pytest.raises(KeyboardInterrupt):
            Latch(path).close(LEAK)
    after = Latch(path)
    assert after.trip is None
    after.close(SILENCE)
    assert Latch(path).trip == SILENCE


def test_the_file_is_on_disk_before_it_gets_its_name_and_the_name_before_close_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, rename = os.fsync, Path.replace

    def record_sync(handle: int) -> None:
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        done.append("sync folder" if folder else "sync file")
        sync(handle)

    def record_rename(fresh: Path, target: Path) -> Path:
        done.append("rename")
        return rename(fresh, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(Path, "replace", record_rename)
    Latch(tmp_path / "latch.json").close(LEAK)
    assert done == ["sync file", "rename", "sync folder"]


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_disk_that_fails_is_remembered_and_the_latch_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    calls = 0

    def failing(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise OSError(ENOSPC, os.strerror(ENOSPC))

    monkeypatch.setattr(os, "fsync", failing)
    latch = Latch(tmp_path / "latch.json")
    latch.close(LEAK)
    assert latch.trip == LEAK
    assert "No space left" in latch.write_error


@pytest.mark.parametrize("broken", [lambda path: path.rmdir(), lambda path: path.chmod(0)])
def test_a_folder_that_is_gone_does_not_stop_a_trip(
    tmp_path: Path, broken: Callable[[Path], None]
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    latch = Latch(folder / "latch.json")
    broken(folder)
    latch.close(LEAK)
    assert latch.trip == LEAK
    folder.chmod(0o700) if folder.exists() else None
    assert bool(latch.write_error) != (folder / "latch.json").exists()


def test_a_latch_that_cannot_be_taken_away_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "read-only file system", str(path))

    path = tmp_path / "latch.json"
    latch = Latch(path)
    latch.close(LEAK)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(PermissionError):
        latch.open()
    assert latch.trip == LEAK


@pytest.mark.promise(14)
def test_a_latch_and_its_opening_are_in_their_folder_before_anybody_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, fsync = tmp_path / "latch.json", os.fsync
    kept: list[tuple[str, ...]] = []

    def seen(handle: int) -> None:
        fsync(handle)
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            kept.append(tuple(sorted(each.name for each in tmp_path.iterdir())))

    monkeypatch.setattr(os, "fsync", seen)
    latch = Latch(path)
    latch.set_marker("stop")
    assert kept == [("guard.armed",)]
    latch.close(LEAK)
    assert kept[1:] == [("guard.armed", "latch.json")]
    latch.open()
    assert kept[2:] == [()]


def test_a_trip_that_brings_nothing_new_is_not_written_again(tmp_path: Path) -> None:
    latch = Latch(tmp_path / "latch.json")
    assert latch.hold(LEAK)
    assert latch.write_error.endswith("not written yet")
    assert latch.saved()
    assert not latch.hold(LEAK)
    assert (latch.write_error, latch.trip) == ("", LEAK)


def test_a_latch_that_cannot_be_read_stays_as_it_was_found(tmp_path: Path) -> None:
    path = tmp_path / "latch.json"
    path.write_text("{", encoding="utf-8")
    latch = Latch.or_shut(path, "immediate_shutdown")
    found = latch.trip
    assert not latch.hold(LEAK)
    latch.close(LEAK)
    assert latch.trip == found
    assert (latch.write_error, path.read_text("utf-8")) == ("", "{")
