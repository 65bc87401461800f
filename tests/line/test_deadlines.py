"""Deadlines of making safe, in real time on the paced loop; these run alone.

Software time is the cause to the last byte of the first wave handed over, on ports that are free.
What an exchange in flight and the wire add is computed by ``labharness lab check`` per port.
"""

import statistics
from pathlib import Path

import pytest

from labharness.core.clock import Chance, Clock, PacedLoop, run
from labharness.core.vocabulary import Cause, Trip
from labharness.journal import SqliteJournal
from labharness.lab import Lab, LabPlan
from labharness.safety.guard import Source

SOFTWARE_S_MAX = 0.050  # measured: median 0.2 ms, 9 ms at worst with both cores busy
ROUNDS = 30

pytestmark = pytest.mark.serial


@pytest.mark.promise(13)
def test_a_trip_hands_its_first_wave_over_within_its_software_time(
    short_plan: LabPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    took_s = []
    for number in range(ROUNDS):
        loop = PacedLoop(1.0)
        folder = tmp_path / str(number)
        folder.mkdir()

        async def main(loop: PacedLoop = loop, folder: Path = folder) -> float:
            with SqliteJournal(folder / "journal.sqlite") as journal:
                lab = Lab(short_plan, clock=Clock(loop), chance=Chance(1), journal=journal)
                for link in lab.links.values():
                    await link.open()
                lab.guard.core.arm()
                handed_over: list[float] = []
                latch = lab.guard.latch.close

                def close(trip: Trip) -> None:
                    handed_over.append(loop.time())  # the latch comes after the last byte
                    latch(trip)

                monkeypatch.setattr(lab.guard.latch, "close", close)
                before = loop.time()
                lab.guard.trip(
                    Trip(Cause.STOP_REQUEST, "immediate_shutdown", "test", None, before, "test")
                )
                log = lab.guard.core.log or []
                first = {sent.port for sent in log if sent.source is Source.PROCEDURE}
                assert first == {
                    frame.port for frame in lab.guard.core.procedures["immediate_shutdown"]
                }
                lab.guard.latch.open()
                await lab.line.close()
                return handed_over[0] - before

        took_s.append(run(main(), loop))
    assert max(took_s) < SOFTWARE_S_MAX, f"median {statistics.median(took_s) * 1e3:.2f} ms"
