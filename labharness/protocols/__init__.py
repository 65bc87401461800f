"""Messages of external protocols, without any I/O."""
