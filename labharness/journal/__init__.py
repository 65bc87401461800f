"""The journal: facts appended once, hash-chained, with the samples and artifacts of a run."""

from labharness.journal.store import Journal, JournalFailed, SqliteJournal, block_lab_s

__all__ = ["Journal", "JournalFailed", "SqliteJournal", "block_lab_s"]
