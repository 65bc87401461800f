"""Which readings follow what is set, of the shipped labs: no gas is taken from under heat."""

from pathlib import Path

import pytest

from labharness.core.vocabulary import Command, Refused
from labharness.lab import read_lab
from labharness.safety.kernel import Memory, Mode, judge, observe

ROOT = Path(__file__).parents[3]
LABS = (
    (
        "envelopes/labharness_envelopes/labs/annealing_furnace/lab.toml",
        "gas",
        "heat only in flowing argon",
    ),
    ("examples/small-lab/lab.toml", "mfc", "heat only in flowing gas"),
)


@pytest.mark.promise(10)
@pytest.mark.parametrize(("lab", "controller", "row"), LABS)
def test_gas_is_not_taken_from_under_heat_on_any_shipped_lab(
    lab: str, controller: str, row: str
) -> None:
    memory = Memory(read_lab(ROOT / lab).envelope)
    memory.mode = Mode.RUNNING
    stop = Command(f"{controller}.setpoint", 0.0, "sccm")
    for setpoint_c, refused in ((150.0, row), (0.0, "")):
        values = {"furnace.setpoint": setpoint_c, f"{controller}.flow": 100.0}
        observe(memory, [memory.track(each) for each in values], list(values.values()), 1.0)
        verdict = judge(stop, memory, 1.0)
        assert (verdict.rule if isinstance(verdict, Refused) else "") == refused
