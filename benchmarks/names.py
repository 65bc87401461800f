"""Print the table of names in docs/reference/confidence.md: stated probability against right ones.

``python benchmarks/names.py`` draws every substance of tests/data/raman/published_lines.txt, and
every material of the table on its substrates, on instruments of any kind.
"""

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from labharness.analysis.assess import assess
from strange_spectra import KINDS, films, strangers

EACH, SEED = 8, 20261126
COMMON = dict.fromkeys(("graphene", "graphite"), "graphitic carbon")
"""Names that are true and say less: not counted as right, and not as wrong."""
BINS = ((0.7, 0.8), (0.8, 0.9), (0.9, 0.98), (0.98, 1.0))


def main() -> int:
    claims: list[tuple[float, bool]] = []
    counts: Counter[str] = Counter()
    for each in (*strangers(EACH, SEED), *films(3 * EACH, SEED)):
        found = assess(each.recording)
        kind = KINDS[each.what][0] if each.what in KINDS else "of the table"
        counts[kind] += 1
        if found.material == each.name:
            counts[f"{kind} right"] += 1
        elif found.material not in ("unknown", COMMON.get(each.name)):
            counts[f"{kind} wrong"] += 1
            print(f"  {each.what}: {found.material} {found.probability:.2f}", file=sys.stderr)
        if found.material != "unknown":
            true = (each.name, COMMON.get(each.name))
            claims.append((found.probability, found.material in true))
    print("| spectra | drawn | right | a wrong name |\n|---|---|---|---|")
    for kind in sorted(name for name in counts if " right" not in name and " wrong" not in name):
        right, wrong = counts[f"{kind} right"], counts[f"{kind} wrong"]
        print(f"| {kind} | {counts[kind]} | {right} | {wrong} |")
    print("\n| stated | names | mean stated | share right |\n|---|---|---|---|")
    for low, high in BINS:
        inside = [claim for claim in claims if low <= claim[0] < high]
        if inside:
            mean = sum(p for p, _ in inside) / len(inside)
            share = sum(good for _, good in inside) / len(inside)
            print(f"| {low:g}–{high:g} | {len(inside)} | {mean:.3f} | {share:.3f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
