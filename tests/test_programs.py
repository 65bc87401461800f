"""Programs that an instrument runs by itself: judged whole, read back, started, and stopped."""

from labharness.testing.bench import Bench, VirtualTime
from labharness.vocabulary import Ending
from pathlib import Path
from programmed import program, prepared, programmed


def test_smoke(tmp_path: Path, simulated_lab: Bench, virtual_time: VirtualTime) -> None:
    bench = simulated_lab.on(programmed(tmp_path))

    async def main() -> None:
        async with bench.running() as lab:
            await prepared(lab)
            up = await lab.line.programs.upload("furnace", program())
            assert up.ending is Ending.CONFIRMED, up
            print(up)
            started = await lab.line.programs.start("furnace")
            assert started.ending is Ending.CONFIRMED, started
            for n in range(30):
                for _ in range(60):
                    await lab.line.next_tick()
                print(n, [round(lab.line.latest(f"furnace.{c}"),1) for c in ("temperature","working_setpoint","program_status","segment","segment_left","program_left")], lab.line.memory.track("furnace.setpoint").doubt)
            assert 0
    virtual_time.run(main())
