"""Planted bugs where stored spectra are judged: what is counted, and whose spectra they are."""

from planted_bug import PlantedBug

HERE = "labharness.work.capability.raman_characterization"

BUGS = (
    PlantedBug(
        "bare places that count for no part of a film",
        f"{HERE}.stored:judged",
        "len(spots)",
        "len(film)",
        "test_bare_places_count_and_a_bare_sample_is_no_film",
    ),
    PlantedBug(
        "answer below the confidence that its caller asks for",
        f"{HERE}.stored:StoredSpectra.answer",
        "threshold = threshold_of(constraints)",
        "threshold = 0.0",
        "test_a_film_that_leaves_doubt_is_no_answer",
    ),
    PlantedBug(
        "dark counts of an earlier run left in its spectra",
        f"{HERE}.stored:spectra_of",
        "kept.get('dark_counts') if dark_counts is None else dark_counts",
        "dark_counts",
        "test_spectra_of_an_earlier_run_are_judged_and_their_read_is_logged",
        of_promise=48,
    ),
    PlantedBug(
        "microscope asked for in the form without risk",
        f"{HERE}.stored:StoredSpectra.takes",
        "MEASURE not in inputs and (not refers(inputs))",
        "('spectra' in inputs or MEASURE not in inputs) and (not refers(inputs))",
        "test_whatever_asks_for_the_microscope_is_of_the_form_with_physical_resources",
    ),
    PlantedBug(
        "spectra of an earlier run that are read unlogged",
        "labharness.work.capability.stored:artifact_of_caller",
        "log_access(run, data_class=held, reader=around.caller_id, via=via, what=uri)",
        "pass",
        "test_spectra_of_an_earlier_run_are_judged_and_their_read_is_logged",
        of_promise=70,
    ),
)
