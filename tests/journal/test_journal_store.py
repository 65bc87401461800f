"""The journal on disk: durable, chained, the same for the same seed."""

import asyncio
import io
import json
import lzma
import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from journal_rows import changed, records, rows, store_rows
from labharness.journal import layout, reading, store
from labharness.journal.chain import Head
from labharness.journal.disk import ROOM_BYTES
from labharness.journal.layout import JournalFailed
from labharness.journal.store import Journal, SqliteJournal, block_lab_s
from platforms import takes_open_files_away
from rig import HERE


def filled(path: Path, seed: int, about: dict[str, str]) -> Head:
    chance = random.Random(seed)
    with SqliteJournal(path, run={"seed": seed}, about=about) as journal:
        furnace = journal.stream("furnace", ["measured_c", "setpoint_c"])
        gas = journal.stream("argon", ["flow_sccm"])
        for second in range(400):
            journal.sample(furnace, float(second), (chance.random(), 750.0))
            if second % 7 == 0:
                journal.sample(gas, float(second), (chance.random(),))
            if second % 50 == 0:
                journal.append("command", {"value": chance.random()}, float(second))
    return journal.head


def exported(path: Path, until_seq: int | None = None) -> bytes:
    out = io.BytesIO()
    reading.export_jsonl(path, out, until_seq)
    return out.getvalue()


def test_the_same_seed_gives_the_same_head_and_export_whoever_writes(tmp_path: Path) -> None:
    first = filled(tmp_path / "a.journal", 7, {"pid": "1", "path": "a"})
    second = filled(tmp_path / "b.journal", 7, {"pid": "2", "path": "b"})
    other = filled(tmp_path / "c.journal", 8, {})
    assert first == second != other
    assert exported(tmp_path / "a.journal") == exported(tmp_path / "b.journal")
    assert exported(tmp_path / "a.journal") != exported(tmp_path / "c.journal")
    assert reading.about(tmp_path / "a.journal") == {"pid": "1", "path": "a"}
    assert b"pid" not in exported(tmp_path / "a.journal")


def test_the_chain_does_not_depend_on_when_it_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazy = filled(tmp_path / "a.journal", 7, {})
    monkeypatch.setattr(store, "COMMIT_RECORDS", 1)
    eager = filled(tmp_path / "b.journal", 7, {})
    assert lazy == eager
    assert exported(tmp_path / "a.journal") == exported(tmp_path / "b.journal")


def test_what_is_written_verifies_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    head = filled(path, 7, {})
    report = reading.verify_file(path, outside=head)
    assert report.ok
    assert report.head == head
    rows = list(reading.samples(path))
    furnace = [row for row in rows if row[0] == "furnace"]
    assert [at_s for _, at_s, _ in furnace] == [float(second) for second in range(400)]
    assert all(values[1] == 750.0 for _, _, values in furnace)
    assert len(rows) - len(furnace) == 58
    commands = [one for one in reading.read(path) if one.kind == "command"]
    assert [one.at_s for one in commands] == [float(second) for second in range(0, 400, 50)]
    blocks = [one for one in reading.read(path) if one.kind == "samples"]
    assert len(blocks) == math.ceil(400 / 60)


def test_an_export_up_to_a_record_is_the_beginning_of_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    filled(path, 7, {})
    part = exported(path, until_seq=5)
    assert exported(path).startswith(part)
    assert part.count(b"\n") == 6


def test_a_record_is_seen_by_others_once_it_is_durable(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    journal: Journal = SqliteJournal(path)
    seq = journal.append("intent", {"value": 1}, 0.0)
    assert list(reading.read(path)) == []
    asyncio.run(journal.durable(seq))
    code = (
        "import sys, pathlib; from labharness.journal import reading;"
        "print([one.kind for one in reading.read(pathlib.Path(sys.argv[1]))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['intent']"


@pytest.mark.promise(20)
@pytest.mark.parametrize("speed", [None, 1.0], ids=["without room", "in its room"])
def test_what_was_durable_survives_a_kill(tmp_path: Path, speed: float | None) -> None:
    path = tmp_path / "run.journal"
    code = (
        "import asyncio, os, signal, sys, pathlib\n"
        "from labharness.journal import SqliteJournal\n"
        f"journal = SqliteJournal(pathlib.Path(sys.argv[1]), speed={speed})\n"
        "for at in range(5): asyncio.run(journal.durable(journal.append('kept', {}, 0.0)))\n"
        f"if {speed} is None: journal.append('lost', {{}}, 1.0)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert speed is None or path.with_name("run.journal-wal").stat().st_size >= ROOM_BYTES
    assert [one.kind for one in reading.read(path)] == ["kept"] * 5
    with SqliteJournal(path, speed=speed) as journal:
        assert journal.append("after", {}, 2.0) == 6
    assert reading.verify_file(path).head == journal.head


@pytest.mark.promise(20)
def test_a_commit_waits_for_the_disk_itself(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "run.journal") as journal:
        (level,) = journal._database.execute("PRAGMA synchronous").fetchone()
        full = 2  # https://www.sqlite.org/pragma.html#pragma_synchronous
        assert level == full


@pytest.mark.parametrize("seq", [0, 2])
def test_nobody_waits_for_a_record_that_is_not(tmp_path: Path, seq: int) -> None:
    with SqliteJournal(tmp_path / "run.journal") as journal:
        journal.append("fact", {}, 0.0)
        with pytest.raises(ValueError, match="no record"):
            asyncio.run(journal.durable(seq))


def test_an_existing_journal_is_continued_with_its_streams(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    with SqliteJournal(path, run={"seed": 1}) as journal:
        stream = journal.stream("furnace", ["measured_c"])
        journal.sample(stream, 1.0, (20.0,))
        before = journal.head.seq
    with SqliteJournal(path, run={"seed": 1}) as journal:
        assert journal.head.seq == before + 1
        assert journal.stream("furnace", ["measured_c"]) == stream
        journal.sample(stream, 2.0, (21.0,))
    assert list(reading.samples(path)) == [("furnace", 1.0, (20.0,)), ("furnace", 2.0, (21.0,))]
    assert reading.verify_file(path).ok


def test_the_journal_of_another_run_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    SqliteJournal(path, run={"seed": 1}).close()
    with pytest.raises(JournalFailed, match="another run"):
        SqliteJournal(path, run={"seed": 2})


def test_a_stream_keeps_its_columns_and_a_row_its_length(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "run.journal") as journal:
        stream = journal.stream("furnace", ["measured_c"])
        with pytest.raises(ValueError, match="has the columns"):
            journal.stream("furnace", ["measured_k"])
        with pytest.raises(ValueError, match="columns"):
            journal.stream("empty", [])
        with pytest.raises(Exception, match="expected 2 items"):
            journal.sample(stream, 0.0, (1.0, 2.0))
        with pytest.raises(ValueError, match="finite"):
            journal.sample(stream, math.nan, (1.0,))


def test_what_cannot_be_recorded_leaves_the_chain_as_it_was(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "run.journal") as journal:
        journal.append("fact", {}, 0.0)
        before = journal.head
        with pytest.raises(ValueError, match="JSON"):
            journal.append("fact", {"value": math.nan}, 1.0)
        assert journal.head == before


def test_samples_are_committed_by_lab_time(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    journal = SqliteJournal(path)
    stream = journal.stream("furnace", ["measured_c"])
    for second in range(181):
        journal.sample(stream, float(second), (20.0,))
    rows = len(list(reading.samples(path)))
    assert rows >= 120
    journal.close()


@pytest.mark.promise(20)
def test_a_full_disk_stops_the_journal_until_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    journal = SqliteJournal(path)
    stream = journal.stream("furnace", ["measured_c"])
    journal.commit()
    journal._database.execute("PRAGMA max_page_count = 5")
    refused = journal.append("large", {"text": "x" * 50_000}, 0.0)
    with pytest.raises(JournalFailed, match="full"):
        asyncio.run(journal.durable(refused))
    with pytest.raises(JournalFailed, match="nothing is appended"):
        journal.append("fact", {}, 1.0)
    with pytest.raises(JournalFailed, match="nothing is appended"):
        journal.sample(stream, 1.0, (20.0,))
    journal._database.execute("PRAGMA max_page_count = 100000")
    asyncio.run(journal.durable(refused))
    journal.append("fact", {}, 2.0)
    journal.sample(stream, 2.0, (20.0,))
    journal.close()
    report = reading.verify_file(path)
    assert report.ok
    assert report.head == journal.head
    kinds = [one.kind for one in reading.read(path)]
    assert kinds == ["stream", "large", "fact", "samples"]


@pytest.mark.promise(20)
@takes_open_files_away
@pytest.mark.parametrize("continued", [False, True])
@pytest.mark.parametrize("gone", ["folder", "file", "write-ahead log", "another file"])
def test_a_journal_that_was_taken_away_says_that_nothing_is_durable(
    tmp_path: Path, gone: str, continued: bool
) -> None:
    path = tmp_path / "run" / "run.journal"
    path.parent.mkdir()
    if continued:
        filled(path, 7, {})
    journal = SqliteJournal(path, run={"seed": 7})
    asyncio.run(journal.durable(journal.append("fact", {}, 500.0)))
    if gone == "folder":
        shutil.rmtree(path.parent)
    elif gone == "write-ahead log":
        path.with_name("run.journal-wal").unlink()
    else:
        path.rename(tmp_path / "elsewhere")
        if gone == "another file":
            path.write_bytes((tmp_path / "elsewhere").read_bytes())
    lost = journal.append("fact", {}, 501.0)
    with pytest.raises(JournalFailed, match="removed or replaced"):
        asyncio.run(journal.durable(lost))
    with pytest.raises(JournalFailed, match="nothing is appended"):
        journal.append("fact", {}, 502.0)
    with pytest.raises(JournalFailed):
        journal.close()


@pytest.mark.promise(20)
@pytest.mark.parametrize("limit", range(3, 12))
def test_whichever_page_is_refused_nothing_acknowledged_is_lost(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "run.journal"
    journal = SqliteJournal(path)
    journal._database.execute(f"PRAGMA max_page_count = {limit}")
    acknowledged = 0

    def fill() -> None:
        nonlocal acknowledged
        for index in range(1_000):
            seq = journal.append("fact", {"text": "x" * 500}, float(index) / 100)
            asyncio.run(journal.durable(seq))
            acknowledged = seq

    with pytest.raises(JournalFailed):
        fill()
    journal._database.close()
    report = reading.verify_file(path)
    assert report.ok
    assert report.head.seq == acknowledged


def test_a_lock_of_another_process_is_a_failure_and_not_a_long_wait(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    journal = SqliteJournal(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    journal.append("fact", {}, 0.0)
    with pytest.raises(JournalFailed, match="locked"):
        journal.commit()
    other.execute("ROLLBACK")
    other.close()
    journal.commit()
    journal.close()


def test_a_second_writer_cannot_fork_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    first, second = SqliteJournal(path), SqliteJournal(path)
    first.append("fact", {"by": "first"}, 0.0)
    first.commit()
    second.append("fact", {"by": "second"}, 0.0)
    with pytest.raises(JournalFailed, match="UNIQUE"):
        second.commit()
    first.append("fact", {"by": "first"}, 1.0)
    first.close()
    with pytest.raises(JournalFailed):
        second.close()
    assert [one.body for one in reading.read(path)] == [{"by": "first"}] * 2


def test_a_changed_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    filled(path, 7, {})
    text = records(path)[2][1]
    changed(path, 3, data=text.replace(b"0.0", b"9.0"))
    report = reading.verify_file(path)
    assert report.first_bad_seq == 3


@pytest.mark.parametrize("content", [b"", b"no database at all, but long enough " * 40])
def test_a_file_that_is_no_journal_is_a_typed_failure(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.journal"
    path.write_bytes(content)
    with pytest.raises(JournalFailed):
        list(reading.read(path))


WITHOUT_PRIVILEGE = """
import ctypes, sys
from pathlib import Path
from labharness.journal import reading
from labharness.journal.layout import JournalFailed
none = (ctypes.c_uint32 * 6)()  # root may write everywhere unless it gives up its capabilities
if ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), none):
    sys.exit("capabilities cannot be given up")
try:
    print(len(list(reading.read(Path(sys.argv[1])))), reading.verify_file(Path(sys.argv[1])).ok)
except JournalFailed as why:
    print(why)
"""


def read_in_an_archive(path: Path) -> str:
    """Read a journal in a folder that takes no file, as somebody who is not root."""
    path.parent.chmod(0o555)
    try:
        said = subprocess.run(
            [sys.executable, "-c", WITHOUT_PRIVILEGE, str(path)],
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
    finally:
        path.parent.chmod(0o755)
    return said.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="root gives up its privilege as on Linux")
def test_a_closed_journal_is_read_where_nothing_may_be_written_beside_it(tmp_path: Path) -> None:
    head = filled(tmp_path / "run.journal", 7, {})
    assert os.listdir(tmp_path) == ["run.journal"]
    assert read_in_an_archive(tmp_path / "run.journal") == f"{head.seq} True\n"
    (tmp_path / "run.journal-wal").touch()  # what an earlier reader leaves
    assert read_in_an_archive(tmp_path / "run.journal") == f"{head.seq} True\n"


@pytest.mark.skipif(sys.platform != "linux", reason="root gives up its privilege as on Linux")
def test_a_journal_whose_last_records_lie_beside_it_is_not_read_without_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.journal"
    writes = (
        "import os, sys; from pathlib import Path; "
        "from labharness.journal.store import SqliteJournal; "
        "journal = SqliteJournal(Path(sys.argv[1])); journal.append('command', {}, 1.0); "
        "journal.commit(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", writes, str(path)], check=True)
    assert path.with_name("run.journal-wal").stat().st_size > 0
    path.with_name("run.journal-shm").unlink()
    assert "cannot read" in read_in_an_archive(path)


def test_a_journal_that_cannot_be_opened_is_a_typed_failure(tmp_path: Path) -> None:
    with pytest.raises(JournalFailed, match="cannot open"):
        SqliteJournal(tmp_path / "missing" / "run.journal")
    with pytest.raises(JournalFailed, match="cannot read"):
        list(reading.read(tmp_path / "missing.journal"))
    assert os.listdir(tmp_path) == []


@pytest.mark.promise(20)
def test_an_idle_line_meets_a_full_disk_within_five_seconds(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "run.journal", block_s=block_lab_s(1.0))
    stream = journal.stream("furnace", ["measured_c", *(f"column {n}" for n in range(60))])
    noise = random.Random(1)  # which no compression fits into the pages there are

    def measured() -> list[float]:
        return [noise.random() for _ in range(61)]

    for second in range(10):
        journal.sample(stream, float(second), measured())
    journal._database.execute("PRAGMA max_page_count = 1")

    def lived_s() -> int:
        for second in range(10, 100):
            try:
                journal.sample(stream, float(second), measured())
            except JournalFailed:
                return second - 10
        return 90

    assert lived_s() <= 5
    journal._database.close()


def test_of_an_idle_line_a_reader_finds_all_but_the_last_five_seconds(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    journal = SqliteJournal(path, block_s=block_lab_s(1.0))
    stream = journal.stream("furnace", ["measured_c"])
    for second in range(60):
        journal.sample(stream, float(second), (20.0,))
        rows = [at_s for _, at_s, _ in reading.samples(path)]
        assert second - (rows[-1] if rows else 0) <= 5
    journal.close()


@pytest.mark.parametrize(("speed", "lab_s"), [(None, 60.0), (1.0, 4.0), (10.0, 40.0), (99.0, 60.0)])
def test_a_block_is_as_long_as_a_crash_may_take_in_real_time(
    speed: float | None, lab_s: float
) -> None:
    assert block_lab_s(speed) == lab_s


# ---- blocks of samples, as they are stored

FORMAT_2 = HERE / "data" / "journals" / "format_2.sqlite.xz"
MEASURED = [(float(at), (20.0 + at / 8,)) for at in range(150)]


def measured(path: Path) -> Path:
    with SqliteJournal(path, run={"seed": 1}) as journal:
        journal.append("event", {"event_type": "progress"}, 0.0)
        stream = journal.stream("furnace", ["temperature"])
        for at_s, values in MEASURED:
            journal.sample(stream, at_s, values)
    return path


def stored(path: Path) -> list[bytes]:
    return [block for *_, block in rows(path) if block is not None]


def store_instead(path: Path, block: bytes) -> None:
    """Change the first block of samples."""
    at, row = next((at, row) for at, row in enumerate(rows(path)) if row[3] is not None)
    store_rows(path, [*rows(path)[:at], (*row[:3], block), *rows(path)[at + 1 :]])


def test_samples_are_stored_packed_and_read_as_measured(tmp_path: Path) -> None:
    path = measured(tmp_path / "run.journal")
    assert [(at_s, values) for _, at_s, values in reading.samples(path)] == MEASURED
    assert sum(map(len, stored(path))) < 0.3 * 16 * len(MEASURED)
    assert reading.verify_file(path).ok


def test_a_journal_of_before_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    path.write_bytes(lzma.decompress(FORMAT_2.read_bytes()))
    assert reading.run_header(path)["format"] == 2
    assert sum(map(len, stored(path))) == 16 * len(MEASURED)
    assert reading.verify_file(path).ok
    assert [(at_s, values) for _, at_s, values in reading.samples(path)] == MEASURED
    with pytest.raises(JournalFailed, match="another run"):
        SqliteJournal(path, run={"seed": 1})


def test_an_export_holds_the_samples_as_they_were_measured(tmp_path: Path) -> None:
    before = tmp_path / "before.journal"
    before.write_bytes(lzma.decompress(FORMAT_2.read_bytes()))
    now = exported(measured(tmp_path / "run.journal"))
    for was, line in zip(exported(before).splitlines()[1:], now.splitlines()[1:], strict=True):
        assert json.loads(was).get("block") == json.loads(line).get("block")


@pytest.mark.promise(20)
@pytest.mark.parametrize(
    "change",
    [
        lambda block: block[:-1],
        lambda block: block + b"\0",
        lambda block: block + block,
        lambda block: zlib.compress(zlib.decompress(block)[:-16]),
        lambda block: zlib.decompress(block),
        lambda block: b"",
    ],
    ids=["cut", "longer", "twice", "a row less", "not packed", "empty"],
)
def test_a_block_that_is_not_the_one_measured_is_named(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    path = measured(tmp_path / "run.journal")
    store_instead(path, change(stored(path)[0]))
    report = reading.verify_file(path)
    assert not report.ok
    assert report.first_bad_seq is not None
    assert f"the samples of record {report.first_bad_seq} do not fit" in report.reason


@pytest.mark.promise(20)
def test_a_block_is_unpacked_up_to_a_bound(tmp_path: Path) -> None:
    path = measured(tmp_path / "run.journal")
    store_instead(path, zlib.compress(bytes(layout.BLOCK_BYTES_MAX + 1)))
    blocks = [one.block for one in reading.sealed(path) if one.block is not None]
    assert blocks[0] == b""
    assert not reading.verify_file(path).ok
    with pytest.raises(JournalFailed, match="which end within"):
        list(reading.samples(path))


def test_a_look_at_the_file_as_it_is_made_does_not_end_the_run(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.touch()
    house = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    house.execute("BEGIN")
    house.execute("SELECT * FROM sqlite_master").fetchall()
    look = threading.Timer(10 * store.BUSY_TIMEOUT_S, house.close)
    look.start()
    SqliteJournal(path, run={"seed": 1}).close()
    look.join()
