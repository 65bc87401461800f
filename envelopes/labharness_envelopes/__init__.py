"""Shipped envelopes: data only, one TOML file per kind, and one per line."""
