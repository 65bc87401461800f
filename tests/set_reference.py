"""A small model of instruction sets: what each instruction of one must come to, decided in order.

It knows no time and no two at once, so it speaks of SEQUENTIAL sets, and of others without
operations. It was written from rulings 33, 34 and 47 and shares no code with the course.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Modelled:
    """One instruction: ``tries`` are the ends of its attempts, the last one that of its fall-back.

    A condition is ``("", "")``, or a dependency with the status that it must have; the status
    ``"nowhere"`` stands for a path that leads nowhere.
    """

    name: str
    needs: tuple[str, ...]
    operation: bool
    condition: tuple[str, str]
    attempts: int
    fallback: bool
    otherwise: str
    tries: tuple[str, ...]


def modelled(steps: Sequence[Modelled], sequential: bool) -> dict[str, str]:
    """Return the status of each."""
    ended: dict[str, str] = {}
    for step in steps:
        if any(each.endswith("!") for each in ended.values()):
            ended[step.name] = "SKIPPED"
        else:
            ended[step.name] = _status(step, ended, sequential)
    return {name: status.rstrip("!") for name, status in ended.items()}


def _status(step: Modelled, ended: Mapping[str, str], sequential: bool) -> str:
    about, wanted = step.condition
    before = [name for name in ended if sequential and name not in step.needs]
    failed = [name for name in before if ended[name] in ("FAILED", "TIMEOUT")]
    lost = [name for name in step.needs if ended[name] != "COMPLETED" and name != about]
    if failed:
        return "SKIPPED"
    if lost and not step.fallback:
        return "FAILED!" if step.otherwise == "abort" else "SKIPPED"
    if wanted == "nowhere":  # held, and nothing can change it: nothing takes its place
        return "FAILED!" if step.otherwise == "abort" else "FAILED"
    if about and ended[about] != wanted:
        return "SKIPPED"
    if lost:
        return _ended(step, step.tries[-1])
    for found in step.tries[: step.attempts]:
        if found in ("done", "input") or (step.operation and found != "refused"):
            break
    if found not in ("done",) and step.fallback and not (step.operation and found != "refused"):
        found = step.tries[-1]
    return _ended(step, found)


def _ended(step: Modelled, found: str) -> str:
    if found == "done":
        return "COMPLETED"
    recovers = not step.operation or found == "refused"
    if recovers and step.otherwise == "skip":
        return "SKIPPED"
    status = "TIMEOUT" if found == "late" else "FAILED"
    return status + ("!" if step.otherwise == "abort" else "")
