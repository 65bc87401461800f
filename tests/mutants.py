"""The long proof of the tests: every planted bug, and each small wrong, must turn one red.

Run by ``make mutants``. First the planted bugs, which have a test each. Then, room by room, mutants
of the code and of the envelopes' rows, or a share of them drawn by a seed. What a run finds is kept
in ``build/mutants.jsonl``, from which ``--table`` makes build/pages/mutants.md, and ``--sample``
draws the mutants of every day. Survivors are listed in docs/reference/mutants.md with their
reasons, by their words; one that is not listed is an error, and so are too many.

    python tests/mutants.py [--room NAME] [--file PART] [--share 0.1] [--seed 1] [--again] [--list]
                            [--measure] [--table] [--sample]
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from copies import FAILED, ROOT, Copy, copied
from mutant_rooms import ROOMS, Room, tests_of_rooms
from mutants_reach import REACH, Reach, measure, read_reach
from mutants_table import REASONS, SAMPLE, VERDICTS, draw_sample, reasons, verdicts, write_tables
from mutants_trial import AnyMutant, Trial
from planted_bugs import PLANTED

PLANTED_ROOM = "planted"
BRANCHES_S_MAX = 900.0
COLLECT_S_MAX = 900


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def plant_all(copy: Copy) -> int:
    """Plant each bug; return the number of those that survive."""
    survivors = 0
    for bug in PLANTED:
        with copy.planted(bug):
            code, _ = copy.run(bug.test)
        survivors += code != FAILED
        verdict = "caught" if code == FAILED else "SURVIVED"
        say(f"{verdict:9} {bug.name:42} {bug.test.partition('::')[2]}")
    say(f"{len(PLANTED) - survivors} caught, {survivors} survived")
    return survivors


def drawn(room: Room, part: str, share: float, seed: int) -> list[AnyMutant]:
    """Draw a share of a room's mutants; each by itself, so that an edit changes no other's lot."""
    return [
        each
        for each in room.mutants()
        if part in each.file and random.Random(f"{seed} {each.name}").random() < share
    ]


def try_all(trial: Trial, room: Room, mutants: Iterable[AnyMutant]) -> int:
    """Try mutants and write down each verdict; return the number of survivors without a reason."""
    known, unlisted = reasons(), 0
    with VERDICTS.open("a", encoding="utf-8") as kept:
        for mutant in mutants:
            began_s = time.monotonic()
            killer = trial.killer(room, mutant)
            row = {"room": room.name, "file": mutant.file, "what": mutant.what, "killer": killer}
            kept.write(json.dumps({**row, "s": round(time.monotonic() - began_s, 1)}) + "\n")
            kept.flush()
            if not killer:
                listed = mutant.name in known
                unlisted += not listed
                say(f"survived{' (listed)' if listed else ''} line {mutant.line} {mutant.name}")
    return unlisted


def branches_left(room: Room) -> int:
    """Run a room's tests without a mutant; return the branches that they do not take."""
    with tempfile.TemporaryDirectory() as folder:
        tool = [sys.executable, "-m", "coverage"]
        data = f"--data-file={folder}/branches"
        run = [*tool, "run", data, "--branch", f"--include={','.join(room.paths)}", "-m", "pytest"]
        run += ["-q", "--tb=no", "-p", "no:cacheprovider", "-m", "not soak", *room.test_files]
        subprocess.run(run, check=True, cwd=ROOT, timeout=BRANCHES_S_MAX)
        report = [*tool, "report", data, "--show-missing", "--fail-under=100"]
        return subprocess.run(report, check=False, cwd=ROOT, timeout=BRANCHES_S_MAX).returncode


def reach_of(copy: Copy, rooms: Iterable[Room]) -> dict[str, Reach]:
    """Return what each test that there is runs; measure the files that nobody measured."""
    wanted = sorted({file for room in rooms for file in room.test_files})
    known = read_reach() if REACH.exists() else {}
    seen = {test.partition("::")[0] for test in known}
    if new := [file for file in wanted if file not in seen]:
        say(f"measured first, which functions they run: {', '.join(new)}")
        measure(new)
        known = read_reach()
    files = sorted(file for file in {*wanted, *seen} if (ROOT / file).exists())
    code, said = copy.run("--collect-only", "-m", "not soak", *files, limit_s=COLLECT_S_MAX)
    if code != 0:
        raise RuntimeError(f"the tests cannot be collected: {said[-2000:]}")
    there = [line.strip() for line in said.splitlines() if "::" in line]
    return {test: known.get(test) or _like(test, known) for test in there}


def _like(test: str, known: Mapping[str, Reach]) -> Reach:
    """Take for a test that is new, or has another number, what its like run, or its file."""
    name, file = test.partition("[")[0], test.partition("::")[0]
    like = [each for other, each in known.items() if other.partition("[")[0] == name]
    like = like or [each for other, each in known.items() if other.partition("::")[0] == file]
    return Reach(
        sum(each.seconds for each in like) / max(len(like), 1),
        any(each.alone for each in like),
        set().union(*(each.functions for each in like)),
    )


def asked() -> Any:
    """Read the command line."""
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [PLANTED_ROOM, *(room.name for room in ROOMS)]
    ask.add_argument("--room", default="", choices=["", *names], help="one room only")
    ask.add_argument("--file", default="", help="part of a file's name")
    ask.add_argument("--share", type=float, default=1.0, help="of the mutants, 0 to 1")
    ask.add_argument("--seed", type=int, default=1, help="which of them")
    ask.add_argument("--again", action="store_true", help="only those that survived the last run")
    ask.add_argument("--list", action="store_true", help="name them, run nothing")
    ask.add_argument("--measure", action="store_true", help="measure anew what each test runs")
    ask.add_argument("--table", action="store_true", help=f"write the tables of {REASONS.name}")
    ask.add_argument("--sample", action="store_true", help=f"draw {SAMPLE.name} anew")
    return ask.parse_args()


def main() -> int:
    """Do what is asked; 1 if a mutant survives without a reason, or too many do."""
    chosen = asked()
    os.chdir(ROOT)
    rooms = [room for room in ROOMS if chosen.room in ("", room.name)]
    if chosen.table or chosen.sample:
        if chosen.table:
            write_tables()
        if chosen.sample:
            say(f"{draw_sample(chosen.seed)} mutants for every day")
        return 0
    if chosen.measure:
        measure(tests_of_rooms(chosen.room))
    lots = {room: drawn(room, chosen.file, chosen.share, chosen.seed) for room in rooms}
    if chosen.again:
        last = verdicts()
        lots = {
            room: [each for each in some if last.get(each.name, {}).get("killer") == ""]
            for room, some in lots.items()
        }
    if chosen.list:
        for each in (each for some in lots.values() for each in some):
            say(f"{each.file}:{each.line} {each.what}")
        return 0
    wrong = 0
    VERDICTS.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, copied(Path(folder) / "copy") as copy:
        if not chosen.file and not chosen.again and chosen.room in ("", PLANTED_ROOM):
            wrong += plant_all(copy)
        if not any(lots.values()):
            return 1 if wrong else 0
        trial = Trial(copy, reach_of(copy, rooms))
        for room, some in lots.items():
            if room.branches and chosen.share == 1.0 and not chosen.file and not chosen.again:
                wrong += branches_left(room)
            say(f"{room.name}: {len(some)} mutants")
            unlisted = try_all(trial, room, some)
            last = verdicts()
            dead = sum(bool(last[each.name]["killer"]) for each in some)
            few = bool(some) and dead / len(some) < room.killed_min
            say(f"{room.name}: {dead} of {len(some)} killed, {unlisted} survivors unlisted")
            wrong += unlisted + few
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
