"""The operations on reports of runs."""

from labharness.core.operations import FOLDER, RUNS, option, read, word

OPERATIONS = (
    read(
        "report",
        "write the report of a run as one HTML page",
        FOLDER,
        option("--out", "FILE", "where to write it (default DIR/report.html)"),
        group="first",
    ),
    read("history", "list the runs of a folder", RUNS, group="records"),
    read(
        "compare",
        "list the differences between two runs",
        word("one", "DIR"),
        word("other", "DIR"),
        option("--out", "FILE", "also draw both runs on one HTML page"),
        group="records",
    ),
)
