"""One request from its arrival to its answer."""
