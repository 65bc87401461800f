"""``labharness chaos``: search for faults that harm, replay one, shrink it."""

import argparse
import json
import platform
import subprocess
import tempfile
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import labharness
from labharness.chaos import (
    Scenario,
    Search,
    Tally,
    Verdict,
    draw,
    play,
    read_scenario,
    search,
    shrink,
    write_scenario,
)
from labharness.chaos.search import WORKERS
from labharness.core.clock import wall_clock_utc
from labharness.core.errors import LabError
from labharness.faces.cli import EXIT_ABORTED, EXIT_COMPLETED, EXIT_FAILED, EXIT_USAGE
from labharness.faces.cli.show import chosen_lab, complain, looking, say
from labharness.lab import BadLabFile, LabPlan

__all__ = ["chaos"]

STATE = "chaos-{seed}.json"
GIT_S_MAX = 10.0
PROGRESS_EVERY = 10  # scenarios between two lines


def chaos(chosen: argparse.Namespace) -> int:
    """Carry out the command."""
    try:
        if chosen.shrink and chosen.replay is None:
            raise ValueError("--shrink takes --replay FILE, or SEED/NUMBER")
        plan = chosen_lab(chosen.line)
        if plan.real_ports:
            raise BadLabFile(f"{plan.path}: faults are searched for on simulated lines only")
        if chosen.replay is not None:
            return _replay(
                plan, _scenario(plan, chosen.replay, chosen.faults), smaller=chosen.shrink
            )
        return _search(plan, chosen)
    except (BrokenPipeError, LabError):
        raise  # the command line's own matter
    except ValueError as why:
        complain(f"labharness chaos: {why}")
        return EXIT_USAGE
    except OSError as why:  # a search that goes on without its state would be for nothing
        complain(f"labharness chaos: {why.filename or 'its files'}: {why.strerror or why}")
        return EXIT_FAILED


def _search(plan: LabPlan, chosen: argparse.Namespace) -> int:
    asked = Search(lab=str(plan.path), hours=chosen.hours, seed=chosen.seed, rate=chosen.faults)
    state = Path(chosen.state or STATE.format(seed=chosen.seed))
    digest = f"{plan.lab_digest} {plan.envelope_digest}"
    tally = Tally(seed=asked.seed, rate=asked.rate, lab_digest=digest)
    with looking(state):
        goes_on = state.exists()
    if goes_on:
        kept = _kept(state)
        if (kept.seed, kept.rate, kept.lab_digest) != (asked.seed, asked.rate, digest):
            raise ValueError(f"{state} is of another search; name another --state, or remove it")
        tally = kept
    now, before = _this_labharness(), tally.played_by[-1:]
    if before != [now]:
        tally.played_by.append(now)
    _try_to_keep(tally, state)
    if tally.done:
        say(f"going on from {tally.lab_s / 3600:.1f} h in {state}")
        if before != [now]:
            say(f"with {now}; what is there was searched with {before[0] if before else 'another'}")
    complain(
        f"searching {plan.path} for {asked.hours:g} h; Ctrl-C stops it, and {state} keeps where it "
        "stands"
    )
    began, began_s = wall_clock_utc(), tally.lab_s

    def told(tally: Tally, said: dict[str, Any]) -> None:
        tally.write(state)
        if said["violation"] is not None:
            _say_violation(said)
            file = state.with_name(f"chaos-{said['name'].replace('/', '-')}.json")
            file.write_text(json.dumps(said["scenario"], indent=1) + "\n", "utf-8")
            say(f"  replay it: labharness chaos --replay {file} --shrink")
        if len(tally.done) % PROGRESS_EVERY == 0:
            say(f"{tally.lab_s / 3600:8.1f} h  {len(tally.done)} growths  {_faults(tally)}")

    try:
        search(
            asked,
            tally,
            told,
            chosen.workers or WORKERS,
            lambda: complain("ending the growths in play; they are not counted"),
        )
    except KeyboardInterrupt:
        say(f"stopped at {tally.lab_s / 3600:.1f} h; the same command goes on from {state}")
        return EXIT_ABORTED
    except BrokenProcessPool:
        complain(
            f"labharness chaos: a worker was killed; the same command goes on from {state}, "
            f"{tally.lab_s / 3600:.1f} h"
        )
        return EXIT_FAILED
    took_s = (wall_clock_utc() - began).total_seconds()
    ratio = (tally.lab_s - began_s) / took_s
    say(
        f"seed {asked.seed}: {tally.lab_s / 3600:.1f} h of lab time, {len(tally.done)} scenarios, "
        f"{_faults(tally)}, {len(tally.violations)} violations; {took_s:.0f} s, "
        f"{ratio:.0f} times real time"
    )
    for rule, seconds in sorted(tally.demands.items()):
        say(f"  left to a hardware safeguard: {rule}, {seconds:.0f} s")
    return EXIT_FAILED if tally.violations else EXIT_COMPLETED


def _faults(tally: Tally) -> str:
    return f"{tally.injected} faults of {tally.drawn} drawn"


def _this_labharness() -> str:
    """Name what searches: the version, the commit where it lies in a checkout, and the Python."""
    root = Path(labharness.__file__).parent.parent
    commit = ""
    if (root / ".git").exists():
        with suppress(OSError, subprocess.SubprocessError):
            told = subprocess.run(
                ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"],
                capture_output=True,
                text=True,
                timeout=GIT_S_MAX,
                check=True,
            )
            commit = f" {told.stdout.strip()}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"labharness {version('labharness')}{commit}, {python}"


def _kept(state: Path) -> Tally:
    try:
        return Tally.read(state)
    except OSError as why:
        raise ValueError(f"{state}: {why.strerror}") from None


def _try_to_keep(tally: Tally, state: Path) -> None:
    """Write the state before anything is played: it is not found out after an hour."""
    try:
        tally.write(state)
    except OSError as why:
        raise ValueError(f"{state}: {why.strerror}") from None


def _scenario(plan: LabPlan, named: str, rate: float) -> Scenario:
    """Read a scenario from a file, or draw it by its ``seed/number``."""
    path = Path(named)
    with looking(path):
        is_file = path.is_file()
    if is_file:
        try:
            return read_scenario(path.read_text("utf-8"), [row.name for row in plan.file.port])
        except UnicodeDecodeError:
            raise ValueError(f"{path}: no scenario: it is no text") from None
        except ValueError as why:
            raise ValueError(f"{path}: {why}") from None
        except OSError as why:
            raise ValueError(f"{path}: {why.strerror}") from None
    seed, _, number = named.partition("/")
    if not (seed.isdecimal() and number.isdecimal()):
        raise ValueError(f"--replay {named}: neither a file nor SEED/NUMBER, as 1/37")
    return draw(int(seed), int(number), rate)


def _replay(plan: LabPlan, scenario: Scenario, *, smaller: bool) -> int:
    verdict = _played(plan, scenario)
    if verdict.violation is not None and smaller:
        rule = verdict.violation.rule

        def breaks(each: Scenario) -> bool:
            found = _played(plan, each).violation
            return found is not None and found.rule == rule

        scenario = shrink(scenario, breaks)
        verdict = _played(plan, scenario)
        say(write_scenario(scenario).rstrip())
    for at_s, text in verdict.timeline:
        say(f"{at_s:12.3f} s  {text}")
    say(f"{verdict.lab_s / 3600:.2f} h of lab time, {verdict.digest}")
    if verdict.violation is None:
        say("no violation")
        return EXIT_COMPLETED
    found = verdict.violation
    say(f"VIOLATION at {found.at_s:.1f} s: {found.rule}, for {found.since_s:.0f} s")
    say(f"  allowed {found.allowed_s:g} s; {found.detail}")
    return EXIT_FAILED


def _played(plan: LabPlan, scenario: Scenario) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="labharness-chaos-") as folder:
        return play(plan, scenario, Path(folder))


def _say_violation(said: dict[str, Any]) -> None:
    found = said["violation"]
    say(f"VIOLATION {said['name']}: {found['rule']}, for {found['since_s']:.0f} s")
    say(f"  allowed {found['allowed_s']:g} s; {found['detail']}")
    for at_s, text in said["timeline"]:
        say(f"  {at_s:12.3f} s  {text}")
