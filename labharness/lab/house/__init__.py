"""The processes that outlive a command: the line owner, and the house, which keeps the tasks."""
