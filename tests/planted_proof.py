"""Planted bugs in the proof of an envelope, and in what is seen of making a line safe."""

from planted_bug import PlantedBug

__all__ = ["IN_THE_PROOF"]

IN_THE_PROOF = (
    PlantedBug(
        "armed with a procedure that leaves a heater on",
        "labharness/lab/reading.py",
        "            *unproven(self.envelope, self.instruments, self.contacts),\n",
        "",
        "tests/test_proven.py::test_a_line_with_an_unproven_envelope_is_not_armed",
    ),
    PlantedBug(
        "output before mode proven as off",
        "labharness/lab/proven.py",
        "sent = iter([each.channel for each, _ in last if not each.optional])",
        "sent = {each.channel for each, _ in last if not each.optional}",
        "tests/test_proven.py::test_output_before_mode_is_found",
    ),
    PlantedBug(
        "one way of two to switch off proven as both",
        "labharness/lab/proven.py",
        "    if not missing:\n",
        "    if len(missing) < len(source.ways):\n",
        "tests/test_proven.py::test_a_step_that_is_dropped_turned_or_made_optional_is_found",
    ),
    PlantedBug(
        "a setpoint confirmed in manual, and nothing said",
        "labharness/line/idle.py",
        "    if acts is not None:\n",
        "    if False and acts is not None:\n",
        "tests/test_idle.py::test_a_controller_that_was_put_to_manual_at_its_keys_is_seen",
    ),
    PlantedBug(
        "a flow confirmed behind a shut valve, and nothing said",
        "labharness/line/idle.py",
        "found == found and found != off",
        "found == found",
        "tests/test_idle.py::test_a_value_without_effect_is_warned_of",
    ),
)
