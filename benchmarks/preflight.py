"""Time the pre-flight of a hundred plans of the shipped line, in one process.

Plans with hydrogen are flown beside them: its controller has a watchdog, so it is polled finely.
"""

import os
import tempfile
import time

from labharness.lab import default_lab_path, read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.wiring.preflight import predict
from labharness.work.capability import CannotDo

HUNDRED = 100
PER_HUNDRED_S_MAX = 45.0
FROM_C, STEP_C, STEPS = 650.0, 5.0, 50
RECIPES = {"argon": ({}, HUNDRED), "argon and hydrogen": ({"hydrogen_sccm": 10.0}, 20)}


def main() -> None:
    os.environ["LABHARNESS_STATE"] = tempfile.mkdtemp()
    lab = read_lab(default_lab_path())
    facts = lab_facts_of(lab)
    capability = facts.capabilities["cvd-material-synthesis"]
    print(f"plans of 6 to 7 lab hours each; target at most {PER_HUNDRED_S_MAX:g} s for {HUNDRED}")
    for gases, (recipe, plans) in RECIPES.items():
        began_s = time.perf_counter()
        for number in range(plans):
            target_c = FROM_C + STEP_C * (number % STEPS)
            bounds = {"min": target_c, "max": target_c, "unit": "celsius"}
            inputs = {
                "target_material": "MoS2",
                "substrate": "SiO2/Si",
                "temperature_range": bounds,
                "recipe": recipe,
            }
            planned = capability.plan(inputs, {}, facts.line_facts[capability.declaration.name])
            if isinstance(planned, CannotDo):
                raise SystemExit(planned.message)
            prediction = predict(lab, planned.instructions, {})
            if prediction.violation is not None:
                raise SystemExit(prediction.violation.detail)
        took_s = time.perf_counter() - began_s
        print(f"{gases}: {plans} plans in {took_s:.1f} s, {took_s / plans:.2f} s each")


if __name__ == "__main__":
    main()
