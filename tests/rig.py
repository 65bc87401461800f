"""What tests share: the proof of the wire, messages to submit, and what a run left behind."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labharness.admission.approval import StandingApproval, sign, write_approval
from labharness.guard import Source
from labharness.hcp.codec import Message, decode
from labharness.hcp.messages import TaskSubmit
from labharness.lab import Lab, LabPlan, read_lab
from labharness.lab.tasks import RunResult, repository_key
from labharness.vocabulary import Request

HERE = Path(__file__).parent
EXAMPLE = HERE.parent / "examples" / "mos2-monolayer.json"
SHORT_LINE = HERE / "short_line.toml"


def prove_sources(lab: Lab) -> None:
    """Hold what the instruments heard against what the guard let out, port by port."""
    if lab.simulated is None:
        return
    log = lab.guard.core.log or []
    for port, bus in lab.simulated.buses.items():
        left = [sent for sent in log if sent.port == port]
        heard = bus.record.frames if bus.record is not None else []
        state = lab.guard.core.ports[port]
        procedures = {
            safe.request.frame
            for frames in lab.guard.core.procedures.values()
            for safe in frames
            if safe.port == port
        }
        blanks = [request for request in _requests(lab, port) if request.transaction is not None]
        for sent in left:
            frame = _blanked(sent.frame, blanks)
            if sent.source is Source.READ:
                assert frame in state.reads, f"{port}: {frame!r} left as a read and is none"
            elif sent.source is Source.PROCEDURE:
                assert frame in procedures, f"{port}: {frame!r} left as a procedure and is none"
            else:
                assert frame not in state.reads, f"{port}: {frame!r} is a read under permit"
        if bus.faults.any_ever():
            rest = iter(sent.frame for sent in left)
            assert all(frame in rest for frame in heard), f"{port}: a frame without a source"
        else:
            assert heard == [sent.frame for sent in left], f"{port}: the two ends differ"


def _requests(lab: Lab, port: str) -> list[Request]:
    requests = []
    for instrument in lab.plan.instruments:
        if instrument.port == port:
            requests += [scan.request for scan in instrument.driver.scans()]
            requests += [query.request for query in instrument.driver.queries()]
            requests.append(instrument.driver.identify().request)
    return requests


def _blanked(frame: bytes, requests: list[Request]) -> bytes:
    """Put the blank transaction field back, as the frame was when it was checked."""
    for request in requests:
        blank = request.transaction
        if blank is not None:
            end = blank.offset + blank.size
            frame = frame[: blank.offset] + request.frame[blank.offset : end] + frame[end:]
            break
    return frame


@dataclass
class Ran:
    """One run, and what a test wants to know of it."""

    result: RunResult
    lab: Lab
    events: list[tuple[str, Mapping[str, Any]]]

    @property
    def type(self) -> str:
        return self.result.message.type

    @property
    def body(self) -> dict[str, Any]:
        return self.result.message.payload.model_dump(by_alias=True, exclude_unset=True)

    @property
    def truth(self) -> dict[str, Any]:
        assert self.lab.simulated is not None
        found: dict[str, Any] = self.lab.simulated.plant.truth()
        return found


@dataclass
class Injection:
    """Something that goes wrong ``after_s`` of lab time into a stage."""

    stage: str
    after_s: float
    act: Callable[[Lab], None]
    done: bool = field(default=False)


def submission(*, max_duration: str | None = None, **inputs: Any) -> tuple[Message, TaskSubmit]:
    """The example's message, with other inputs."""
    body = json.loads(EXAMPLE.read_text("utf-8"))
    if max_duration is not None:
        body["payload"]["constraints"]["max_duration"] = max_duration
    body["payload"]["inputs"].update(inputs)
    return message_of(body)


def message_of(body: Mapping[str, Any]) -> tuple[Message, TaskSubmit]:
    """Read a message from a JSON object."""
    message = decode(json.dumps(body).encode())
    assert isinstance(message.payload, TaskSubmit)
    return message, message.payload


def approved_copy(
    folder: Path,
    *,
    temperature_c_max: float = 799.0,
    gases: tuple[str, ...] = ("argon", "nitrogen"),
    edit: Callable[[str], str] = str,
) -> LabPlan:
    """The short line in a folder of its own, with a test approval up to R4."""
    lab = SHORT_LINE.read_text("utf-8").replace("../envelopes", str(HERE.parent / "envelopes"))
    (folder / "lab.toml").write_text(edit(lab), "utf-8")
    envelope = (HERE / "short_line_envelope.toml").read_text("utf-8")
    (folder / "short_line_envelope.toml").write_text(edit(envelope), "utf-8")
    plan = read_lab(folder / "lab.toml")
    approval = StandingApproval(
        id="test",
        capability="cvd-material-synthesis",
        risk_max="R4",
        input_limits={"temperature_c_max": temperature_c_max},
        gases_allowed=gases,
        envelope_digest=plan.envelope_digest,
        lab_digest=plan.lab_digest,
        given_by="the tests",
        reason="simulated",
        until="2036-01-01T00:00:00Z",
        links="loopback",
    )
    text = write_approval(sign(approval, repository_key()))
    (folder / "short_line_approval.toml").write_text(text, "utf-8")
    return plan
