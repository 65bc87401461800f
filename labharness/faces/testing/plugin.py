"""The pytest plugin: fixtures for simulated labs, virtual time, wires and faults.

A failed test leaves its evidence in a folder. pytest finds the plugin by its entry point. Nothing
of the harness is imported before a test uses a lab.
"""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from labharness.faces.testing.bench import Bench, VirtualTime
    from labharness.faces.testing.wires import WatchedLabs, WireLog

KEEP = ".labharness-failures"
TEMPORARY = "PYTEST_DEBUG_TEMPROOT"  # pytest's own variable for the root of temporary folders
_WATCHED = pytest.StashKey["WatchedLabs"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the folder of the evidence."""
    parser.getgroup("labharness").addoption(
        "--labharness-keep",
        metavar="DIR",
        default=KEEP,
        help="where a failed test leaves journal, seed and wire log of its labs (%(default)s)",
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the evidence of a failed test, and name its folder in the report."""
    report = yield
    watched = item.stash.get(_WATCHED, None)
    if watched is not None and report.when == "teardown":
        # pytest keeps items to the end of a session; hours of wire records are too much
        del item.stash[_WATCHED]
    if watched is None or not report.failed:
        return report
    from labharness.faces.testing.keeping import folder_of, keep

    folder = folder_of(item.config.rootpath / item.config.getoption("labharness_keep"), item.nodeid)
    count = keep(watched, folder)
    if count:
        said = f"{folder}: journal, seed and wire log of {count} lab{'s' * (count > 1)}"
        report.sections.append(("labharness", said))
        kept = ("labharness_kept", str(folder))
        report.user_properties.append(kept)
        item.user_properties.append(kept)
    return report


@pytest.fixture
def lab_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a state directory of the test's own, for latches and approvals.

    It is outside pytest's folders, because a socket path has at most 100 bytes.
    """
    with TemporaryDirectory(
        prefix="labharness-", dir=os.environ.get(TEMPORARY), ignore_cleanup_errors=True
    ) as state:
        monkeypatch.setenv("LABHARNESS_STATE", state)
        yield Path(state)


@pytest.fixture
def watched_labs(request: pytest.FixtureRequest, lab_state: Path) -> "Iterator[WatchedLabs]":
    """Watch every lab that the test builds, in any way; prove the wires at the end."""
    from labharness.faces.testing.wires import WatchedLabs

    watched = request.node.stash[_WATCHED] = WatchedLabs()
    with watched.watching():
        yield watched
    watched.prove()


@pytest.fixture
def lab_file() -> Path:
    """Return the lab file of ``simulated_lab``, by default the shipped lab's.

    Override it for your own.
    """
    from labharness.lab import default_lab_path

    return default_lab_path()


@pytest.fixture
def simulated_lab(
    watched_labs: "WatchedLabs", lab_state: Path, lab_file: Path, tmp_path: Path
) -> "Iterator[Bench]":
    """Return the simulated lab of ``lab_file`` in virtual time; see ``testing.bench``."""
    from labharness.faces.testing.bench import Bench

    bench = Bench(lab_file, tmp_path / "labs", state=lab_state)
    yield bench
    bench.check_all_came()


@pytest.fixture
def virtual_time() -> "VirtualTime":
    """Run coroutines in lab time: ``virtual_time.run(coroutine)``."""
    from labharness.faces.testing.bench import VirtualTime

    return VirtualTime()


@pytest.fixture
def wire_log(watched_labs: "WatchedLabs") -> "WireLog":
    """Return the log of every frame at the instruments' end of the wires."""
    from labharness.faces.testing.wires import WireLog

    return WireLog(watched_labs.labs)


@pytest.fixture
def inject(simulated_lab: "Bench") -> Callable[..., None]:
    """Inject a fault into ``simulated_lab``: ``inject("estop_open", after_s=60)``."""
    return simulated_lab.inject
