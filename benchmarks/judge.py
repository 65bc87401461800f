"""Time the judgement of a command, beside the value checks of other libraries.

The peers check bounds alone. ``judge`` also checks unit, finiteness, mode, step and interlocks. All
set a value in memory, with no instrument and no journal behind it.
"""

import os
import tempfile
import timeit
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from statistics import median
from typing import Any

from labharness.core.clock import Chance, Clock, VirtualLoop, run
from labharness.core.vocabulary import Allowed, Command
from labharness.journal import SqliteJournal
from labharness.lab import Lab, default_lab_path, read_lab
from labharness.safety.kernel import Memory, judge

ROUNDS = 15  # the programs take turns, so that a busy moment affects all of them
CALLS = 10_000
ALL_INTERLOCKS = ("hydrogen.setpoint", 10.0, "sccm")
"""The channel with the most rows; here every one of them holds, so all are checked."""
FLOWING = {"argon.flow": 100.0, "box.vent": 1.0, "box.pump_isolation": 0.0, "hydrogen.flow": 0.0}
WORST_US_MAX = 3.0  # of that judgement: a further frame of a command is judged again
RATIO_MAX = 0.65  # of judging a plain channel to QCoDeS's validated set
MISSING = "is not installed: pip install 'labharness[benchmark]'"


class Device:
    """An instrument in memory."""

    value = 0.0


def running_memory() -> tuple[Memory, float]:
    """Return the memory of the shipped line while it runs, and its time."""
    loop = VirtualLoop()

    async def main(folder: Path) -> tuple[Memory, float]:
        with SqliteJournal(folder / "journal.sqlite") as journal:
            lab = Lab(plan, clock=Clock(loop), chance=Chance(1), journal=journal)
            await lab.line.open()
            await lab.line.arm(plan.safe_procedure)
            lab.line.start()
            await lab.line.next_tick()
            found = deepcopy(lab.line.memory), lab.clock.now_s()
            await lab.line.close()  # disarms the line, and so its own memory
            return found

    with tempfile.TemporaryDirectory() as name:
        os.environ["LABHARNESS_STATE"] = name
        plan = read_lab(default_lab_path())
        return run(main(Path(name)), loop)


def once_us(work: Callable[[], object], calls: int = CALLS) -> float:
    return timeit.timeit(work, number=calls) / calls * 1e6


def commands(memory: Memory) -> list[Command]:
    """Return, for each channel that can be set, a command to either end of its limits."""
    limits = memory.envelope.limits.values()
    return [Command(row.channel, end, row.unit) for row in limits for end in (row.low, row.high)]


def our_cases() -> dict[str, Callable[[], object]]:
    memory, now = running_memory()
    allowed = [c for c in commands(memory) if isinstance(judge(c, memory, now), Allowed)]
    plain = next(c for c in allowed if not memory.guarding[c.channel])

    def cost_us(command: Command) -> float:
        return min(once_us(lambda: judge(command, memory, now), 500) for _ in range(5))

    dearest = max(allowed, key=cost_us)
    worst = max(commands(memory), key=cost_us)
    proven, most = deepcopy(memory), Command(*ALL_INTERLOCKS)
    proven.proofs.purged.passed_cm3["air"], proven.proofs.leak.tight = 1e9, True
    for name, value in FLOWING.items():
        proven.tracks[name].value = value
    if not isinstance(judge(most, proven, now), Allowed):
        raise RuntimeError(f"{most.channel} is to be allowed here: {judge(most, proven, now)}")
    device = Device()

    def checked_set() -> None:
        command = Command(plain.channel, plain.value, plain.unit)
        if isinstance(judge(command, memory, now), Allowed):
            device.value = command.value

    verdict = "allowed" if worst in allowed else "refused"
    return {
        f"judge, plain ({plain.channel})": lambda: judge(plain, memory, now),
        "judge, plain, with making and setting it": checked_set,
        f"judge, all interlocks hold ({most.channel})": lambda: judge(most, proven, now),
        f"judge, dearest allowed ({dearest.channel})": lambda: judge(dearest, memory, now),
        f"judge, worst, {verdict} ({worst.channel})": lambda: judge(worst, memory, now),
    }


def qcodes_set() -> Callable[[], object] | None:
    try:
        from qcodes.parameters import Parameter
        from qcodes.validators import Numbers
    except ImportError:
        print(f"QCoDeS {MISSING}")
        return None
    device = Device()

    def store(value: float) -> None:
        device.value = value

    parameter: Any = Parameter("setpoint", set_cmd=store, vals=Numbers(0, 500))
    return lambda: parameter.set(20.0)


def pymeasure_set() -> Callable[[], object] | None:
    try:
        from pymeasure.adapters import Adapter
        from pymeasure.instruments import Instrument
        from pymeasure.instruments.validators import strict_range
    except ImportError:
        print(f"PyMeasure {MISSING}")
        return None

    class Nowhere(Adapter):  # type: ignore[misc]  # untyped where it is not installed
        def _write(self, command: str, **_: object) -> None:
            pass

        def _read(self, **_: object) -> str:
            return "0"

    class Heater(Instrument):  # type: ignore[misc]  # as above
        setpoint = Instrument.control("SP?", "SP %g", "", validator=strict_range, values=[0, 500])

    heater = Heater(Nowhere(), "heater", includeSCPI=False)

    def assign() -> None:
        heater.setpoint = 20.0

    return assign


def main() -> None:
    cases = our_cases()
    peers = {
        "QCoDeS Parameter.set, Numbers": qcodes_set(),
        "PyMeasure property, strict_range": pymeasure_set(),
    }
    cases |= {name: work for name, work in peers.items() if work is not None}
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, work in cases.items():
            times[name].append(once_us(work))
    floor = times.get("QCoDeS Parameter.set, Numbers")
    print(f"one check, median of {ROUNDS} x {CALLS} on {os.cpu_count()} cores")
    print(f"{'check':52} {'us':>8} {'x QCoDeS':>9}")
    for name, found in times.items():
        ratio = f"{median(found) / median(floor):9.2f}" if floor else f"{'-':>9}"
        print(f"{name:52} {median(found):8.2f} {ratio}")
    print(f"target: judge, plain, at most {RATIO_MAX:g} x QCoDeS")
    print(f"target: judge, all interlocks hold, at most {WORST_US_MAX:g} us")


if __name__ == "__main__":
    main()
