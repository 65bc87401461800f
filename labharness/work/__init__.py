"""Requests to a lab, from admission to the answer."""
