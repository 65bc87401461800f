"""Simulated instruments: one wire face per kind, and the plants that they measure and control."""
