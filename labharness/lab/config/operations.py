"""The operations on the files of a lab."""

from labharness.core.operations import DATE, LAB, flag, heading, option, read, steer, word

OPERATIONS = (
    read("drivers", "list the instrument kinds that are installed", group="lab"),
    heading("capabilities", "list or show the capabilities of a lab", group="tasks"),
    read("capabilities list", "print one line for each"),
    read("capabilities show", "print one declaration", word("name", "NAME")),
    heading("lab", "check a lab file and its wires", group="first"),
    read(
        "lab check",
        "check the files; compute wire times and the age of readings",
        LAB,
        flag("--connect", "ask every instrument who it is, and compare with the lab file"),
    ),
    steer(
        "lab key",
        "make the key of a lab for confidential data (T3, T4)",
        option("--out", "FILE", "where the key is written", required=True),
    ),
    heading("envelope", "check or show the safety envelope of a lab", group="safety"),
    read("envelope check", "print every contradiction", LAB),
    read("envelope show", "print every rule", LAB),
    heading("hazards", "list hardware safeguards, or record a proof test", group="safety"),
    read("hazards list", "print the hazards and their hardware safeguards", LAB),
    steer(
        "hazards proof",
        "record a proof test of a safeguard",
        word("hazard", "HAZARD"),
        DATE,
        option("--name", "NAME", "name of the person who tested it", value="words", required=True),
        option("--reason", "TEXT", "how it was tested; the result", value="words", required=True),
        flag("--failed", "the safeguard did not pass"),
        LAB,
        right="person",
    ),
)
