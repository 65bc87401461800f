"""The declaration of the CVD capability: the example of HCP L3, with strict inputs."""

from labharness.work.admission.declaration import Declaration, DeclaredConstraints, Safety
from labharness.work.capability.channels import number

RECIPE = {
    "type": "object",
    "description": "Growth parameters; what is left out has the line's default",
    "additionalProperties": False,
    "properties": {
        "temperature_c": number("Growth temperature within temperature_range, degC"),
        "dwell_s": number("Time at the growth temperature, s", minimum=0),
        "ramp_c_per_min": number("Heating rate, degC/min", minimum=0),
        "argon_sccm": number("Carrier gas during growth, sccm", minimum=0),
        "hydrogen_sccm": number(
            "Hydrogen during growth; it raises the risk to R4, sccm", minimum=0
        ),
        "moo3_mass_mg": number(
            "Mass of MoO3; published growths take up to 400, mg", minimum=0, maximum=500
        ),
        "sulfur_mass_mg": number(
            "Mass of sulfur; published growths take up to 800, mg", minimum=0, maximum=2000
        ),
        "sulfur_temperature_c": number("Temperature of the sulfur boat, degC", minimum=0),
        "sample_id": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    },
}

NUMBERS = {"type": "array", "items": {"type": "number"}}

DECLARATION = Declaration(
    name="cvd-material-synthesis",
    version="1.0.0",
    description=(
        "Synthesize 2D materials via Chemical Vapor Deposition with parameter control and Raman "
        "spectroscopy analysis"
    ),
    input_schema={
        "type": "object",
        "required": ["target_material", "substrate"],
        "additionalProperties": False,
        "properties": {
            "target_material": {"type": "string", "description": "Target material formula"},
            "substrate": {"type": "string", "description": "Substrate material"},
            "temperature_range": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "min": {"type": "number"},
                    "max": {"type": "number"},
                    "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
                },
            },
            "recipe": RECIPE,
        },
    },
    output_schema={
        "type": "object",
        "properties": {
            "raman_analysis": {"type": "object"},
            "growth_log": {"type": "array"},
            "peak_distance": number("A1g-E2g peak distance in cm^-1"),
            "layer_count": {
                "type": "integer",
                "minimum": 1,
                "maximum": 6,
                "description": "Predominant layer count of the film; 6 means six or more",
            },
            "confidence": number("Probability that film.headline is right", minimum=0, maximum=1),
            "film": {
                "type": "object",
                "description": "Shares of layers, bare substrate and what was not judged",
                "properties": {
                    "headline": {"type": "string"},
                    "claim": {"enum": ["film", "place", "mainly", "mixed"]},
                    "of_film": {"type": "object"},
                    "of_area": {"type": "object"},
                    "bare": {"type": "object"},
                },
                "additionalProperties": False,
            },
            "intent": {
                "type": "object",
                "description": "Whether the thickness that the task's words name was found",
                "properties": {
                    "words": {"type": "string"},
                    "met": {"type": ["boolean", "null"]},
                    "said": {"type": "string"},
                },
                "additionalProperties": False,
            },
            "spectrum_data": {
                "type": "object",
                "properties": {"raman_shift": NUMBERS, "intensity": NUMBERS},
                "additionalProperties": False,
            },
        },
    },
    safety=Safety(
        risk_ceiling="R4",
        requires_human_approval=True,
        involves_physical_resources=True,
        resource_types=("high_temperature_furnace", "gas_supply", "vacuum_system"),
        hazard_categories=("high_temperature", "toxic_gas"),
        hazards_by=(
            ("flammable_gas", "inputs.recipe.hydrogen_sccm above 0"),
            ("laser", "the Raman spectra of the film"),
        ),
    ),
    constraints=DeclaredConstraints(max_duration="PT72H", concurrent_limit=1),
    temperature_input="temperature_range",
)
