"""Planted bugs in what an envelope says and how its file is read."""

from planted_bug import PlantedBug

__all__ = ["IN_THE_ENVELOPES"]

IN_THE_ENVELOPES = (
    PlantedBug(
        "change of two rows at once",
        "labharness/lab/envelope_patch.py",
        "    if count != 1:\n",
        "    if count < 1:\n",
        "tests/test_envelope_patch.py::test_a_change_that_names_two_rows_is_an_error",
    ),
    PlantedBug(
        "change that changes nothing",
        "labharness/lab/envelope_patch.py",
        "    if same:\n",
        "    if False:\n",
        "tests/test_envelope_patch.py::"
        "test_a_change_that_is_not_exactly_one_is_an_error_that_names_it[nothing changed]",
    ),
    PlantedBug(
        "base of an envelope edited unseen",
        "labharness/lab/reading.py",
        "(text, base_text)",
        "(text,)",
        "tests/test_envelope_patch.py::"
        "test_the_envelope_digest_covers_the_changes_and_what_they_are_made_of",
    ),
)
