"""A dialogue with a lab, as far as it needs no model and no lab."""
