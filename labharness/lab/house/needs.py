"""The instruments that a run of each capability needs, and how many of them run at once."""

import logging

from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan
from labharness.work.task.leases import Need, Needs

__all__ = ["needs_of"]

LOG = logging.getLogger(__name__)


def needs_of(plan: LabPlan) -> Needs:
    """Return the needs of a lab's capabilities.

    A run with physical resources has all instruments of the line: they are armed, polled and made
    safe together. A capability that cannot be read needs them all, alone.
    """
    every = tuple(sorted(plan.by_name))
    try:
        known = lab_facts_of(plan).capabilities
    except BadLabFile as why:
        LOG.warning("each task needs the whole line, alone: %s", why)
        known = {}

    def need(capability: str) -> Need:
        if capability not in known:
            return Need(every)
        declared = known[capability].declaration
        physical = declared.safety.involves_physical_resources
        return Need(every if physical else (), declared.constraints.concurrent_limit)

    return need
