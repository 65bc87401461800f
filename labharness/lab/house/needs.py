"""The instruments that a run of a task needs, and how many of them run at once."""

import logging

from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan
from labharness.work.capability import without_line
from labharness.work.task.queue import Need, Needs
from labharness.work.task.record import WITHOUT_LINE, Task

LOG = logging.getLogger(__name__)


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
