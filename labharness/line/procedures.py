"""Safe procedures: compiled into frames for the guard, and the verification of each step."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from labharness.core.vocabulary import Nothing
from labharness.core.vocabulary.texts import Text
from labharness.line.instrument import Instrument, channel_of
from labharness.safety.guard import SafeFrame
from labharness.safety.kernel import Envelope, EnvelopeInvalid, Procedure


class StepState(StrEnum):
    """The result of verifying one step of a procedure."""

    VERIFIED = "verified"
    MISMATCH = "mismatch"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verification:
    """The verification of a procedure: one state for each step.

    Attributes:
        procedure: Its name.
        steps: For each channel the value wanted, the value read (or ``None``), and the state.
        within_s: Lab time from the trip to the end of verification.
        contradicted: Texts of measurements that contradict its steps; known only after them.
    """

    procedure: str
    steps: tuple[tuple[str, float, float | None, StepState], ...]
    within_s: float
    contradicted: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every step is verified, and no measurement contradicts it."""
        verified = all(state is StepState.VERIFIED for *_, state in self.steps)
        return verified and not self.contradicted

    def unverified(self) -> tuple[str, ...]:
        """Return texts for the steps that are not verified, and for the contradictions."""
        steps = (
            Text(
                "step.state",
                channel=channel,
                value=wanted,
                state=state,
                found="" if found is None else Text("step.reads", value=found),
            )
            for channel, wanted, found, state in self.steps
            if state is not StepState.VERIFIED
        )
        return (*steps, *self.contradicted)


def compile_procedures(
    envelope: Envelope, instruments: Mapping[str, Instrument]
) -> dict[str, tuple[SafeFrame, ...]]:
    """Turn each procedure's steps into the frames that leave, with their meaning.

    Raises:
        EnvelopeInvalid: A step names a channel that is missing, or a value the wire cannot carry.
    """
    return {
        name: _compile(procedure, instruments) for name, procedure in envelope.procedures.items()
    }


def _compile(procedure: Procedure, instruments: Mapping[str, Instrument]) -> tuple[SafeFrame, ...]:
    frames: list[SafeFrame] = []
    for number, step in enumerate(procedure.steps):
        try:
            instrument, channel, spec = channel_of(instruments, step.channel)
            if spec.unit != step.unit:
                raise ValueError(f"{step.channel} is in {spec.unit!r}, not {step.unit!r}")
            requests = instrument.driver.write(channel, step.value)
            shown = instrument.driver.shown(channel, step.value)
        except (LookupError, ValueError) as why:
            raise EnvelopeInvalid(f"procedure {procedure.name!r}: {why}") from None
        what = (step.channel, step.value, step.unit)
        for request in requests:
            if not (request.obeyed or isinstance(request.reply, Nothing)):
                raise EnvelopeInvalid(
                    f"procedure {procedure.name!r}: the driver {instrument.kind} does not say "
                    f"which reply to {request.frame[:40]!r} means that {step.channel} was set "
                    "(obeyed of its Request): a refusal would pass for obedience"
                )
            last = request is requests[-1]
            shows = shown if last else None
            frames.append(SafeFrame(number, instrument.port, request, *what, shows))
    return tuple(frames)
