"""A submission, and the verdict of the audit on variations of it."""

from dataclasses import dataclass, replace

from labharness.protocols.hcp.terms import Rejected, Submission
from labharness.work.admission.audit import Screened, screen
from labharness.work.admission.callers import Caller
from labharness.work.admission.declaration import Declaration, DeclaredConstraints, Safety
from labharness.work.admission.risk import RiskAssessment, RiskContext, weigh

CVD = Declaration(
    name="cvd-material-synthesis",
    version="1.0.0",
    description="Synthesize 2D materials",
    input_schema={
        "type": "object",
        "required": ["target_material", "substrate"],
        "properties": {
            "target_material": {"type": "string"},
            "substrate": {"type": "string"},
            "temperature_range": {
                "type": "object",
                "properties": {
                    "min": {"type": "number"},
                    "max": {"type": "number"},
                    "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
                },
            },
        },
    },
    output_schema={
        "type": "object",
        "properties": {"peak_distance": {}, "layer_count": {}, "confidence": {}},
    },
    safety=Safety("R4", True, True, ("high_temperature_furnace",), ("high_temperature",)),
    constraints=DeclaredConstraints("PT72H", 1),
    temperature_input="temperature_range",
)


TEXT = replace(
    CVD, name="document-analysis", safety=Safety("R1", False, False, side_effects="none")
)


CALLER = Caller("harness-alpha-001", ("cvd-material-synthesis",), "R3", "T2")


SUBMISSION = Submission(
    caller_id="harness-alpha-001",
    capability="cvd-material-synthesis",
    capability_version="1.x",
    intent="Synthesize monolayer MoS2",
    inputs={
        "target_material": "MoS2",
        "substrate": "SiO2/Si",
        "temperature_range": {"min": 700, "max": 750, "unit": "celsius"},
    },
    max_duration="PT72H",
    confidence_threshold=0.95,
    data_classification="T2",
    output_format="raman_spectrum_analysis",
    required_fields=("peak_distance", "layer_count", "confidence"),
    output_schema={"type": "object", "required": ["peak_distance"]},
)


ARGON = RiskContext(
    process_gases=("argon",),
    undeclared_gases=(),
    temperature_c_max=750.0,
    physical=True,
    hazardous=True,
    attended=True,
    attended_at="",
    shared_instrument=False,
    safeguards_missing=(),
    stays_energised=(),
)


@dataclass(frozen=True, slots=True)
class Admitted:
    """A submission that may run, and its risk."""

    screened: Screened
    risk: RiskAssessment


def judged(
    submission: Submission = SUBMISSION,
    caller: Caller | None = CALLER,
    context: RiskContext = ARGON,
    declarations: tuple[Declaration, ...] = (CVD, TEXT),
) -> Admitted | Rejected:
    formats = {"raman_spectrum_analysis"}
    screened = screen(submission, caller=caller, declarations=declarations, formats=formats)
    if isinstance(screened, Rejected):
        return screened
    risk = weigh(screened, context)
    return risk if isinstance(risk, Rejected) else Admitted(screened, risk)
