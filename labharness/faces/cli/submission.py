"""The file of a task: one HCP ``task_submit`` message, read for a command."""

from pathlib import Path

from labharness.core.files.named import open_named
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli.show import looking
from labharness.protocols.hcp.codec import MESSAGE_BYTES_MAX, HcpMessage, NotHcp, decode
from labharness.protocols.hcp.messages import TaskSubmit

A_TASK = "examples/mos2-monolayer.json"  # of the checkout, and of the README


def read_submit(path: Path) -> tuple[HcpMessage, TaskSubmit]:
    """Read a ``task_submit`` from a file.

    Raises:
        NotHcp: The file does not hold an HCP message, or holds another one.
        BadPayload: Its payload cannot be read.
    """
    with looking(path, NotHcp), open_named(path) as file:
        data = file.read(MESSAGE_BYTES_MAX + 1)
    if len(data) > MESSAGE_BYTES_MAX:
        why: str = Text("cli.too_many_bytes", most=MESSAGE_BYTES_MAX)
        raise NotHcp("cli.not_hcp", path=str(path), why=why)
    try:
        message = decode(data)
    except NotHcp as refused:
        is_json = data.lstrip().startswith(b"{")
        why = str(refused) if is_json else Text("cli.task", why=str(refused), path=A_TASK)
        raise NotHcp("cli.not_hcp", path=str(path), why=why) from None
    if not isinstance(message.payload, TaskSubmit):
        raise NotHcp("cli.no_submit", path=str(path), type=repr(message.type))
    return message, message.payload
