"""Alarm states, first-out grouping, shelving, and the channels by which people are told."""
