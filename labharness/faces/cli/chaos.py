"""``labharness chaos``: search for faults that harm, replay one, shrink it."""

import argparse
import json
import platform
import subprocess
import tempfile
from collections.abc import Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import labharness
from labharness.chaos.scenario import Scenario, draw, read_scenario, write_scenario
from labharness.chaos.search import WORKERS, Search, Tally, search, shrink
from labharness.chaos.table import faults_of
from labharness.chaos.world import Verdict, play
from labharness.core.clock import wall_clock_utc
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_ABORTED, EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.show import BadUse, CommandFailed, chosen_lab, complain, looking, say
from labharness.lab import BadLabFile, LabPlan

STATE = "chaos-{seed}.json"
GIT_S_MAX = 10.0
PROGRESS_EVERY = 10  # scenarios between two lines


def chaos(chosen: argparse.Namespace) -> int:
    """Carry out the command."""
    if chosen.shrink and chosen.replay is None:
        raise BadUse("chaos.shrink")
    plan = chosen_lab(chosen.line)
    if plan.real_ports:
        raise BadLabFile(Text("chaos.real", lab=str(plan.path)))
    if chosen.replay is not None:
        scenario = _scenario(plan, chosen.replay, chosen.faults)
        return _replay(plan, scenario, smaller=chosen.shrink)
    state = Path(chosen.state or STATE.format(seed=chosen.seed))
    with looking(state, CommandFailed):  # a search without its state could not be continued
        return _search(plan, chosen, state)


def _search(plan: LabPlan, chosen: argparse.Namespace, state: Path) -> int:
    asked = Search(lab=str(plan.path), hours=chosen.hours, seed=chosen.seed, rate=chosen.faults)
    digest = f"{plan.lab_digest} {plan.envelope_digest} {faults_of(plan).file_digest}"
    tally = Tally(seed=asked.seed, rate=asked.rate, lab_digest=digest)
    with looking(state):
        if state.exists():
            try:
                kept = Tally.read(state)
            except ValueError as why:
                raise BadUse(str(why)) from None
            if (kept.seed, kept.rate, kept.lab_digest) != (asked.seed, asked.rate, digest):
                raise BadUse("chaos.another", state=str(state))
            tally = kept
        now, before = _this_labharness(), tally.played_by[-1:]
        if before != [now]:
            tally.played_by.append(now)
        try:
            tally.write(state)  # a disk that refuses is found before anything is played
        except OSError as why:
            raise BadUse("pair", what=str(state), why=why.strerror) from None
    if tally.done:
        say(Text("chaos.goes_on", hours=tally.lab_s / 3600, state=str(state)))
        if before != [now]:
            say(Text("chaos.other_version", now=now, before=before or Text("chaos.unknown")))
    complain(Text("chaos.begins", lab=str(plan.path), hours=asked.hours, state=str(state)))
    began, began_s = wall_clock_utc(), tally.lab_s

    def told(tally: Tally, said: dict[str, Any]) -> None:
        tally.write(state)
        if said["violation"] is not None:
            _say_violation(said["violation"], said["name"])
            for at_s, text in said["timeline"]:
                say(f"  {at_s:12.3f} s  {text}")
            file = state.with_name(f"chaos-{said['name'].replace('/', '-')}.json")
            file.write_text(json.dumps(said["scenario"], indent=1) + "\n", "utf-8")
            command = f"labharness chaos --replay {file} --shrink"
            say(Text("chaos.replay_it", command=command))
        if len(tally.done) % PROGRESS_EVERY == 0:
            count, faults = len(tally.done), _faults(tally)
            say(Text("chaos.progress", hours=tally.lab_s / 3600, count=count, faults=faults))

    try:
        ending = partial(complain, Text("chaos.ending"))
        search(asked, tally, told, chosen.workers or WORKERS, ending)
    except KeyboardInterrupt:
        say(Text("chaos.stopped", hours=tally.lab_s / 3600, state=str(state)))
        return EXIT_ABORTED
    except BrokenProcessPool:
        hours = tally.lab_s / 3600
        raise CommandFailed("chaos.killed", hours=hours, state=str(state)) from None
    took_s = (wall_clock_utc() - began).total_seconds()
    ended = Text(
        "chaos.ended",
        seed=asked.seed,
        hours=tally.lab_s / 3600,
        count=len(tally.done),
        faults=_faults(tally),
        violations=len(tally.violations),
        took_s=took_s,
        ratio=(tally.lab_s - began_s) / took_s,
    )
    say(ended)
    for rule, seconds in sorted(tally.demands.items()):
        say(Text("chaos.demand", rule=rule, for_s=seconds))
    return EXIT_FAILED if tally.violations else EXIT_COMPLETED


def _faults(tally: Tally) -> str:
    return Text("chaos.faults", injected=tally.injected, drawn=tally.drawn)


def _this_labharness() -> str:
    """Return the version that searches, with its commit in a checkout, and the Python."""
    root = Path(labharness.__file__).parent.parent
    commit = ""
    if (root / ".git").exists():
        with suppress(OSError, subprocess.SubprocessError):
            git = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"]
            quiet = subprocess.DEVNULL
            told = subprocess.check_output(git, stderr=quiet, text=True, timeout=GIT_S_MAX)
            commit = f" {told.strip()}"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"labharness {version('labharness')}{commit}, {python}"


def _scenario(plan: LabPlan, named: str, rate: float) -> Scenario:
    """Read a scenario from a file, or draw it by its ``seed/number``."""
    path, table = Path(named), faults_of(plan)
    with looking(path):
        if path.is_file():
            try:
                ports = [row.name for row in plan.file.port]
                return read_scenario(path.read_text("utf-8"), table, ports)
            except UnicodeDecodeError:
                raise BadUse("chaos.binary", path=str(path)) from None
            except ValueError as why:
                raise BadUse("pair", what=str(path), why=str(why)) from None
    seed, _, number = named.partition("/")
    if not (seed.isdecimal() and number.isdecimal()):
        raise BadUse("chaos.no_scenario", named=named)
    return draw(int(seed), int(number), rate, table)


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
    say(Text("chaos.played", hours=verdict.lab_s / 3600, digest=verdict.digest))
    if verdict.violation is None:
        say(Text("chaos.no_violation"))
        return EXIT_COMPLETED
    found = asdict(verdict.violation)
    _say_violation(found, Text("chaos.at", at_s=found["at_s"]))
    return EXIT_FAILED


def _played(plan: LabPlan, scenario: Scenario) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="labharness-chaos-") as folder:
        return play(plan, scenario, Path(folder))


def _say_violation(found: Mapping[str, Any], where: str) -> None:
    say(Text("chaos.violation", where=where, rule=found["rule"], for_s=found["since_s"]))
    say(Text("chaos.allowed", most_s=found["allowed_s"], detail=found["detail"]))
