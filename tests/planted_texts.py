"""Planted bugs in what people are told: in their language, all at once, and in the log of a run."""

from planted_bug import PlantedBug

IN_THE_TEXTS = (
    PlantedBug(
        "journal keeps a sentence without its code",
        "labharness.journal.chain",
        "coded(body)",
        "body",
        "tests/core/vocabulary/test_texts.py::test_a_journal_holds_codes_and_gives_texts_back",
        promise=53,
        detector="journal audit",
        daily=True,
    ),
    PlantedBug(
        "text that lost its code on the way",
        "labharness.core.vocabulary.texts:Text.__str__",
        "return self",
        "return self[:]",
        "tests/core/vocabulary/test_texts.py::"
        "test_a_text_is_its_english_and_keeps_its_code_wherever_it_goes",
        promise=53,
    ),
    PlantedBug(
        "parameter that is a text left in English",
        "labharness.core.vocabulary.texts:_Shown.__format__",
        "in_language(self._value, self._language)",
        "self._value[:]",
        "tests/core/vocabulary/test_texts.py::"
        "test_a_text_is_its_english_and_keeps_its_code_wherever_it_goes",
        promise=53,
    ),
    PlantedBug(
        "sentence without its Chinese",
        "labharness/work/admission/texts.toml:[line.latched]",
        'zh = "设备已锁定：{why}"',
        'zh = "the line is latched: {why}"',
        "tests/core/vocabulary/test_texts.py::test_both_languages_are_whole",
        promise=53,
        detector="lint",
    ),
    PlantedBug(
        "alert in English whatever its channel speaks",
        "labharness.line.alarms",
        "title, text = in_language(title, to.language), in_language(text, to.language)",
        "",
        "tests/safety/alarm/test_alarm_alone.py::"
        "test_each_channel_gets_its_message_in_its_own_language",
        promise=53,
        detector="alarm audit",
    ),
    PlantedBug(
        "texts that another package brings left out",
        "labharness.core.texts:templates",
        "shipped().get(code) or _readable().get(code)",
        "shipped().get(code)",
        "tests/work/capability/test_capability_of_others.py::"
        "test_a_task_of_it_ends_with_its_answer_its_report_and_no_traceback",
        promise=53,
    ),
    PlantedBug(
        "error of a lab file in English for a reader of Chinese",
        "labharness.faces.cli.show:warn",
        "in_language(why, TERMINAL.language)",
        "why[:]",
        "tests/lab/config/test_in_chinese.py::test_a_lab_is_checked_in_chinese[check-keys]",
        promise=53,
    ),
    PlantedBug(
        "rows of a driver not checked when it is imported",
        "labharness.instruments.driver.table:TableDriver.__init_subclass__",
        "if wrong:\n    raise TypeError(f\"rows of {cls.__name__} are wrong: {'; '.join(wrong)}\")",
        "",
        "tests/instruments/driver/test_driver_rows.py::"
        "test_all_wrong_rows_are_named_at_once_when_the_class_is_made",
        promise=54,
        daily=True,
    ),
    PlantedBug(
        "register in parts of two blocks taken",
        "labharness.instruments.driver.table:TableDriver.__init_subclass__",
        "wrong += cls.wrong_table()",
        "",
        "tests/instruments/driver/test_driver_rows.py::"
        "test_a_register_in_two_blocks_or_across_the_end_of_one_is_wrong",
        promise=54,
    ),
    PlantedBug(
        "reading that a rule rests on and nothing watches passed over",
        "labharness.lab.config.lab_plan:read_lab",
        "wrong += consistency.missing_watches(line, instruments)",
        "",
        "tests/lab/config/test_all_at_once.py::test_rows_on_what_is_not_read_are_told_of_together",
        promise=54,
    ),
    PlantedBug(
        "row of watch to paste that is stale at once",
        "labharness.lab.config.consistency:missing_watches",
        "math.ceil(2 * answer_s(period_s, scan.request)) / 2",
        "period_s / 2",
        "tests/lab/config/test_all_at_once.py::test_rows_on_what_is_not_read_are_told_of_together",
        promise=54,
    ),
    PlantedBug(
        "log that stops what writes into it",
        "labharness.lab.wiring.runs:_LogFile.emit",
        "with suppress(OSError):\n    super().emit(record)",
        "super().emit(record)",
        "tests/lab/wiring/test_run_log.py::test_a_log_that_the_disk_does_not_take_costs_its_lines_only",
        promise=55,
        daily=True,
    ),
    PlantedBug(
        "exchanges left out of a log that was asked for them",
        "labharness.lab.wiring.runs:run_log",
        "logger.setLevel(level.upper())",
        "logger.setLevel('INFO')",
        "tests/lab/wiring/test_run_log.py::test_a_log_that_the_disk_does_not_take_costs_its_lines_only",
        promise=55,
    ),
    PlantedBug(
        "log in the time of day alone",
        "labharness.lab.wiring.runs:run_log",
        "loop.time()",
        "0.0",
        "tests/lab/wiring/test_run_log.py::test_a_log_that_the_disk_does_not_take_costs_its_lines_only",
        promise=55,
    ),
    PlantedBug(
        "error of the harness without its traceback",
        "labharness.lab.wiring.tasks",
        "LOG.error('the task ended by an error of the harness', exc_info=shown)",
        "LOG.error('the task ended by an error of the harness')",
        "tests/lab/wiring/test_run_log.py::"
        "test_an_error_of_the_harness_leaves_its_traceback_in_the_log_alone[before it]",
        promise=55,
    ),
)
