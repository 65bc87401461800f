"""The control port of a served lab: faults, truth, manual steps, wire log.

A request is a line of JSON (``{"ask": "truth"}``), and so is the answer: its own keys, or
``{"error": "..."}``. It controls the plant, never an instrument's bytes.
"""

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import CodedError
from labharness.instruments.simulation.bus import LoopEnvironment, SimulatedBus
from labharness.instruments.simulation.conversation import ByteLog
from labharness.instruments.simulation.served import LocalServer

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LINE_BYTES_MAX = 65_536
LOG_ROWS_AT_ONCE = 5_000
ANY_NUMBER = (0.0, 1e6)
RANGES = {
    "_share": (0.0, 1.0),
    "_c_per_s": (0.0, 1_000.0),  # the largest rate that the plant's one-second step allows
    "_s": (0.0, 3_600.0),
    "_s_max": (0.0, 3_600.0),
    "_offset_ppm": (-1e6, 1e6),
}
"""Allowed values of a fault, by the end of its name; the first match counts."""
INTERNAL = frozenset({"injected"})  # a bus's memory of its faults; not a fault itself

Answer = Mapping[str, Any]
Reply = Callable[[Answer], None]
Thing = TypeVar("Thing")


class BadRequest(CodedError, ValueError, code="bad_simulation_request", usage=True):
    """The simulated lab refuses a request; the message says what it allows."""


class NoSimulatedLab(CodedError, ConnectionError, code="no_simulated_lab"):
    """No served lab answers at this address."""


class Controlled(Protocol):
    """A plant and its buses.

    Attributes:
        plant: Has ``truth()``, and ``faults``, a dataclass.
        env: The plant's world.
        buses: The buses by port.
        faces: The instruments by name.
    """

    plant: Any
    env: LoopEnvironment
    buses: dict[str, SimulatedBus]
    faces: dict[str, Any]

    def operate(self, action: str, details: Mapping[str, object]) -> float:
        """Begin a manual step; return its duration in seconds, or raise ``ValueError``."""

    def finish(self, action: str) -> None:
        """End a manual step."""


class SimulationControl(LocalServer):
    """Listen on this machine and answer requests.

    Args:
        sim_lab: The simulated lab.
        log: The wire log.
        status: Returns the answer to ``status``.
        quit_: Called on a request to quit.
    """

    def __init__(
        self,
        sim_lab: Controlled,
        log: ByteLog,
        status: Callable[[], Answer],
        quit_: Callable[[], None],
    ) -> None:
        super().__init__("control port")
        self._sim_lab = sim_lab
        self._log = log
        self._ended = quit_
        self._does: Mapping[str, Callable[[Answer, Reply], object]] = {
            "status": lambda request, reply: reply(status()),
            "faults": lambda request, reply: reply(self._faults()),
            "truth": self._truth,
            "fault": self._fault,
            "bus": self._bus,
            "panel": self._panel,
            "bytes": self._bytes,
            "operate": self._operate,
            "quit": self._quit,
        }

    def take(self, line: bytes, reply: Reply) -> None:
        """Answer one line, at once or at the end of a manual step."""
        request = _object_in(line)
        if request is None:
            reply({"error": "a request is one JSON object on one line"})
            return
        self._sim_lab.env.sync()  # an error in the plant ends the simulated lab
        try:
            _known("simulated.word", request.get("ask"), self._does)(request, reply)
        except BadRequest as why:
            reply({"error": str(why)})
        except Exception as why:  # noqa: BLE001 - no request may end a shared lab
            reply({"error": f"it breaks on that: {type(why).__name__}: {why}"})

    def _protocol(self) -> asyncio.Protocol:
        return _Lines(self)

    def _quit(self, request: Answer, reply: Reply) -> None:
        reply({"quit": True})
        self._ended()

    def _truth(self, request: Answer, reply: Reply) -> None:
        coded = msgspec.json.encode(self._sim_lab.plant.truth(), enc_hook=float)
        reply({"truth": msgspec.json.decode(coded)})  # NaN and infinity are null

    def _faults(self) -> Answer:
        buses = {name: levels_of(bus.faults) for name, bus in self._sim_lab.buses.items()}
        return {"plant": levels_of(self._sim_lab.plant.faults), "bus": buses}

    def _fault(self, request: Answer, reply: Reply) -> None:
        set_faults(self._sim_lab.plant.faults, _object(request, "set"), "fault of the plant")
        reply(self._faults())

    def _bus(self, request: Answer, reply: Reply) -> None:
        bus = _known("simulated.port", request.get("port"), self._sim_lab.buses)
        set_faults(bus.faults, _object(request, "set"), "fault of a bus")
        reply(self._faults())

    def _panel(self, request: Answer, reply: Reply) -> None:
        name = request.get("instrument")
        face = _known("simulated.instrument", name, self._sim_lab.faces)
        try:
            face.turn(_object(request, "set"))
        except ValueError as why:
            raise BadRequest(f"{name}: {why}") from None
        reply({"panel": {each: getattr(face, each) for each in face.panel}})

    def _operate(self, request: Answer, reply: Reply) -> None:
        action = str(request.get("action"))
        try:
            takes_s = self._sim_lab.operate(action, _object(request, "details"))
        except ValueError as why:
            raise BadRequest(str(why)) from None

        def finish() -> None:
            self._sim_lab.finish(action)
            reply({"done": action, "took_s": takes_s})

        asyncio.get_running_loop().call_later(takes_s, finish)

    def _bytes(self, request: Answer, reply: Reply) -> None:
        for name in request.keys() - {"ask", "since"}:
            raise BadRequest("simulated.since", name=name)
        since = request.get("since", 0)
        if isinstance(since, bool) or not isinstance(since, int) or since < 0:
            raise BadRequest("simulated.row", since=since)
        rows = self._log.since(since, LOG_ROWS_AT_ONCE)
        listed = [[r.number, r.monotonic_ns, r.port, r.client, r.event, r.data.hex()] for r in rows]
        following = rows[-1].number + 1 if rows else max(since, self._log.count)
        reply({"rows": listed, "next": following, "count": self._log.count})


class _Lines(asyncio.Protocol):
    """One client of the control port."""

    def __init__(self, control: SimulationControl) -> None:
        self._control = control
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, asyncio.Transport):
            raise TypeError(f"{transport} is not a stream")
        self._transport = transport
        self._control.there.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._control.there.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            self._control.take(line, self._reply)
        if len(self._pending) > LINE_BYTES_MAX:
            self._reply({"error": f"a request has at most {LINE_BYTES_MAX} bytes"})
            self._transport.close()

    def _reply(self, answer: Answer) -> None:
        if not self._transport.is_closing():
            self._transport.write(json.dumps(answer, allow_nan=False).encode() + b"\n")


def ask(address: str, request: Answer, timeout_s: float) -> dict[str, Any]:
    """Ask a served lab and wait for its answer.

    Args:
        address: ``host:port`` of its control port.
        request: The request; see the module's first lines.
        timeout_s: Longest wait for the answer.

    Raises:
        NoSimulatedLab: No served lab answers there in time.
        BadRequest: The simulated lab refuses; the message says what it allows.
    """
    host, _, number = address.rpartition(":")
    data = b""
    try:
        with socket.create_connection((host, int(number)), timeout_s) as link:
            link.sendall(json.dumps(request).encode() + b"\n")
            while not data.endswith(b"\n"):
                piece = link.recv(LINE_BYTES_MAX)
                if not piece:
                    raise NoSimulatedLab("simulated.hung_up", address=address)
                data += piece
    except NoSimulatedLab:
        raise
    except TimeoutError:
        raise NoSimulatedLab("simulated.silent", address=address, timeout_s=timeout_s) from None
    except (OSError, ValueError) as why:
        raise NoSimulatedLab("simulated.none", address=address, why=str(why)) from None
    answer = _object_in(data)
    if answer is None:
        raise NoSimulatedLab("simulated.other", address=address)
    if "error" in answer:
        raise BadRequest(str(answer["error"]))
    return answer


def set_faults(faults: "DataclassInstance", values: Answer, what: str) -> None:
    """Set fields of a dataclass of faults, all or none.

    Raises:
        BadRequest: A name is unknown or a value is not allowed.
    """
    known = levels_of(faults)
    for name, value in values.items():
        now = _known("simulated.no_such", name, known, what=what)
        if isinstance(now, bool):
            fits, allowed = isinstance(value, bool), "true or false"
        elif isinstance(now, int):
            fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            allowed = "a whole number from 0"
        else:
            ends = (bounds for ending, bounds in RANGES.items() if name.endswith(ending))
            low, high = next(ends, ANY_NUMBER)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            fits, allowed = number and low <= value <= high, f"a number from {low:g} to {high:g}"
        if not fits:
            raise BadRequest("simulated.value", what=what, name=name, value=value, allowed=allowed)
    for name, value in values.items():
        setattr(faults, name, float(value) if isinstance(known[name], float) else value)


def levels_of(faults: "DataclassInstance") -> dict[str, bool | int | float]:
    """Return the faults that have a level, such as no sticking contact or lying sensor has."""
    found = {each.name: getattr(faults, each.name) for each in fields(faults)}
    return {
        name: value
        for name, value in found.items()
        if name not in INTERNAL and isinstance(value, bool | int | float)
    }


def _object_in(line: bytes) -> dict[str, Any] | None:
    """Return the object on a line of JSON; ``None`` where the line is anything else."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _known(code: str, name: Any, there: Mapping[str, Thing], **more: str) -> Thing:  # noqa: ANN401 - as it was asked
    """Return what has a name; refuse one that nothing has, with the code of the refusal."""
    if isinstance(name, str) and name in there:
        return there[name]
    near = did_you_mean(str(name), list(there))
    raise BadRequest(code, name=name, near=near, known=", ".join(there), **more)


def _object(request: Answer, name: str) -> dict[str, Any]:
    value = request.get(name, {})
    if not isinstance(value, dict):
        raise BadRequest("simulated.object", name=name, value=value)
    return value
