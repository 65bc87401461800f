"""JSON messages for drivers: ``{"id", "command", "parameters"}`` and their replies."""

import json
from collections.abc import Callable, Mapping

from labharness.core.vocabulary import BadReply, Message, Request, Transaction
from labharness.instruments.driver.driver import fault

__all__ = ["ID_DIGITS", "message_request", "results"]

NO_ERRORS = rb'(?s:.*"errors"\s*:\s*\[\s*\].*)'
ID_DIGITS = 10  # a fixed width, so that the port can fill the id in after the frame was checked


def message_request(
    command: str, parameters: Mapping[str, object], *, timeout_s: float = 2.0
) -> Request:
    """Make the request for one JSON command; its ``id`` is left blank for the port to fill in."""
    head = '{"id":'
    text = (
        f'{head}{"1" + "0" * (ID_DIGITS - 1)},"command":{json.dumps(command)},'
        f'"parameters":{json.dumps(dict(parameters))}}}'
    )
    return Request(
        text.encode(),
        Message(command),
        timeout_s,
        transaction=Transaction(len(head), ID_DIGITS, ascii=True),
        obeyed=NO_ERRORS,
    )


def results(what: str) -> Callable[[bytes], Mapping[str, object]]:
    """Return the decoder of a reply's ``results``; an entry in ``errors`` is a ``DeviceFault``."""

    def decode(reply: bytes) -> Mapping[str, object]:
        body = json.loads(reply)
        errors = body.get("errors")
        if errors:
            listed = errors if isinstance(errors, list) else [errors]
            raise fault(what, "; ".join(map(str, listed)))
        found = body.get("results")
        if not isinstance(found, dict):
            raise BadReply(f"{what}: the reply has no results")
        return found

    return decode
