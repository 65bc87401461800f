"""(being built)."""
