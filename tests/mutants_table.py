"""What is kept of the mutants that were tried: verdicts, the tables made of them, the sample."""

import json
import random
from collections import defaultdict
from typing import Any

from mutant_rooms import ROOMS
from mutants_reach import read_reach
from mutated import ROOT

REASONS = ROOT / "docs" / "reference" / "mutants.md"
VERDICTS = ROOT / "build" / "mutants.jsonl"
SAMPLE = ROOT / "tests" / "data" / "mutants_sample.json"
SAMPLE_COUNT = 60
SAMPLE_TEST_S_MAX = 0.5
"""What the test of a sample mutant may take, as it was measured beside other work, s."""
TABLES = ROOT / "build" / "pages" / "mutants.md"


def reasons() -> set[str]:
    """Return the survivors that are listed, by their words."""
    lines = REASONS.read_text("utf-8").splitlines()
    return {line[2:] for line in lines if line.startswith(("* labharness/", "* drivers/", "* env"))}


def verdicts() -> dict[str, dict[str, Any]]:
    """Return the last verdict on each mutant."""
    if not VERDICTS.exists():
        return {}
    rows = [json.loads(line) for line in VERDICTS.read_text("utf-8").splitlines()]
    return {f"{row['file']}: {row['what']}": row for row in rows}


def write_tables() -> None:
    """Write, for each room, how many mutants each file has, were tried, died and are listed."""
    last, listed, said = verdicts(), reasons(), []
    for room in ROOMS:
        counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for mutant in room.mutants():
            row = counts[mutant.file]
            row[0] += 1
            verdict = last.get(mutant.name)
            if verdict is not None:
                row[1] += 1
                row[2] += bool(verdict["killer"])
                row[3] += not verdict["killer"] and mutant.name in listed
        said += [f"\n### {room.name}\n", "| file | mutants | tried | killed | listed | killed |"]
        said += ["|---|---|---|---|---|---|"]
        total = [sum(column) for column in zip(*counts.values(), strict=True)]
        for file, row in (*sorted(counts.items()), ("all", total)):
            said.append(f"| {file} | {' | '.join(map(str, row))} | {_share(row)} |")
    TABLES.parent.mkdir(parents=True, exist_ok=True)
    TABLES.write_text("\n".join(["# Mutants, by file", *said]) + "\n", "utf-8")


def _share(row: list[int]) -> str:
    return f"{row[2] / row[1]:.1%}".replace("%", " %") if row[1] else ""


def read_sample() -> list[tuple[str, str, str]]:
    """Return the mutants of every day: file, words, and the test that kills it."""
    return [(row[0], row[1], row[2]) for row in json.loads(SAMPLE.read_text("utf-8"))]


def draw_sample(seed: int) -> int:
    """Keep of the sample what there still is, and fill it up in turn from every room and kind."""
    last, reach = verdicts(), read_reach()
    there = {mutant.name: room.name for room in ROOMS for mutant in room.mutants()}
    kept = (
        [row for row in read_sample() if f"{row[0]}: {row[1]}" in there] if SAMPLE.exists() else []
    )
    piles: dict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
    for name in sorted(last):
        row = last[name]
        test = reach.get(row["killer"])
        cheap = test is not None and not test.alone and test.seconds <= SAMPLE_TEST_S_MAX
        one = (row["file"], row["what"], row["killer"])
        if cheap and name in there and one not in kept:
            piles[there[name], _kind(row["what"])].append(one)
    chance = random.Random(seed)
    for pile in piles.values():
        chance.shuffle(pile)
    rooms = sorted({room for room, _ in piles})
    while len(kept) < SAMPLE_COUNT and any(piles.values()):
        for room in rooms:
            fullest = max(
                (key for key in piles if key[0] == room), key=lambda key: _due(key, piles)
            )
            if piles[fullest] and len(kept) < SAMPLE_COUNT:
                kept.append(piles[fullest].pop())
                TAKEN[fullest] += 1
    SAMPLE.write_text(json.dumps(sorted(kept), indent=1, ensure_ascii=False) + "\n", "utf-8")
    return len(kept)


TAKEN: dict[tuple[str, str], int] = defaultdict(int)


def _due(key: tuple[str, str], piles: dict[tuple[str, str], list[tuple[str, str, str]]]) -> int:
    """The kind of a room that was taken least, of those that have one left."""
    return -TAKEN[key] if piles[key] else -SAMPLE_COUNT - 1


def _kind(what: str) -> str:
    for kind in ("dropped", "swapped", "opened", "its own", "unit =", "None", " or ", "not "):
        if kind in what.rpartition(": ")[2]:
            return kind
    return "number" if any(each.isdigit() for each in what.rpartition("->")[2]) else "operator"
