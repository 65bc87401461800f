"""Campaigns: one series of tasks over several labs, above their houses."""
