"""Models that a dialogue asks: over the wire of OpenAI's interface, or from a file."""
