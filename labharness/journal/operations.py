"""The operations on the records and files of runs."""

from labharness.core.operations import (
    FOLDER,
    RUNS,
    SIGNED,
    flag,
    heading,
    option,
    read,
    steer,
    word,
)

OPERATIONS = (
    heading("journal", "verify, show or export a run's journal", group="records"),
    read(
        "journal verify",
        "check the hash chain, and name the first bad record",
        FOLDER,
        option("--heads", "DIR", "folder of signed heads (default: as the run says, or yours)"),
        option("--key", "HEX", "public key of the lab, as another check said it"),
    ),
    read("journal show", "print the records as text", FOLDER),
    read("journal access", "print who may read the results of a run, and who did", FOLDER),
    steer(
        "journal grant",
        "approve that somebody else reads the results of a run of restricted data (T4)",
        FOLDER,
        option("--reader", "NAME", "account or caller who may read", value="words", required=True),
        *SIGNED,
        option("--key", "FILE", "your key, where the lab has approvers"),
        option("--lab", "FILE", "the lab's file (default: as the run says)"),
        right="person",
    ),
    read(
        "journal export",
        "print the records as JSON Lines, or write what was measured as Parquet",
        FOLDER,
        option("--parquet", "FILE", "write the measured values to this file instead"),
    ),
    read(
        "artifact",
        "find the file of an artifact's URI",
        word("uri", "URI"),
        RUNS,
        flag("--cat", "print the file instead of its path"),
        group="records",
    ),
)
