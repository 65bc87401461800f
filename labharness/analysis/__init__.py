"""Analyse spectra: lines with their errors, and the number of layers of a film."""
