"""The safety of a line: the kernel judges commands, the guard sends frames, alarms call people."""
