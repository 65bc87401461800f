"""Deterministic fault search with a referee on the plant's truth. Nothing is built here yet."""
