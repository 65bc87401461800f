"""The declaration of ``raman-characterization``: stored spectra, or a map by the line's microscope.

One capability, two forms (`form_of`): what a caller reads is that of the form on the line.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from labharness.work.admission.declaration import Declaration, DeclaredConstraints, Safety
from labharness.work.capability.channels import number
from labharness.work.capability.raman_characterization.spectra import POINTS_MAX, SPECTRA_MAX

MEASURE: Final = "measure"
"""The input that asks for the microscope."""

ORIGIN: Final = "origin"
ORIGINS: Final = ("cvd", "exfoliated", "transferred", "unknown")
"""The input that says how the film was made; the strain that it may have follows from it."""

NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": POINTS_MAX}
SOME_NUMBERS = {"type": "array", "items": {"type": "number"}}

SPECTRUM = {
    "type": "object",
    "required": ["raman_shift", "intensity"],
    "additionalProperties": False,
    "properties": {
        "raman_shift": {**NUMBERS, "description": "cm^-1, ascending"},
        "intensity": {**NUMBERS, "description": "Counts"},
        "x_um": number("Place, um"),
        "y_um": number("Place, um"),
        "exposure_s": number("Exposure, s", exclusiveMinimum=0),
    },
}

DECLARATION = Declaration(
    name="raman-characterization",
    version="1.0.0",
    description=(
        "Judge the layers of an MoS2 film by Raman spectra: stored ones (R1), or a map that the "
        "line's microscope takes (R3)"
    ),
    input_schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            MEASURE: {
                "type": "object",
                "description": "The sample that is put under the microscope, and mapped",
                "required": ["sample_id"],
                "additionalProperties": False,
                "properties": {
                    "sample_id": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"}
                },
            },
            "spectra": {
                "type": "array",
                "minItems": 1,
                "maxItems": SPECTRA_MAX,
                "items": SPECTRUM,
            },
            "spectra_uri": {
                "type": "string",
                "maxLength": 2_000,
                "description": "hcp:// address of raw_spectrum of an earlier run",
            },
            ORIGIN: {
                "type": "string",
                "enum": list(ORIGINS),
                "description": "How the film was made; unknown if left out",
            },
            "dark_counts": number(
                "Counts of the camera without light, of stored spectra; 0 if left out", minimum=0
            ),
        },
    },
    output_schema={
        "type": "object",
        "required": ["peak_distance", "layer_count", "confidence", "film", "raman_analysis"],
        "properties": {
            "peak_distance": number("A1g-E2g peak distance in cm^-1"),
            "layer_count": {"type": "integer", "minimum": 1, "maximum": 6},
            "confidence": number("Probability that film.headline is right", minimum=0, maximum=1),
            "film": {"type": "object"},
            "raman_analysis": {"type": "object"},
            "spectrum_data": {
                "type": "object",
                "description": "The clearest spectrum of a map",
                "properties": {"raman_shift": SOME_NUMBERS, "intensity": SOME_NUMBERS},
                "additionalProperties": False,
            },
        },
    },
    safety=Safety(
        risk_ceiling="R4",
        requires_human_approval=True,
        involves_physical_resources=True,
        resource_types=("raman_microscope",),
        hazards_by=(("laser", f"inputs.{MEASURE}"),),
    ),
    constraints=DeclaredConstraints(max_duration="PT24H"),
    references=("spectra_uri",),
)

BY_STORED_SPECTRA = replace(
    DECLARATION,
    output_schema={
        **DECLARATION.output_schema,
        "properties": {
            name: each
            for name, each in DECLARATION.output_schema["properties"].items()
            if name != "spectrum_data"
        },
    },
    safety=Safety(
        risk_ceiling="R1",
        requires_human_approval=False,
        involves_physical_resources=False,
        side_effects="none",
    ),
    constraints=DeclaredConstraints(max_duration="PT30M", concurrent_limit=2),
)


def origin_of(inputs: Mapping[str, Any]) -> str:
    """Return how the film was made, as far as the caller says."""
    return str(inputs.get(ORIGIN, "unknown"))
