"""numat's alicat (GPL) on the simulated Alicat MC."""

import asyncio

import pytest

from interop.conftest import client, terminal
from served import Served

pytestmark = pytest.mark.filterwarnings("ignore")  # a client's own


def test_it_reads_sets_and_is_told_what_is_refused(lab: Served) -> None:
    alicat = client("alicat")

    async def talk() -> None:
        async with alicat.FlowController(address=terminal(lab, "inert"), unit="A") as argon:
            found = await argon.get()
            assert (found["control_point"], found["gas"]) == ("mass flow", "Ar")
            await argon.set_flow_rate(12.5)
            assert (await argon.get())["setpoint"] == 12.5
            assert "10v20" in await argon.get_firmware()
            await argon.lock()
            assert await argon.is_locked()
            await argon.unlock()
            await argon.hold()
            await argon.cancel_hold()
            await argon.set_flow_rate(0.0)
            with pytest.raises(OSError, match="Unable to create mix"):
                await argon.create_mix(236, "mine", {"Ar": 50, "N2": 50})

    asyncio.run(talk())
