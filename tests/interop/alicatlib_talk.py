"""What alicatlib is asked, in a Python of its own: the path of a port in, one JSON object out."""

import asyncio
import json
import sys
from importlib import import_module
from typing import Any


async def talk(path: str) -> dict[str, Any]:
    alicatlib = import_module("alicatlib")
    async with await alicatlib.open_device(path, unit_id="A") as argon:
        found: dict[str, Any] = {"kind": type(argon).__name__, "model": argon.info.model}
        found["firmware"] = str(argon.info.firmware)
        reading = await argon.poll()
        found["gas"], found["unit"] = reading.values["Gas"], reading.unit_id
        await argon.setpoint(12.5)
        found["set"] = (await argon.setpoint()).requested
        found["shown"] = (await argon.poll()).values["Mass_Flow_Setpt"]
        await argon.setpoint(0.0)
        found["ended"] = (await argon.setpoint()).requested
        try:
            await argon.average_timing(1)  # DCA is not simulated
        except alicatlib.AlicatError as why:
            found["refused"] = [type(why).__name__, str(why)]
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(talk(sys.argv[1]))))
