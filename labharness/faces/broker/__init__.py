"""A message broker, as both ends of a connection have it: callers, and labs that serve them."""
