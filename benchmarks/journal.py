"""Time durable records, in groups and alone, beside bare sqlite3, fdatasync and QCoDeS."""

import asyncio
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median, quantiles

from labharness.journal import SqliteJournal

ROUNDS = 9
GROUP = 100  # records that share one commit
GROUPS = 50  # a round
SINGLES = 300  # a round
SPEED = 1.0  # as on a real line: a thread commits, and each group or record is waited for
SHARE_MIN = 0.7  # of the unchained rate
TIMES_FDATASYNC_MAX = 2.0  # at the 99th percentile
BODY = {"channel": "argon.setpoint", "value": 101.25, "unit": "sccm", "by": "plan"}
TEXT = b'{"at_s":1.0,"body":{"by":"plan","channel":"argon.setpoint","unit":"sccm","value":101.25},'


def chained_rate(folder: Path) -> float:
    """Return durable records a second through the journal, `GROUP` a commit."""
    with SqliteJournal(folder / "journal.sqlite", speed=SPEED) as journal:

        async def write() -> float:
            started = time.perf_counter()
            for group in range(GROUPS):
                for _ in range(GROUP):
                    newest = journal.append("intent", BODY, 1.0 + group / GROUPS)
                await journal.durable(newest)
            return GROUPS * GROUP / (time.perf_counter() - started)

        return asyncio.run(write())


def bare_rate(folder: Path) -> float:
    """Return rows a second of the same size in the same groups, without a chain."""
    with bare(folder) as database:
        started = time.perf_counter()
        for group in range(GROUPS):
            rows = [(group * GROUP + each, TEXT, TEXT[:32], None) for each in range(GROUP)]
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT INTO records VALUES (?, ?, ?, ?)", rows)
            database.execute("COMMIT")
        return GROUPS * GROUP / (time.perf_counter() - started)


@contextmanager
def bare(folder: Path) -> Iterator[sqlite3.Connection]:
    path = folder / "bare.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE records (seq INTEGER PRIMARY KEY, data, hash, block)")
        yield database


def singles(folder: Path) -> tuple[list[float], list[float]]:
    """Return the times (s) of one durable record and of one fdatasync, taken in turn."""
    ours: list[float] = []
    bare_syncs: list[float] = []
    with (
        SqliteJournal(folder / "journal.sqlite", speed=SPEED) as journal,
        (folder / "bare").open("ab", buffering=0) as file,
    ):

        async def write() -> None:  # on a loop that runs, as a line's does
            for _ in range(SINGLES):
                started = time.perf_counter()
                await journal.durable(journal.append("intent", BODY, 1.0))
                ours.append(time.perf_counter() - started)
                started = time.perf_counter()
                file.write(TEXT)
                os.fdatasync(file.fileno())
                bare_syncs.append(time.perf_counter() - started)

        asyncio.run(write())
    return ours, bare_syncs


def qcodes_rate(folder: Path) -> float | None:
    """Return rows a second of QCoDeS, each by `add_result`; ``None`` if it is not installed."""
    try:
        from qcodes.dataset import (
            Measurement,
            initialise_or_create_database_at,
            load_or_create_experiment,
        )
    except ImportError:
        return None
    initialise_or_create_database_at(folder / "qcodes.db")
    measurement = Measurement(exp=load_or_create_experiment("journal", "none"))
    for name in ("at_s", "value"):
        measurement.register_custom_parameter(name)
    measurement.write_period = 0.001  # the least it takes: it writes with nearly each row
    with measurement.run() as saver:
        started = time.perf_counter()
        for number in range(GROUP * 10):
            saver.add_result(("at_s", float(number)), ("value", 101.25))
        saver.flush_data_to_database(block=True)
        return GROUP * 10 / (time.perf_counter() - started)


def p99(times: list[float]) -> float:
    return quantiles(times, n=100)[98]


def main() -> None:
    shares, rates, ratios, middles = [], [], [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as name:
            rate = chained_rate(Path(name))
            shares.append(rate / bare_rate(Path(name)))
            rates.append(rate)
        with tempfile.TemporaryDirectory() as name:
            ours, syncs = singles(Path(name))
            ratios.append(p99(ours) / p99(syncs))
            middles.append(median(ours) / median(syncs))
    print(f"{GROUP} records a commit: {median(rates):,.0f} durable records/s")
    print(f"  x sqlite3 WAL FULL, unchained: {median(shares):.2f}; target at least {SHARE_MIN}")
    print(f"one durable record, x fdatasync: median {median(middles):.2f}")
    print(f"  99th percentile {median(ratios):.2f}; target at most {TIMES_FDATASYNC_MAX:g}")
    with tempfile.TemporaryDirectory() as name:
        found = qcodes_rate(Path(name))
    print("QCoDeS is not installed" if found is None else f"QCoDeS add_result: {found:,.0f} rows/s")


if __name__ == "__main__":
    main()
