"""Messages of the protocols that others speak, without any I/O."""
