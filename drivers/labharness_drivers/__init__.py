"""Drivers shipped with labharness: one module per instrument kind."""
