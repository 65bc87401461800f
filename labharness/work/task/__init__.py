"""Tasks by event sourcing: commands become facts, a journal keeps them, the state follows."""
