"""The journal: facts appended once, hash-chained, with the samples and artifacts of a run."""

from typing import TYPE_CHECKING

from labharness.core.on_demand import on_demand

if TYPE_CHECKING:
    from labharness.journal.layout import JournalDamaged, JournalFailed
    from labharness.journal.store import Journal, SqliteJournal, block_lab_s

__getattr__ = on_demand(__name__, "layout", "store")
