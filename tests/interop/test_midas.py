"""numat's midas (GPL) on the simulated Honeywell gas detector."""

import asyncio

import pytest

from interop.conftest import MIDAS_PORT, client
from served import Served

pytestmark = pytest.mark.filterwarnings("ignore")  # a client's own


def test_it_reads_and_is_told_that_nothing_can_be_set(lab: Served) -> None:
    midas = client("midas")
    if lab.address("detector")[1] != MIDAS_PORT:
        pytest.skip(f"another program has port {MIDAS_PORT}")

    async def talk() -> None:
        async with midas.GasDetector("127.0.0.1") as detector:
            found = await detector.get()
            assert (found["state"], found["units"], found["alarm"]) == ("Monitoring", "ppm", "none")
            lab.ask("fault", set={"h2_detector_offset_ppm": 150})
            await asyncio.sleep(1.0)
            found = await detector.get()
            assert found["concentration"] == pytest.approx(150, abs=20)
            assert found["alarm"] == "low"
            lab.ask("fault", set={"h2_detector_offset_ppm": 0})
            # It looks at no exception: what was asked shows in what does not happen.
            await detector.inhibit_alarms()
            assert (await detector.get())["state"] == "Monitoring"

    asyncio.run(talk())
