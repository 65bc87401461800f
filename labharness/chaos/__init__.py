"""Deterministic fault search: whole growths in virtual time, judged by the plant's true state."""
