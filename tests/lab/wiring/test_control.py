"""The control socket: whom the system lets in, and the account that it says is there."""

import asyncio
import os
import stat
from collections.abc import Mapping
from getpass import getuser
from pathlib import Path
from typing import Any

import pytest

from labharness.core.vocabulary.texts import Text
from labharness.instruments.link.conversation import LineControl
from labharness.lab.wiring.control import ControlSocket


async def asked_through(
    folder: Path, *, shared: bool = False, **more: object
) -> tuple[dict[str, Any], int]:
    """Return what a request becomes on its way, and the mode of the socket."""
    heard: dict[str, Any] = {}

    async def answer(asked: Mapping[str, Any]) -> dict[str, Any]:
        heard.update(asked)
        return {"ok": True}

    def ask() -> None:
        with LineControl(folder) as control:
            control.ask(do="status", account="somebody else", **more)

    async with ControlSocket(folder, answer, 1.0, shared=shared):
        mode = stat.S_IMODE((folder / "control.sock").stat().st_mode)
        await asyncio.to_thread(ask)
    return heard, mode


@pytest.mark.parametrize(
    ("folder_mode", "shared", "mode"),
    [(0o770, True, 0o660), (0o700, True, 0o600), (0o770, False, 0o600)],
)
def test_the_group_is_let_in_only_where_folder_and_socket_are_shared(
    tmp_path: Path, folder_mode: int, shared: bool, mode: int
) -> None:
    tmp_path.chmod(folder_mode)
    assert asyncio.run(asked_through(tmp_path, shared=shared))[1] == mode


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="there are no such sockets on Windows")
def test_the_account_is_the_one_that_the_system_names(tmp_path: Path) -> None:
    heard, _ = asyncio.run(asked_through(tmp_path, shared=False))
    assert heard["account"] == getuser()


@pytest.mark.promise(53)
def test_a_text_of_a_request_arrives_as_its_code_and_parameters(tmp_path: Path) -> None:
    inner = Text("hcp.lost.reason")
    why = Text("parts", parts=[inner, Text("named", name="N2", value=3.5)])
    heard, _ = asyncio.run(asked_through(tmp_path, reason=why, by={"why": inner}))
    assert isinstance(heard["reason"], Text)
    assert (heard["reason"].code, heard["reason"]) == (why.code, why)
    assert isinstance(heard["by"]["why"], Text)
