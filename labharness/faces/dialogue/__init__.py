"""The tools that an agent is offered, and a dialogue with a model."""
