"""Advice for an instrument that does not answer: the likeliest cause first."""

from labharness.lab.config.lab_file import PortRow
from labharness.lab.config.lab_plan import LabPlan
from labharness.line import Instrument

__all__ = ["remedied"]

SILENT = "no reply within"
BROKEN = "bad reply: "
"""How the guard says that nothing came, and that what came is no whole reply."""


def remedied(plan: LabPlan, instrument: Instrument, why: str, *, heard: bool = False) -> str:
    """Add to the reason of a silence what to look at; other reasons stay as they are.

    Power, the instrument's own address, the speed of the line and its wires: a bus is silent in
    the same way for each of them, so all are named with the numbers of the lab file. A reply that
    is broken comes of the same, save of an instrument that is off.

    Args:
        plan: The lab's files.
        instrument: Who is silent.
        why: What is known.
        heard: Whether another instrument on the same port has answered.
    """
    row = next(row for row in plan.file.port if row.name == instrument.port)
    silent = SILENT in why
    if row.link == "loopback" or not (silent or BROKEN in why):
        return why
    looks = [*_address(plan, instrument), *_link(row, instrument)]
    if silent:
        looks.insert(0, "that it is on")
    named = "" if why.startswith(instrument.name) else f"{instrument.name} ({instrument.kind}): "
    others = f"; others on port {row.name!r} answer, so the port itself works" if heard else ""
    return f"{named}{why}; see {', '.join(looks)}{others}"


def _address(plan: LabPlan, instrument: Instrument) -> list[str]:
    settings = next(each.settings for each in plan.file.instrument if each.name == instrument.name)
    for key in ("unit", "address"):
        address = settings.get(key, getattr(instrument.driver, key, None))
        if address is not None:
            return [f"that its own address is {address}"]
    return []


def _link(row: PortRow, instrument: Instrument) -> list[str]:
    if row.link == "serial":
        factory = instrument.driver.baud
        leaves = f" (it leaves the factory with {factory})" if factory not in (0, row.baud) else ""
        return [
            f"that it is set to {row.baud} baud{leaves}, parity {row.parity}, {row.stop_bits} stop "
            f"bit{'s' * (row.stop_bits > 1)}",
            f"and the wires from {row.path}: plugs, ground, A and B (or RX and TX) exchanged",
        ]
    if row.link == "tcp":
        return [
            f"that {row.host}:{row.port} is its address and no other machine's",
            "that nobody else holds its connection",
            "and, behind a serial server, that server's baud rate and the wires to it",
        ]
    where = row.resource or row.url
    return [f"that {where} is its address", "and that no other program holds it"]
