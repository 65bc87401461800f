"""Files: opened by name without waiting, written durably, read as strict TOML."""
