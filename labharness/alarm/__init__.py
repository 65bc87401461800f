"""Alarm states, first-out grouping, shelving and channels of alert. Nothing is built here yet."""
