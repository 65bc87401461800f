"""The journal: facts appended once, hash-chained, with the samples and artifacts of a run."""
