"""The ground that every room stands on: time, chance, and the shared value types."""
