"""HCP, by which other harnesses submit tasks: messages and session states, without any I/O."""
