"""The report of a run: a page made of its journal and artifacts, and nothing else (law 8)."""
