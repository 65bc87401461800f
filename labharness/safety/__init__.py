"""What keeps a line safe: the kernel judges, the guard lets out, alarms call people."""
