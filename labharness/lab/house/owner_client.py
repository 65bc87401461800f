"""The line owner as the house reaches it: by its socket, and by the latch of its line."""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from labharness.core.errors import LabError
from labharness.core.vocabulary import Trip
from labharness.core.vocabulary.texts import Text
from labharness.instruments.link.conversation import owner_door
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.lock import LineBusy, LineLock
from labharness.lab.house.orders import OwnerStatus, RunOrder, TaskRefused
from labharness.lab.house.start import state_of
from labharness.safety.guard import Latch, LatchUnreadable


@dataclass(frozen=True, slots=True)
class OwnerClient:
    """The line owner, reached by its socket, one connection a request.

    Attributes:
        plan: The lab's files.
    """

    plan: LabPlan

    def status(self) -> OwnerStatus | None:
        """Return its state; ``None`` where it does not answer."""
        try:
            answer = self._asked(do="status")
        except LabError:
            return None
        named = ("pid", "run_id", "speed", "leaving")
        return OwnerStatus(**{name: answer[name] for name in named if name in answer})

    def latch_reason(self) -> str:
        """Return why its line takes no run until a person has reset it; ``""`` if it is open."""
        try:
            trip = _trip(self.plan)
        except LatchUnreadable as why:
            return str(why)
        except OSError:  # maybe for a moment alone
            return ""
        return "" if trip is None else Text("house.latched", why=trip.detail)

    def held(self) -> str:
        """Return what keeps the line from a new run: its latch, or another process."""
        try:
            if not (latched := self.latch_reason()):
                LineLock(self.plan.state_dir).release()
        except LineBusy as why:
            return str(why)
        except OSError as why:
            return why.strerror or str(why)
        return latched

    def begin(self, order: RunOrder) -> None:
        """Ask for a run.

        Raises:
            TaskRefused: It is busy, or the order is wrong.
            NoOwner: It does not answer.
        """
        self._asked(do="begin", **asdict(order))

    def ask(self, run_id: str, do: str, reason: str, by: str = "") -> None:
        """Ask a run for ``abort``, or for a person: ``hold``, ``resume``; raises as `begin`."""
        self._asked(do=do, run_id=run_id, reason=reason, by=by)

    def confirm(self, run_id: str, step: str, by: str) -> str:
        """Confirm to a run that the step is done which it waits for; raises as `begin`."""
        answer = self._asked(do="confirm", run_id=run_id, step=step, by=by)
        said: str = answer["said"]
        return said

    def _asked(self, **asked: object) -> dict[str, Any]:
        with owner_door(self.plan.state_dir) as door:
            answer = door.ask(**asked)
        if not answer["ok"]:
            raise TaskRefused(answer["error"])
        return answer


def line_state(plan: LabPlan) -> str:
    """Return the state of a lab's line: ``idle``, ``running``, ``latched`` or ``down``."""
    try:
        owner = state_of(owner_door, plan.state_dir)
        if owner is None:
            return "down"
        if owner["run_id"]:
            return "running"
        trip = _trip(plan)
    except LatchUnreadable:
        return "latched"
    except (LabError, OSError):
        return "down"
    return "idle" if trip is None else "latched"


def _trip(plan: LabPlan) -> Trip | None:
    """Return what a line is latched for.

    A line at work is marked as armed: that it was left so counts once no process holds it.
    """
    look = partial(Latch, plan.state_dir / "latch.json", plan.port_latch())
    latch = look()
    if latch.write_error:  # the mark stands for a trip that is in no file
        try:
            with LineLock(plan.state_dir):
                latch = look()
        except LineBusy:
            return None
    return latch.trip
