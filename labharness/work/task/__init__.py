"""Durable tasks: commands decided into facts, the state folded of them, a journal to keep them."""
