"""The declaration of `iv-curve`: inputs, outputs and hazards that callers see."""

from labharness.work.admission.declaration import Declaration, DeclaredConstraints, Safety

__all__ = ["DECLARATION"]


def _number(text: str, **bounds: float) -> dict[str, object]:
    return {"type": "number", **bounds, "description": text}


DECLARATION = Declaration(
    name="iv-curve",
    version="1.0.0",
    description="Sweep a voltage, measure the current, and characterise the junction",
    input_schema={
        "type": "object",
        "required": ["start_v", "stop_v", "points"],
        "additionalProperties": False,
        "properties": {
            "start_v": _number("First voltage, V"),
            "stop_v": _number("Last voltage, V"),
            "points": {"type": "integer", "minimum": 2, "maximum": 1000},
            "compliance_a": _number("Highest current; 0.01 if left out, A", exclusiveMinimum=0),
            "junction_c": _number(
                "Temperature of the junction; 25 if left out, degC", minimum=-270
            ),
        },
    },
    output_schema={
        "type": "object",
        "properties": {
            "points": {"type": "integer", "description": "Voltages that were measured"},
            "max_current_a": _number("Highest current of either sign, A"),
            "ideality": {"type": ["number", "null"], "description": "Ideality of the junction"},
            "series_ohm": {"type": ["number", "null"], "description": "Series resistance, ohm"},
        },
    },
    safety=Safety(
        risk_ceiling="R3",
        requires_human_approval=False,
        involves_physical_resources=True,
        resource_types=("source_meter",),
    ),
    constraints=DeclaredConstraints(max_duration="PT4H"),
)
