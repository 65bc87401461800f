"""Raman characterisation of a film: layers, with shares and confidence.

A task that brings its spectra needs no line. One that names a sample has it put under the line's
microscope, which maps it by the same steps as a growth does.
"""

from labharness.work.capability.raman_characterization.mapped import MappedSample
from labharness.work.capability.raman_characterization.settings import RamanSettings

__all__ = ["CAPABILITY", "RamanSettings"]

CAPABILITY = MappedSample()
