"""Print the tables and draw the figure of stated and actual confidence of the calibration test.

``python benchmarks/confidence.py`` prints a table of each plant and the sums that are in
docs/reference/confidence.md, and draws docs/reference/confidence.svg. ``one``, ``nine``, ``many``
and ``origins`` print a part of them, ``--films 100`` draws another count of films of one place a
plant, ``--seeds 5`` other films, without the figure.
"""

import argparse
import sys
from pathlib import Path

from scipy.stats import binomtest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))  # the films and bins are the test's own

from films_drawn import (  # noqa: E402 - needs the path of the line above
    BINS,
    FILMS,
    MANY,
    NINE,
    WAYS,
    Bin,
    claims,
    kept,
    mixed_claims,
    origin_claims,
)
from labharness.analysis.evidence import ROWS_BY_ORIGIN  # noqa: E402 - likewise
from plants_drawn import MIXED_PLANTS, PLANTS  # noqa: E402 - likewise

FIGURE = ROOT / "docs" / "reference" / "confidence.svg"
SIDE, LEFT, TOP, GAP = 330, 60, 50, 90
LOW = 0.6
COLOURS = (
    "#0b6e99", "#b3261e", "#d98324", "#2f7d32", "#6a4c93", "#8a6d3b", "#555", "#c2185b", "#00838f",
    "#9e9d24", "#5d4037", "#ef6c00", "#1565c0", "#ad1457", "#558b2f", "#4527a0", "#00695c", "#000",
    "#e53935", "#039be5", "#7cb342", "#fb8c00", "#6d4c41", "#546e7a",
)  # fmt: skip
FILMS_OF = {"nine": 0.3, "many": 0.1}  # films with this many spots for each film with one
SPOTS_OF = {"nine": ("nine spots", NINE), "many": (f"{MANY[0]} to {MANY[1]} spots", MANY)}
SIGNIFICANCE = 0.01
LEVEL = 0.95
HEADINGS = ("below 0.75", "0.75–0.85", "0.85–0.95", "0.95–0.99", "0.99–1")
CLAIMS_MIN = 10  # fewer carry no information, and their bars hide the others


def cell(each: Bin) -> str:
    """Print the number of claims, their stated confidence, the right ones, and the p-value."""
    right = each.right / each.claims
    return f"{each.claims}: {each.stated:.3f}, {right:.3f} ({each.p_value:.2f})"


def panel(number: int, title: str, rows: dict[str, list[Bin]]) -> list[str]:
    """Draw one square: stated confidence across, actual upwards, with a bar for chance."""
    left = LEFT + number * (SIDE + GAP)

    def x(share: float) -> float:
        return left + (share - LOW) / (1 - LOW) * SIDE

    def y(share: float) -> float:
        return TOP + SIDE - (max(share, LOW) - LOW) / (1 - LOW) * SIDE

    parts = [
        f'<text x="{left}" y="{TOP - 14}" font-weight="bold">{title}</text>',
        f'<rect x="{left}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#888"/>',
        f'<path d="M{x(LOW)} {y(LOW)}L{x(1)} {y(1)}" stroke="#888" stroke-dasharray="5 4"/>',
        f'<text x="{left + SIDE / 2}" y="{TOP + SIDE + 38}" text-anchor="middle">stated</text>',
        f'<text x="{left - 38}" y="{TOP - 14}">right</text>',
    ]
    for tick in (0.6, 0.7, 0.8, 0.9, 1.0):
        parts.append(
            f'<text x="{x(tick)}" y="{TOP + SIDE + 18}" text-anchor="middle">{tick:g}</text>'
        )
        parts.append(f'<text x="{left - 8}" y="{y(tick) + 4}" text-anchor="end">{tick:g}</text>')
    for index, bins in enumerate(rows.values()):
        colour = COLOURS[index]
        for each in bins:
            if each.claims < CLAIMS_MIN:
                continue
            band = binomtest(each.right, each.claims).proportion_ci(LEVEL)
            at = x(each.stated) + 3 * (index - len(rows) / 2)  # side by side
            parts.append(
                f'<path d="M{at:.1f} {y(band.low):.1f}V{y(band.high):.1f}" stroke="{colour}"/>'
            )
            parts.append(
                f'<circle cx="{at:.1f}" cy="{y(each.right / each.claims):.1f}" r="3.5" '
                f'fill="{colour}"/>'
            )
    return parts


def figure(sets: dict[str, dict[str, list[Bin]]]) -> str:
    width, height = (
        LEFT + len(sets) * (SIDE + GAP) - GAP + 20,
        TOP + SIDE + 56 + 20 * -(-len(PLANTS) // 4),
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13" fill="#222">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, (title, rows) in enumerate(sets.items()):
        parts += panel(number, title, rows)
    for index, plant in enumerate(PLANTS):
        at = LEFT + index % 4 * 260
        down = TOP + SIDE + 62 + index // 4 * 20
        parts.append(f'<circle cx="{at}" cy="{down - 4}" r="4" fill="{COLOURS[index]}"/>')
        parts.append(f'<text x="{at + 9}" y="{down}">{plant.name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def table(head: str, last: str) -> None:
    print(f"\n**{head}**\n")
    print(f"| plant | {' | '.join(HEADINGS)} | {last} |")
    print("|---|" + "---|" * (len(HEADINGS) + last.count("|") + 1))


def row(name: str, found: list[Bin], last: str) -> None:
    cells = {each.low: cell(each) for each in found}
    print(f"| {name} | {' | '.join(cells.get(low, '-') for low, _ in BINS)} | {last} |", flush=True)


def one(count: int, seeds: int) -> dict[str, dict[str, list[Bin]]]:
    """Print the result for films measured in one place, one table per kind of calibration."""
    sets = {}
    for way in WAYS:
        rows = {}
        table(f"one place, {way} ({count} films a plant)", "no count | truth in the set")
        for plant in PLANTS:
            made = claims(plant, way, count, seeds)
            rows[plant.name] = kept(made)
            silent = sum(claim.said is None for claim in made)
            held = sum(claim.truth in claim.credible_set for claim in made)
            row(plant.name, rows[plant.name], f"{silent} | {held / count:.3f}")
        sets[way] = rows
    return sets


def several(kind: str, count: int, seeds: int) -> dict[str, dict[str, list[Bin]]]:
    """Print the same for films of which half are mixed, measured in many places."""
    name, spots = SPOTS_OF[kind]
    films = round(FILMS_OF[kind] * count)
    sets = {}
    for way in WAYS:
        rows = {}
        table(f"{name}, half of the films mixed, {way} ({films} films a plant)", "no count")
        for plant in MIXED_PLANTS:
            made = mixed_claims(plant, way, films, spots=spots, shift=seeds)
            rows[plant.name] = kept(made)
            row(plant.name, rows[plant.name], str(sum(claim.said is None for claim in made)))
        sets[way] = rows
    return sets


def origins() -> dict[str, dict[str, list[Bin]]]:
    """Print the result for films of any strain, for each origin that a caller may state."""
    rows = {}
    table(f"nine spots, strain of -0.5 to 0.6 %, calibrated ({FILMS} films an origin)", "no count")
    for seed, (origin, known) in enumerate(sorted(ROWS_BY_ORIGIN.items())):
        made = origin_claims(known, seed)
        rows[origin] = kept(made)
        row(origin, rows[origin], str(sum(claim.said is None for claim in made)))
    return {"origins": rows}


def pooled(bins: list[Bin]) -> str:
    """Print the claims of all plants together: their number, stated confidence, right ones."""
    claims = sum(each.claims for each in bins)
    if not claims:
        return "-"
    stated = sum(each.claims * each.stated for each in bins) / claims
    return f"{claims}: {stated:.3f}, {sum(each.right for each in bins) / claims:.3f}"


def summed(name: str, sets: dict[str, dict[str, list[Bin]]]) -> None:
    """Print each way with all plants together, and which bins fell short."""
    print(f"\n| {name} | {' | '.join(HEADINGS)} |\n|---|{'---|' * len(HEADINGS)}")
    for way, rows in sets.items():
        every = [each for found in rows.values() for each in found]
        cells = (pooled([each for each in every if each.low == low]) for low, _ in BINS)
        print(f"| {way} | {' | '.join(cells)} |")
    bins = [(way, plant, b) for way, rows in sets.items() for plant in rows for b in rows[plant]]
    short = [each for each in bins if each[2].p_value < SIGNIFICANCE]
    sure = [b for _, _, b in bins if b.low >= LEVEL]
    made, right = sum(b.claims for b in sure), sum(b.right for b in sure)
    said = f"{len(short)} of {len(bins)} bins below 1 %; above {LEVEL:g} {right} of {made} right"
    print(f"\n{name}: {said}")
    for way, plant, b in short:
        print(f"- {way}, {plant}: {cell(b)}")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument(
        "parts", nargs="*", help="one, nine, many, origins; all of them where none is named"
    )
    asked.add_argument("--films", type=int, default=FILMS, help="of one place, a plant")
    asked.add_argument("--seeds", type=int, default=0, help="what is added to every seed")
    chosen = asked.parse_args()
    for part in chosen.parts or ("one", "nine", "many", "origins"):
        if part == "one":
            sets = one(chosen.films, chosen.seeds)
            if chosen.seeds == 0:
                FIGURE.write_text(figure(sets), "utf-8")
        elif part == "origins":
            sets = origins()
        elif part in SPOTS_OF:
            sets = several(part, chosen.films, chosen.seeds)
        else:
            asked.error(f"there is no part {part}; there are one, nine, many and origins")
        summed(part, sets)


if __name__ == "__main__":
    main()
