"""The samples of a journal as a Parquet file, for programs that read tables."""

import json
from collections.abc import Iterator
from itertools import islice
from math import isnan
from pathlib import Path
from typing import Any, Final

from labharness.journal.reading import read, run_header, samples

ROWS_A_GROUP: Final = 2**16
"""Rows in memory, and in one row group of the file."""


def export_parquet(path: Path, out: Path, until_seq: int | None = None) -> int:
    """Write every sampled value as one row; return the number of rows.

    The columns are ``stream``, ``column``, ``at_s`` (lab time in seconds) and ``value``; a value
    that was not measured is null. The run's header is in the file's metadata as ``labharness.run``.

    Args:
        path: The journal.
        out: The file; one that is there is replaced.
        until_seq: Number of the last record that is read; ``None`` for all.

    Raises:
        JournalFailed: The journal cannot be read.
        ModuleNotFoundError: When pyarrow is missing; the extra ``formats`` installs it.
        OSError: The file cannot be written.
    """
    import pyarrow
    import pyarrow.parquet

    name = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    number = pyarrow.float64()
    fields = [("stream", name), ("column", name), ("at_s", number), ("value", number)]
    run = json.dumps(run_header(path), sort_keys=True)
    schema = pyarrow.schema(fields, metadata={"labharness.run": run})
    rows = _rows(path, until_seq)
    count = 0
    with pyarrow.parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        while group := list(islice(rows, ROWS_A_GROUP)):
            columns: dict[str, Any] = dict(
                zip(schema.names, map(list, zip(*group, strict=True)), strict=True)
            )
            writer.write_table(pyarrow.table(columns, schema=schema))
            count += len(group)
    return count


def _rows(path: Path, until_seq: int | None) -> Iterator[tuple[str, str, float, float | None]]:
    """Return stream, column, lab time and value, one by one."""
    columns = {
        each.body["name"]: each.body["columns"]
        for each in read(path, until_seq)
        if each.kind == "stream"
    }
    for stream, at_s, values in samples(path, until_seq):
        for column, value in zip(columns[stream], values, strict=True):
            yield stream, column, at_s, None if isnan(value) else value
