"""Finds rights in the callers file that can never be used."""

from collections.abc import Iterator

from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text
from labharness.lab.config.kinds import capabilities
from labharness.lab.config.lab_plan import LabPlan
from labharness.work.admission.callers import Caller


def policy_faults(plan: LabPlan, callers: tuple[Caller, ...]) -> Iterator[str]:
    """Return each right that a lab's callers file gives and that can never be used."""
    offered, known = capabilities(), plan.by_name
    for caller in callers:
        for what, names, there in (
            ("capabilities", caller.capabilities, tuple(offered)),
            ("instruments", caller.instruments or (), tuple(known)),
        ):
            for name in names:
                if name not in there:
                    yield Text(
                        "policy.nothing",
                        where=f"[callers.{caller.id}].{what}",
                        name=name,
                        hint=did_you_mean(name, there),
                        known=", ".join(sorted(there)),
                    )
        if not caller.hours.spans:
            yield Text("policy.never", where=f"[callers.{caller.id}].hours")
