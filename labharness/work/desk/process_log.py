"""The process log: the journal's samples as one CSV table, a row every few seconds."""

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path

from labharness.core.vocabulary.channels import owner_of
from labharness.journal.reading import read, sample_blocks

ROW_S = 10.0  # the journal keeps every sample; the log is for people and plots


def process_log(journal: Path, channels: Mapping[str, str]) -> tuple[bytes, int]:
    """Project the samples of some channels onto a table.

    Args:
        journal: The run's journal, committed.
        channels: Unit of each channel, in the order of the columns.

    Returns:
        The CSV, units in its header, and the number of its rows. A value that was not measured
        within the last row's time is empty, never zero.
    """
    import numpy as np  # not for the commands that only import this room

    columns = {name: column for column, name in enumerate(channels)}
    places = _places(journal, columns)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    heads = [f"{name} [{unit}]" if unit else name for name, unit in channels.items()]
    writer.writerow(["time [s]", *heads])
    rows: dict[int, list[float]] = {}
    for stream, form, block in sample_blocks(journal):  # so not in order of time
        where = places.get(stream)
        if where is None:
            continue
        samples = np.frombuffer(block, "<f8").reshape(-1, form.size // 8)
        numbers = (samples[:, 0] // ROW_S).astype(int) + 1
        newest = np.flatnonzero(np.diff(numbers, append=-1))  # of those in one row of the table
        for number, (_, *values) in zip(
            numbers[newest].tolist(), samples[newest].tolist(), strict=True
        ):
            row = rows.setdefault(number, [math.nan] * len(columns))
            for at, column in where:
                row[column] = values[at]
    for number in sorted(rows):
        cells = (f"{value:.6g}" if value == value else "" for value in rows[number])
        writer.writerow([f"{number * ROW_S:.0f}", *cells])
    return table.getvalue().encode(), len(rows)


def _places(journal: Path, columns: Mapping[str, int]) -> dict[str, tuple[tuple[int, int], ...]]:
    places = {}
    for record in read(journal):
        if record.kind != "stream":
            continue
        name = record.body["name"]
        instrument = owner_of(name)
        found = tuple(
            (at, columns[f"{instrument}.{channel}"])
            for at, channel in enumerate(record.body["columns"])
            if f"{instrument}.{channel}" in columns
        )
        if found:
            places[name] = found
    return places
