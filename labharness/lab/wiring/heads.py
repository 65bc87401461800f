"""Where a lab keeps the signed heads of its runs' journals, and with which key."""

import logging
from pathlib import Path

from labharness.core.clock import Clock, utc_text
from labharness.journal.heads import (
    HEAD_EVERY_S,
    HEADS_NAME,
    VIRTUAL_EVERY_S,
    HeadKeeper,
    head_key,
)
from labharness.lab.config.lab_plan import LabPlan

LOG = logging.getLogger(__name__)


def heads_place(plan: LabPlan) -> Path:
    """Return the folder of heads: what the lab file names, else one in the state directory."""
    stated = plan.file.lab.heads
    return plan.state_dir / HEADS_NAME if stated is None else Path(stated).expanduser()


def head_keeper(plan: LabPlan, clock: Clock) -> HeadKeeper | None:
    """Return what keeps the heads of a run; ``None`` where the lab's key cannot be had.

    A run goes on without it; a check of its journal then cannot tell whether the end is cut.
    """
    try:
        key = head_key(plan.state_dir)
    except (OSError, ValueError) as why:
        LOG.warning("no head of the journal is signed: %s", why)
        return None
    return HeadKeeper(
        heads_place(plan),
        key,
        lambda: utc_text(clock.utc()),
        every_s=VIRTUAL_EVERY_S if clock.virtual else HEAD_EVERY_S * (clock.speed or 1.0),
        synced=not clock.virtual,
    )
