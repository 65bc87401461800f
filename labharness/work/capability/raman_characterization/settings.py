"""The table ``[capability.raman-characterization]`` of a lab file."""

from labharness.work.capability.raman_map import MicroscopeSettings


class RamanSettings(MicroscopeSettings):
    """The microscope. One without ``laser_nm`` takes no spectra: only stored ones are judged."""
