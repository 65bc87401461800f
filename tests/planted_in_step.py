"""Planted bugs of promise 76: no answer is taken for that to another question."""

from planted_bug import PlantedBug

PORT = "labharness.safety.guard.port:Port."
PORTS = "tests/safety/guard/test_guard_ports.py::"
SHELLS = "tests/safety/guard/test_both_shells.py::"

IN_STEP = (
    PlantedBug(
        "proof of step skipped",
        f"{PORT}_answered",
        "not self.steps or self._numbered",
        "True",
        f"{PORTS}test_a_reply_counts_once_a_step_after_it_was_answered_in_its_form",
        promise=76,
        detector="byte log",
        daily=True,
    ),
    PlantedBug(
        "any answer taken for a step's",
        f"{PORT}_answered",
        "not disobeyed(step, reply) if step.obeyed else reply == self._known",
        "True",
        "tests/drivers/test_kinds_of_others.py::"
        "test_no_answer_to_another_question_is_believed[keithley_2400]",
        promise=76,
    ),
    PlantedBug(
        "step learnt before it was quiet",
        f"{PORT}_answered",
        "now + LEARNT_AFTER * self._quiet_s",
        "now",
        f"{PORTS}test_a_step_that_is_always_the_same_is_learnt_where_nothing_follows_for_three_time_outs",
        promise=76,
        detector="byte log",
    ),
    PlantedBug(
        "bytes after a whole reply ignored",
        f"{PORT}feed",
        "len(buffer) > taken",
        "False",
        f"{PORTS}test_a_reply_may_come_in_pieces_and_what_follows_it_takes_it_away",
        promise=76,
        detector="byte log",
    ),
    PlantedBug(
        "bytes that nobody asked for ignored",
        f"{PORT}feed",
        "self._drain(now, self._quiet_s)",
        "None",
        f"{PORTS}test_bytes_that_nobody_asked_for_keep_a_port_quiet_for_a_time_out",
        promise=76,
        detector="byte log",
    ),
    PlantedBug(
        "no quiet after a reply that cannot be decoded",
        f"{PORT}doubt",
        "self._drain(now, self._quiet_s)",
        "None",
        f"{PORTS}test_a_reply_that_its_driver_cannot_read_keeps_a_port_quiet_for_a_time_out",
        promise=76,
        detector="byte log",
    ),
    PlantedBug(
        "reply of a poll that cannot be decoded not told to the guard",
        "labharness.line.poll:_Chain._done",
        "self.guard.doubt(self.port)",
        "pass",
        "tests/line/test_line_poll.py::"
        "test_what_is_no_reply_is_silence_is_told_to_the_guard_and_the_next_scan_is_asked",
        promise=76,
        detector="byte log",
    ),
    PlantedBug(
        "reply that cannot be decoded not told to the guard",
        "labharness.line.exchanges:PortLease.__aexit__",
        "self.guard.doubt(self.port)",
        "pass",
        "tests/line/test_line_parts.py::"
        "test_a_channel_is_read_with_a_second_try_and_what_is_no_reply_is_said",
        promise=76,
        detector="byte log",
    ),
    PlantedBug(
        "guard process not told of a reply that cannot be decoded",
        "labharness.safety.guard.remote:RemoteGuard.doubt",
        "self._tell(messages.ask('doubt', port=port))",
        "self._busy_since[port] = 0",
        f"{SHELLS}test_a_port_whose_reply_cannot_be_read_is_asked_when_it_was_quiet_for_a_time_out"
        "[process]",
        promise=76,
        detector="byte log",
    ),
    PlantedBug(
        "question before what came unasked is heard",
        "labharness.safety.guard.process:ProcessGuard._serve",
        "not isinstance(each[0].fileobj, int)",
        "isinstance(each[0].fileobj, int)",
        f"{SHELLS}test_a_guard_hears_what_came_unasked_before_it_asks",
        promise=76,
        detector="byte log",
    ),
    PlantedBug(
        "making safe waits for the quiet after a step",
        f"{PORT}give_way",
        "self.step is not None or self._said is not None",
        "False",
        f"{SHELLS}test_making_safe_does_not_wait_for_the_quiet_after_a_step",
        promise=76,
        detector="deadline",
    ),
    PlantedBug(
        "reading of a procedure believed without its step",
        f"{PORT}_answered",
        "self._safe_sent is None or request.frame in self.reads",
        "self._safe_sent is None",
        f"{PORTS}test_making_safe_waits_for_no_step_and_believes_no_reading_without_one",
        promise=76,
        detector="byte log",
    ),
    PlantedBug(
        "line break taken into a line of text",
        "labharness.instruments.driver.ascii_table:AsciiDriver",
        "'([^\\r\\n]*)'",
        "'(?s:(.*))'",
        "tests/drivers/test_kinds_of_others.py::"
        "test_no_answer_to_another_question_is_believed[cobolt_laser]",
        promise=76,
    ),
)
