"""HCP: how other harnesses submit tasks, as messages and session states without any I/O."""
