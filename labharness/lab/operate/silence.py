"""Advice for an instrument that does not answer: the likeliest cause first."""

from collections.abc import Iterator

from labharness.core.vocabulary.texts import Text, texts_in
from labharness.instruments.link.descriptors import openers
from labharness.lab.config.lab_file import PortRow
from labharness.lab.config.lab_plan import LabPlan
from labharness.line import Instrument

SILENT, OWN = "reply.none", "reply.own"
BROKEN = frozenset({"reply.bad", "reply.short"})
"""The codes of no reply at all, and of one that is not whole or not in form."""


def remedied(plan: LabPlan, instrument: Instrument, why: str, *, heard: bool = False) -> str:
    """Add advice to the reason of a silence; other reasons stay the same.

    A bus is silent in the same way for a lack of power, a wrong address, a wrong speed and a broken
    wire. So all are named, with the numbers of the lab file. A broken reply has the same causes,
    except that its instrument is on.

    Args:
        plan: The lab's files.
        instrument: The silent instrument.
        why: The text of the error.
        heard: Whether another instrument on the same port has answered.
    """
    row = next(row for row in plan.file.port if row.name == instrument.port)
    said = list(texts_in(why))
    codes = {each.code for each in said}
    if OWN in codes or row.link == "loopback" or not codes & {SILENT, *BROKEN}:
        return why
    looks = [Text("silence.on")] if SILENT in codes else []
    looks += [Text("silence.taken", by=by) for by in openers(row.path or "")]
    looks += [*_address(plan, instrument), *_link(row, instrument)]
    if not any(each.params.get("instrument") == instrument.name for each in said):
        why = Text("instrument.wrong", instrument=instrument.name, kind=instrument.kind, why=why)
    others = Text("silence.others", port=row.name) if heard else ""
    return Text("silence.look", why=why, looks=looks, others=others)


def _address(plan: LabPlan, instrument: Instrument) -> Iterator[Text]:
    settings = next(each.settings for each in plan.file.instrument if each.name == instrument.name)
    for key in ("unit", "address"):
        address = settings.get(key, getattr(instrument.driver, key, None))
        if address is not None:
            yield Text("silence.address", address=address)
            return


def _link(row: PortRow, instrument: Instrument) -> Iterator[Text]:
    if row.link == "serial":
        factory = instrument.driver.baud
        yield Text(
            "silence.speed",
            baud=row.baud,
            leaves=Text("silence.factory", baud=factory) if factory not in (0, row.baud) else "",
            parity=row.parity,
            stop_bits=row.stop_bits,
        )
        yield Text("silence.wires", path=row.path)
    elif row.link == "tcp":
        yield Text("silence.tcp", host=row.host, port=row.port)
        yield Text("silence.connection")
        yield Text("silence.server")
    else:
        yield Text("silence.where", where=row.resource or row.url)
        yield Text("silence.program")
