"""A harness to be killed: it heats a served line, lets hydrogen in and sends heartbeats, unjudged.

Run as a process of its own: ``energising_harness.py LAB_FILE``. What it sends is what the
line's own drivers write; nothing judges it: no tube is purged for minutes before each kill.
"""

import asyncio
import sys
from pathlib import Path

from labharness.core.clock import PacedLoop, run
from labharness.lab import read_lab
from labharness.line.exchanges import Exchanges
from labharness.line.poll import Poller
from labharness.safety.guard.armed import ARMED_FILE, read_armed
from labharness.safety.guard.remote import RemoteGuard
from rig import SAFE_TABLE

ON = (
    ("furnace", "mode", 0.0),
    ("furnace", "setpoint", 700.0),
    ("sulfur", "mode", 0.0),
    ("sulfur", "setpoint", 200.0),
    ("box", "furnace_contactor", 1.0),
    ("box", "sulfur_contactor", 1.0),
    ("hydrogen", "setpoint", 20.0),
    ("box", "hydrogen_valve", 1.0),
)


async def main(lab_file: Path) -> None:
    """Arm, energise, and heartbeat until killed."""
    loop = asyncio.get_running_loop()
    plan = read_lab(lab_file)
    armed = read_armed((plan.state_dir / ARMED_FILE).read_text("utf-8"))
    guard = RemoteGuard(armed, plan.state_dir, ("/bin/false",))
    await guard.open()
    heartbeats = Poller(
        loop, guard, [], 1.0, lambda *_: None, lambda: None, lambda: guard.heartbeat(SAFE_TABLE)
    )
    await guard.arm()
    heartbeats.start()
    exchanges = Exchanges(guard, loop)
    instruments = {each.name: each for each in plan.instruments}
    for name, channel, value in ON:
        instrument = instruments[name]
        for request in instrument.driver.write(channel, value):
            async with exchanges.lease(instrument.port) as lease:
                await lease.settle()
                await lease.send(request, command=True)
    sys.stdout.write("energised\n")
    sys.stdout.flush()
    await loop.create_future()


if __name__ == "__main__":
    run(main(Path(sys.argv[1])), PacedLoop(1.0))
