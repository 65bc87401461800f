"""The harness as a service: callers elsewhere reach a lab's house through a message broker."""
