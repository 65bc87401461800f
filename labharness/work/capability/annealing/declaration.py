"""What callers see of annealing."""

from labharness.work.admission.declaration import Declaration, DeclaredConstraints, Safety

__all__ = ["DECLARATION"]


def _amount(what: str, unit: str, low: float = 0.0) -> dict[str, object]:
    return {"type": "number", "exclusiveMinimum": low, "description": f"{what}, {unit}"}


DECLARATION = Declaration(
    name="annealing",
    version="1.0.0",
    description="Heat a sample under inert gas, keep it at a temperature, and cool it",
    input_schema={
        "type": "object",
        "required": ["temperature_c", "duration_s"],
        "additionalProperties": False,
        "properties": {
            "temperature_c": _amount("Temperature of the dwell", "degC", 60.0),
            "duration_s": _amount("Time at that temperature", "s"),
            "ramp_c_per_min": _amount("Heating rate; 10 if it is left out", "degC/min"),
            "flow_sccm": _amount("Flow of the inert gas; 100 if it is left out", "sccm"),
        },
    },
    output_schema={
        "type": "object",
        "properties": {
            "max_temperature_c": {"type": "number", "description": "Highest reading, degC"},
            "dwell_mean_c": {"type": "number", "description": "Mean reading of the dwell, degC"},
            "dwell_reached": {
                "type": "boolean",
                "description": "Whether the whole dwell was within 5 degC of what was asked",
            },
        },
    },
    safety=Safety(
        risk_ceiling="R4",
        requires_human_approval=True,
        involves_physical_resources=True,
        resource_types=("high_temperature_furnace", "gas_supply"),
        hazard_categories=("high_temperature",),
    ),
    constraints=DeclaredConstraints(max_duration="PT72H"),
)
