"""Reads in a lab's files whether a task can ever run, and which instruments it needs.

So a task that can never run is rejected at once, before it waits for the line. The files are read
again after an edit.
"""

import logging
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Final

from labharness.core.clock import Chance, steady_s, wall_clock_utc
from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.lab.config.kinds import capabilities
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan, read_lab
from labharness.lab.wiring.referring import referred
from labharness.lab.wiring.tasks import lab_facts_without_line
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.confidential import Way, refused_on_way
from labharness.work.admission.declaration import Declaration
from labharness.work.capability import without_line
from labharness.work.capability.stored import is_artifact, refers
from labharness.work.desk.admitting import Admitting, received_without_line
from labharness.work.desk.facts import LabFacts, is_without_line
from labharness.work.desk.left_behind import LeftBehind, left_behind
from labharness.work.plan import InstructionSet, Prediction
from labharness.work.task.queue import Need, Needs
from labharness.work.task.record import WITHOUT_LINE, Task

LOG = logging.getLogger(__name__)

Signature = tuple[tuple[str, int, int], ...]

LOOK_S: Final = 0.5
"""Longest time (s) until an edit of a lab's files counts. The house looks for one at each of its
turns, of which two fall within this time, so that no caller waits for it."""

SOUGHT: Final = Rejected("resource_unavailable", Text("reference.sought"))
"""Of inputs in an artifact: they are looked for when the task has the line."""


def screened(plan: LabPlan, payload: TaskSubmit) -> Rejected | None:
    """Return the rejection of a task whose caller, inputs, plan, limits or risk forbid it.

    Reasons that may pass by its turn (a latched line, a silent instrument) do not count here, and
    pre-flight and approval come with its turn.

    Raises:
        BadLabFile: The lab's callers or approvals cannot be honoured.
    """
    if payload.resume_from is not None and plan.begins_anew:
        return Rejected("invalid_input", Text("resume.plant"))
    facts = lab_facts_of(plan)
    sought = refers(payload.inputs) and is_artifact(payload.inputs)
    found = SOUGHT if sought else referred(plan, payload, Path())
    if isinstance(found, Rejected):
        facts = replace(facts, refused=found)
    else:
        payload = found
    if plan.file.has_a_plant:  # the pre-flight decides later how long it takes
        facts = replace(facts, predict=_later)
    weighed = Admitting(facts=facts, envelope=plan.envelope, utc=wall_clock_utc).weigh(payload)
    lasting = isinstance(weighed, Rejected) and weighed.reason_code != "resource_unavailable"
    return weighed if lasting and isinstance(weighed, Rejected) else None


async def _later(instructions: InstructionSet, readings: Mapping[str, float]) -> Prediction:
    raise RuntimeError("a plan is flown when its task has the line")


def needs_of(plan: LabPlan) -> Needs:
    """Return the needs of the tasks of a lab.

    A run with physical resources has all instruments of the line: they are armed, polled and made
    safe together. A capability that cannot be read needs them all, alone.
    """
    every = tuple(sorted(plan.by_name))
    try:
        known = lab_facts_of(plan).capabilities
    except BadLabFile as why:
        LOG.warning("each task needs the whole line, alone: %s", why)
        known = {}

    def need(task: Task) -> Need:
        capability = known.get(task.task_family)
        if capability is None:
            return Need(every)
        alone = without_line(capability) if task.profile.get(WITHOUT_LINE) else None
        declared = (alone or capability).declaration
        physical = declared.safety.involves_physical_resources
        return Need(every if physical else (), declared.constraints.concurrent_limit)

    return need


class LabFiles:
    """A lab's files for tasks without a line, read again when one of them has changed.

    To read them takes some 0.4 s, and a caller waits for it.

    Args:
        lab: The lab file; those that it names stand in its folder.
    """

    def __init__(self, lab: Path) -> None:
        self._lab = lab
        self._lock = Lock()
        self._seen: Signature = ()
        self._seen_s = -math.inf
        self._known: tuple[LabPlan, LabFacts] | None = None

    def current(self) -> tuple[LabPlan, LabFacts]:
        """Return the plan, and the facts for tasks that need no line.

        Raises:
            BadLabFile: A file cannot be honoured.
        """
        with self._lock:
            if self._known is None or steady_s() - self._seen_s >= LOOK_S:
                return self._looked()
            return self._known

    def look(self) -> None:
        """Look for an edit; where a file cannot be honoured, `current` reads and tells of it."""
        with self._lock, suppress(BadLabFile, OSError):
            if self._known is not None:
                self._looked()

    def _looked(self) -> tuple[LabPlan, LabFacts]:
        seen, now_s = self._signature(), steady_s()
        if self._known is None or seen != self._seen:
            self._known = None
            plan = read_lab(self._lab)
            self._known, self._seen = (plan, lab_facts_without_line(plan)), seen
        self._seen_s = now_s
        return self._known

    def _signature(self) -> Signature:
        with os.scandir(self._lab.resolve().parent) as files:
            found = [(each.name, each.stat()) for each in files if each.name.endswith(".toml")]
        return tuple(sorted((name, about.st_mtime_ns, about.st_size) for name, about in found))

    def data_key(self) -> Path | None:
        """Return the file of the key for confidential data; raises as `current`."""
        return self.current()[0].data_key

    def left_behind(self, folder: Path) -> LeftBehind:
        """Return what a killed run has left in its folder, as far as that can be read."""
        try:
            return left_behind(folder, lab_facts_of(self.current()[0]))
        except (LabError, OSError, LookupError, TypeError, ValueError) as why:
            LOG.error("of the run in %s there is its end alone: %s", folder, type(why).__name__)
            return LeftBehind()

    def needs_no_line(self, payload: TaskSubmit) -> bool:
        """Return whether a task needs no line; raises as `current`."""
        return is_without_line(self.current()[1], payload)

    def received(
        self, message_id: str, payload: TaskSubmit, session_id: str, way: Way
    ) -> Rejected | HcpMessage | None:
        """Return the answer to a task on its receipt, where it can have one.

        A task that can never run, or may not come by its way, is rejected. One that needs no line,
        and no person's agreement, is accepted: it only waits for its turn.

        Raises:
            BadLabFile: A file cannot be honoured.
        """
        _, facts = self.current()
        if is_without_line(facts, payload):
            found = received_without_line(facts, message_id, payload, session_id, Chance(None))
        else:
            found = screened(read_lab(self._lab), payload)
        if isinstance(found, Rejected):
            return found
        return refused_on_way(payload, way, self._declared) or found

    @cached_property
    def _declared(self) -> list[Declaration]:
        """Those of the installed packages, which stay for as long as the process."""
        return [each.declaration for each in capabilities().values()]
