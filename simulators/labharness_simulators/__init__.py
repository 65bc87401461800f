"""Simulated instruments: one wire face per kind, and the plants behind them."""
