"""Planted bugs in what is said of spectra that anyone brings."""

from planted_bug import PlantedBug

BUGS = (
    PlantedBug(
        "highest unexplained line ignored",
        "labharness.analysis.material:_Naming._holds",
        "np.where(against, lines.height_counts, 0.0)",
        "np.zeros_like(lines.height_counts)",
        "test_a_higher_line_that_nothing_explains_takes_a_name[graphene without D-other1]",
    ),
    PlantedBug(
        "clipped lines counted",
        "labharness.analysis.assess:_is_clipped",
        "2 * int(full.sum()) > len(rows)",
        "False",
        "test_lines_clipped_by_the_camera_are_not_counted",
    ),
    PlantedBug(
        "second film beside the counted one not said",
        "labharness.analysis.material:_Naming.names",
        "films[1:]",
        "films[1:1]",
        "test_a_second_film_is_said_and_lowers_the_confidence_of_the_count",
    ),
    PlantedBug(
        "laser that the file names ignored",
        "labharness.analysis.formats.table:laser_in",
        "LASER.search(k) and (not NOT_LASER.search(k))",
        "k == 'Laser (nm)'",
        "test_the_laser_that_a_header_of_labspec_names_counts[LabSpec 5]",
    ),
    PlantedBug(
        "narrow line taken for a cosmic ray",
        "labharness.analysis.spectrum",
        "NEIGHBOUR_EXCESS_MAX = {1: 0.2, 2: 0.065}",
        "NEIGHBOUR_EXCESS_MAX = {1: 0.4, 2: 0.4}",
        "test_a_clean_film_of_narrow_lines_is_named_at_coarse_pixels[MoSe2]",
    ),
    PlantedBug(
        "cosmic ray taken for the line of something else",
        "labharness.analysis.lines:_found",
        "despike(stack.counts)[0]",
        "stack.counts",
        "test_a_cosmic_ray_does_not_take_the_name_where_no_silicon_shows_the_width",
    ),
    PlantedBug(
        "film denied that noise would hide",
        "labharness.analysis.assess:bareness",
        "looked is None or np.median(SEEN_SIGMA * looked.noise_counts < lowest) < 1",
        "looked is None",
        "test_in_noise_that_would_hide_a_film_none_is_denied",
    ),
    PlantedBug(
        "weak line overlooked where a film is denied",
        "labharness.analysis.assess:bareness",
        "stands.any()",
        "stands.all() and (not stands.any())",
        "test_a_film_too_weak_for_a_name_is_not_denied[MoS2 on silicon-0.06]",
    ),
    PlantedBug(
        "file of somebody else written over",
        "labharness.faces.cli.analyse_written:in_the_way",
        "bool(data) and (not (data.startswith(begins) and holds in data))",
        "False",
        "test_a_file_of_somebody_else_is_not_written_over[--table-out.csv]",
    ),
    PlantedBug(
        "strain of our own furnace taken for that of any sample",
        "labharness.work.capability.raman_verdict:judge",
        "rows = CVD_ROWS if origin is None else ROWS_BY_ORIGIN[origin]",
        "rows = CVD_ROWS",
        "test_three_layers_under_a_strain_that_nobody_stated_are_not_called_two[-0.2]",
    ),
    PlantedBug(
        "strain of few films taken for that of any file with a stated A1g/Si",
        "labharness.faces.cli.analyse:_analysed",
        "(FILM_ROWS if reference is None else ROWS_BY_ORIGIN)[chosen.film]",
        "FILM_ROWS[chosen.film]",
        "test_three_layers_under_strain_beside_a_reference_are_not_called_two[-0.2-unknown]",
    ),
    PlantedBug(
        "calibration of this microscope applied to the spectra of another",
        "labharness.work.capability.raman_characterization.stored:_Task.judge",
        "isinstance(settings, RamanSettings) and 'spectra_uri' in self._inputs",
        "isinstance(settings, RamanSettings)",
        "test_this_labs_intensities_do_not_count_for_spectra_of_another_microscope",
    ),
    PlantedBug(
        "silicon of a doped wafer taken for that of the calibration",
        "labharness.analysis.layers:_a1g_si",
        "silicon is None or silicon.is_wider_than_instrument",
        "silicon is None",
        "test_silicon_wider_than_the_instrument_says_nothing_of_brightness",
    ),
)
