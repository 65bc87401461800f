"""The composition root: a line, its guard, alarms and people, wired from a lab's files."""
