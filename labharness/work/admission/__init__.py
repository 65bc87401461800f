"""Admission, HCP layer 3: whether a request may run, decided over facts that are handed in."""
