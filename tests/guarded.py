"""What tests of the guard's core share: its frames, an armed core, and what a refusal is."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from labharness.core.vocabulary import Request, Until
from labharness.safety.guard import (
    Finished,
    GuardCore,
    NotPermitted,
    Port,
    PortState,
    SafeFrame,
)

READ = Request(b"A\r", Until(b"\r", b"A"), 0.3)
WRITE = Request(b"AS5.0\r", Until(b"\r", b"A"), 0.3)
SHUT = [Request(b"shut%d\r" % number, Until(b"\r"), 0.2) for number in range(4)]
SAFE = (
    SafeFrame(0, "heat", SHUT[0], "furnace.setpoint", 0.0),
    SafeFrame(1, "gas", SHUT[1], "hydrogen.setpoint", 0.0),
    SafeFrame(2, "heat", SHUT[2], "box.contactor", 0.0),
    SafeFrame(3, "gas", SHUT[3], "argon.setpoint", 100.0),
)


def armed() -> GuardCore:
    core = GuardCore(
        {"heat": {READ.frame}, "gas": {READ.frame}},
        {"stop": SAFE, "vent": (replace(SAFE[1], step=0),), "nothing": ()},
    )
    core.log = []
    core.arm()
    return core


def state_of(port: Port) -> PortState:
    """Return a port's state afresh; mypy would remember the last one."""
    return port.state


def whole(finished: Finished | None) -> tuple[bytes | None, str]:
    """The reply and the error of an exchange that has ended."""
    assert finished is not None
    return finished.reply, finished.error


def refused(core: GuardCore, send: Callable[[], object]) -> None:
    """Expect a refusal that leaves no byte and moves no port."""
    before = [*(core.log or [])], {name: port.state for name, port in core.ports.items()}
    with pytest.raises(NotPermitted):
        send()
    after = [*(core.log or [])], {name: port.state for name, port in core.ports.items()}
    assert before == after
