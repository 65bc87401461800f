"""What every test stands on: the fixtures of ``testing``, and every lab's wires watched.

The plugin is named here, although an installed checkout has it by its entry point, because the
planted bugs run in a copy that is installed nowhere.
"""

import gc
import inspect
import os
import pickle
import re
import shutil
import sys
import tomllib
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, closing
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from alarmed import Watched, watching
from labharness.core.clock import VirtualLoop
from labharness.core.clock import run as run_on
from labharness.faces.testing.bench import Bench, Ran, VirtualTime
from labharness.faces.testing.wires import WatchedLabs
from labharness.lab import Lab, LabPlan, read_lab
from labharness.lab.config import lab_plan
from labharness.lab.config.kinds import load_driver
from labharness.lab.wiring import preflight
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.safety.guard import port_records
from labharness.work.plan import InstructionSet, Prediction
from rig import HERE, SHORT_LINE, Injection, submission
from startup.sitecustomize import move_places

pytest_plugins = ["labharness.faces.testing.plugin"]

STARTUP = Path(__file__).parent / "startup"
MEMORY = Path("/dev/shm")
MEMORY_FREE_BYTES_MIN = 2 * 1024**3

# The same examples for the same code, on every machine: a change lands, or not, for its own sake;
# neither an earlier run nor the load decides. `--hypothesis-profile=drawn` looks for others;
# what it finds becomes an `@example`.
hypothesis.settings.register_profile("drawn", deadline=None)
hypothesis.settings.register_profile(
    "same",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("same")


def pytest_configure(config: pytest.Config) -> None:
    """Keep in memory what tests write side by side: each growth syncs its journal 300 times.

    Tests that run alone stay on the disk, whose delays their deadlines are to bear.
    """
    side_by_side = config.getoption("numprocesses", None)
    if side_by_side and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_FREE_BYTES_MIN:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let no collection of garbage look through what outlives every test: 5 % of a growth."""
    gc.disable()  # it would be a fifth of the time in which tests are read
    found = yield
    gc.freeze()
    gc.enable()
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine on its fixture ``loop``.

    A fixture that is an asynchronous context is entered there: the test is given what it yields.
    """
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def main() -> None:
        async with AsyncExitStack() as stack:
            for name, each in given.items():
                if isinstance(each, AbstractAsyncContextManager):
                    given[name] = await stack.enter_async_context(each)
            await pyfuncitem.obj(**given)

    run_on(main(), pyfuncitem._request.getfixturevalue("loop"))
    return True


@pytest.fixture
def loop() -> Iterator[AbstractEventLoop]:
    """Whose time it is in a test that is a coroutine: virtual, unless its file says otherwise."""
    with closing(VirtualLoop()) as made:
        yield made


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose name leaves room: the path of a socket below it has 100 bytes at most."""
    return tmp_path_factory.mktemp(re.sub(r"\W", "_", request.node.name)[5:17])


@pytest.fixture(autouse=True, scope="session")
def places_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep locks and latches of ports apart from this machine's own, in child processes too.

    No variable moves the real places; what moves them here is a module that Python loads at its
    start, where the tests have put it on the path.
    """
    folder = tmp_path_factory.mktemp("places")
    path = os.pathsep.join(filter(None, (str(STARTUP), os.environ.get("PYTHONPATH"))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABHARNESS_TEST_PLACES", str(folder))
        patch.setenv("PYTHONPATH", path)
        move_places(port_records, folder)
        yield


@pytest.fixture(autouse=True, scope="session")
def parsed_once() -> Iterator[None]:
    """Parse equal files once: more than half of reading a lab, which most tests do."""
    parse = tomllib.loads

    @lru_cache(maxsize=64)
    def parsed(text: str) -> bytes:
        return pickle.dumps(parse(text))

    def remembered(text: str) -> dict[str, Any]:
        table: dict[str, Any] = pickle.loads(parsed(text))  # a copy: whoever reads it may change it
        return table

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tomllib, "loads", remembered)
        yield


@pytest.fixture(autouse=True, scope="session")
def read_once() -> Iterator[None]:
    """Read each lab of the repository once, wherever `read_lab` was imported.

    Its files stay as they are while tests run; labs that a test writes are read each time. Drivers
    are made anew, and so is what the environment says of its state directory.
    """
    found: dict[Path, LabPlan] = {}
    read = lab_plan.read_lab

    def kinds_are_the_same(plan: LabPlan) -> bool:
        try:
            return all(load_driver(each.kind) is type(each.driver) for each in plan.instruments)
        except LookupError:  # a test has taken one away, or doubled it
            return False

    def remembered(path: Path) -> LabPlan:
        if HERE.parent not in path.absolute().parents:
            return read(path)
        plan = found.get(path)
        if plan is None or not kinds_are_the_same(plan):
            plan = found[path] = read(path)
        rows = {row.name: row for row in plan.file.instrument}
        fresh = tuple(
            replace(each, driver=type(each.driver)(**rows[each.name].settings))
            for each in plan.instruments
        )
        return replace(plan, instruments=fresh, state_dir=lab_plan._state_dir(plan.file, path))

    with pytest.MonkeyPatch.context() as patch:
        for module in [*sys.modules.values()]:
            if getattr(module, "__dict__", {}).get("read_lab") is read:
                patch.setattr(module, "read_lab", remembered)
        yield


@pytest.fixture(autouse=True, scope="session")
def flown_once() -> Iterator[None]:
    """Predict equal plans on equal lines once: a quarter of each growth would be its pre-flight."""
    flown: dict[str, Prediction] = {}
    fly = preflight.predict_in_thread

    def remembered(
        lab: LabPlan, instructions: InstructionSet, readings: Mapping[str, float]
    ) -> Prediction:
        asked = repr((lab.file, lab.envelope, lab.room, instructions, sorted(readings.items())))
        digest = sha256(asked.encode()).hexdigest()
        if digest not in flown:
            flown[digest] = fly(lab, instructions, readings)
        return flown[digest]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preflight, "predict_in_thread", remembered)
        yield


@pytest.fixture(autouse=True)
def wires(watched_labs: WatchedLabs) -> list[Lab]:
    """Prove the wires of every lab of every test, whatever it tests."""
    return watched_labs.labs


@pytest.fixture
def lab_file() -> Path:
    """The short line, in place of the shipped one."""
    return SHORT_LINE


@pytest.fixture
def short_plan() -> LabPlan:
    """The short line of the tests, its state in a directory of its own."""
    return read_lab(SHORT_LINE)


@pytest.fixture
def lab(simulated_lab: Bench, short_plan: LabPlan) -> AbstractAsyncContextManager[Lab]:
    """A line that runs while its test does, which is a coroutine: the short one."""
    return simulated_lab.on(short_plan).running()


@pytest.fixture
def watched(short_plan: LabPlan, tmp_path: Path) -> AbstractAsyncContextManager[Watched]:
    """The short line, armed and running, with its alarms."""
    return watching(short_plan, tmp_path)


@pytest.fixture
def play(
    simulated_lab: Bench, virtual_time: VirtualTime, short_plan: LabPlan
) -> Callable[..., Any]:
    """Play a scene on a line that runs: on the short one, where no plan is given."""

    def played(scene: Callable[[Lab], Awaitable[Any]], plan: LabPlan = short_plan) -> Any:
        async def main() -> Any:
            async with simulated_lab.on(plan).running() as lab:
                return await scene(lab)

        return virtual_time.run(main())

    return played


@pytest.fixture
def run_task(simulated_lab: Bench, short_plan: LabPlan) -> Callable[..., Ran]:
    """Run a task on a lab, else on the short line, in virtual time, with faults at chosen moments.

    A run that failed is watched until its furnace is below 600 °C, not 60: half of all that such a
    run takes would be its cooling, which the tests that ask for it see by other ways.
    """

    def run(
        plan: LabPlan | None = None,
        submit: tuple[HcpMessage, TaskSubmit] | None = None,
        *,
        seed: int = 1,
        inject: tuple[Injection, ...] = (),
        out: Path | None = None,
        prepare: Callable[[Lab], None] = lambda lab: None,
        max_duration: str | None = None,
        abort: tuple[str, float] | None = None,
    ) -> Ran:
        plan = plan or short_plan
        warm = replace(plan, cold=dict.fromkeys(plan.cold, 600.0))
        bench = simulated_lab.on(warm, seed=seed)
        bench.inject(prepare)
        bench.inject_all([*inject])
        return bench.run(submit or submission(max_duration=max_duration), out=out, abort=abort)

    return run
