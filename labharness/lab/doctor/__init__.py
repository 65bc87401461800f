"""The doctor: finds faults of a lab and its machine before the lab is used."""
