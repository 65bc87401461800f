"""The wire of a served dialogue: large content is compressed on it."""

import asyncio
import json
import socket
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.extensions.permessage_deflate import PerMessageDeflate

from labharness.faces.dialogue.server import ADDRESS_FILE, serve_sockets
from talking import Served


def test_large_content_is_compressed_on_the_wire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def extensions() -> list[object]:
        rooms, told = Served(tmp_path, monkeypatch), asyncio.Event()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            serving = asyncio.create_task(serve_sockets(rooms, listening, lambda said: told.set()))
            await told.wait()
            address = json.loads((tmp_path / ADDRESS_FILE).read_text("utf-8"))["address"]
            async with connect(f"{address}?caller=ana") as client:
                await client.send("{}")
                assert "VALIDATION_ERROR" in str(await client.recv())
                found: list[object] = [*client.protocol.extensions]
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        return found

    assert [type(each) for each in asyncio.run(extensions())] == [PerMessageDeflate]
