"""Planted bugs in what is said of spectra that anyone brings."""

from planted_bug import PlantedBug

__all__ = ["IN_SPECTRA"]

IN_SPECTRA = (
    PlantedBug(
        "laser that the file names ignored",
        "labharness.analysis.formats.rows:laser_in",
        "LASER.search(k) and (not NOT_LASER.search(k))",
        "k == 'Laser (nm)'",
        "tests/analysis/formats/test_formats_tables.py::"
        "test_the_laser_that_a_header_of_labspec_names_counts[LabSpec 5]",
        promise=50,
        detector="verdict",
    ),
    PlantedBug(
        "narrow line taken for a cosmic ray",
        "labharness.analysis.despike",
        "NEIGHBOUR_EXCESS_MAX = {1: 0.2, 2: 0.065}",
        "NEIGHBOUR_EXCESS_MAX = {1: 0.4, 2: 0.4}",
        "tests/analysis/test_analysis_bare.py::"
        "test_a_clean_film_of_narrow_lines_is_named_at_coarse_pixels[MoSe2]",
        promise=50,
        detector="verdict",
        daily=True,
    ),
    PlantedBug(
        "cosmic ray taken for the line of something else",
        "labharness.analysis.material:_relief",
        "mean_of_three(despike(stack.counts)[0])",
        "mean_of_three(stack.counts)",
        "tests/analysis/test_analysis_bare.py::"
        "test_one_cosmic_ray_anywhere_does_not_take_the_name_of_a_film[WS2]",
        promise=50,
        detector="verdict",
    ),
    PlantedBug(
        "film denied that noise would hide",
        "labharness.analysis.bare:bareness",
        "looked is None or np.median(SEEN_SIGMA * looked.noise_counts < lowest) < 1",
        "looked is None",
        "tests/analysis/test_analysis_bare.py::test_in_noise_that_would_hide_a_film_none_is_denied",
        promise=50,
        detector="verdict",
    ),
    PlantedBug(
        "weak line overlooked where a film is denied",
        "labharness.analysis.bare:bareness",
        "stands.any()",
        "stands.all() and (not stands.any())",
        "tests/analysis/test_analysis_bare.py::"
        "test_a_film_too_weak_for_a_name_is_not_denied[MoS2 on silicon-0.06]",
        promise=50,
        detector="verdict",
    ),
    PlantedBug(
        "file of somebody else written over",
        "labharness.faces.cli.analyse_own:in_the_way",
        "bool(data) and (not (data.startswith(begins) and holds in data))",
        "False",
        "tests/faces/cli/test_cli_analyse_own.py::"
        "test_a_file_of_somebody_else_is_not_written_over[--table-out.csv]",
        promise=51,
        detector="verdict",
        daily=True,
    ),
)
