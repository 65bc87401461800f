"""What a lab lacks before it can be used, and what of this machine shows it."""
