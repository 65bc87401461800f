"""The lines that ``labharness analyse`` prints about one file."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from labharness.core.vocabulary import share_text
from labharness.core.vocabulary.measured import measured_text
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli.show import aligned

if TYPE_CHECKING:
    from labharness.analysis.analysed import Analysed
    from labharness.analysis.assess import Assessment

SIX_OR_MORE = 6
INDENT = "    "
UNKNOWN = "unknown"  # a material without known lines
HEADS = ("analyse.line", "analyse.position", "analyse.width", "analyse.height", "analyse.area")


def headline(found: "Assessment") -> str:
    """Return in one sentence what a file shows."""
    verdict = found.verdict
    if verdict is None:
        return Text("analyse.no_count", material=found.material)
    claim = verdict.claim
    if verdict.layer_count is None:
        if claim is not None and claim.kind == "mixed":
            return Text("analyse.mos2", material="MoS2", what=claim.headline)
        if not verdict.credible_set:
            return Text("analyse.no_count", material=found.material)
        return Text("analyse.undetermined", layers=list(map(_class_name, verdict.credible_set)))
    if claim is not None and claim.kind != "place":
        what = claim.headline
    else:
        code = "analyse.one_layer" if verdict.layer_count == 1 else "analyse.layers"
        what = Text(code, layers=_class_name(verdict.layer_count))
    return Text("analyse.sure", what=what, confidence=share_text(verdict.confidence, 2))


def lines_said(shown: "Analysed", baseline: str, *, every: bool) -> Iterator[str]:
    """Return all that was found in a file, line by line.

    Args:
        shown: The file.
        baseline: The baseline under the measured lines.
        every: Show the lines of each spectrum, not of all together.
    """
    found = shown.found
    count = len(found.spectra)
    axis = found.spectra[0].shift_cm1
    yield Text("pair", what=shown.name, why=headline(found))
    yield Text(
        "analyse.read" if count > 1 else "analyse.read_one",
        format=shown.recording.format,
        count=count,
        points=axis.size,
        low=float(axis[0]),
        high=float(axis[-1]),
    )
    if count > 1:
        materials = Counter(found.materials).most_common()
        shows = [Text("analyse.in", material=name, count=number) for name, number in materials]
        yield Text("analyse.shows", materials=shows)
    if found.probability:
        yield Text("analyse.named", material=found.material, probability=found.probability)
    lines = [line for line in found.silicon if line is not None]
    if lines:
        position = median(line.position_cm1 for line in lines)
        fwhm = median(line.fwhm_cm1 for line in lines)
        yield Text("analyse.silicon", position=position, width=fwhm)
    verdict = found.verdict
    if verdict is not None:
        distance, sigma = verdict.peak_distance_cm1, verdict.peak_distance_sigma_cm1
        if distance is not None:
            yield Text("analyse.distance", value=distance, sigma=sigma)
        posterior = [
            Text("pair", what=_class_name(name), why=f"{p:.2f}")
            for name, p in verdict.posterior.items()
        ]
        yield Text("analyse.posterior", rows=posterior)
        for term in verdict.evidence:
            measured = f"{term.measured:.3g} {term.unit}"
            error = term.systematic
            yield Text("analyse.evidence", name=term.name, measured=measured, error=error)
    for reason in found.reasons:
        yield Text("analyse.doubt", why=reason)
    yield from _peaks(shown, baseline, every=every)
    yield from _glow(shown)
    for note in (*found.notes, *shown.notes):
        yield Text("analyse.note", note=note)


def _peaks(shown: "Analysed", baseline: str, *, every: bool) -> Iterator[str]:
    lines = list(shown.lines())
    if not lines:
        yield Text("analyse.no_lines")
        return
    under = "" if baseline == "straight" else Text("analyse.background", kind=baseline)
    many = len(shown.found.spectra) > 1
    known = shown.material != UNKNOWN
    whose = Text("analyse.lines_of", material=shown.material) if known else Text("analyse.lines")
    if many and every:
        yield Text("analyse.each", lines=whose, under=under)
        yield from aligned(_each(shown), INDENT)
        return
    from labharness.faces.report.line_texts import line_texts

    yield Text("analyse.all" if many else "analyse.one", lines=whose, under=under)
    heads = [*HEADS, "analyse.stands_out"] if many else HEADS
    rows: list[Sequence[str]] = [[Text(head) for head in heads]]
    for line in lines:
        seen = Text("analyse.seen", seen=int(line.stands_out.sum()), spectra=line.stands_out.size)
        rows.append((line.name, *line_texts(line).values(), *([seen] if many else [])))
    yield from aligned(rows, INDENT)


def _each(shown: "Analysed") -> list[Sequence[str]]:
    from labharness.analysis.measured import PeakTable

    table = PeakTable()
    shown.add_to(table)
    places = [name for name in ("x_um", "y_um") if any(v is not None for v in table.columns[name])]
    axes = (name.replace("_um", " / µm") for name in places)
    rows: list[Sequence[str]] = [(Text("analyse.spectrum"), *axes, *map(Text, HEADS))]
    for row in table.rows():
        where = (f"{row[name]:.6g}" for name in places)
        measured: tuple[str, ...] = ("–",) * 4
        if row["stands_out"]:
            names = ("position_cm1", "fwhm_cm1", "height_counts", "area_counts_cm1")
            measured = tuple(measured_text(row[name], row[f"sigma_{name}"]) for name in names)
        rows.append((str(row["spectrum"]), *where, row["line"], *measured))
    return rows


def _glow(shown: "Analysed") -> Iterator[str]:
    if not shown.bands:
        return
    from labharness.faces.report.line_texts import times_of_line

    band = shown.band_of(shown.best)
    if band is None or not band.stands_out:
        yield Text("analyse.no_band")
        return
    yield Text(
        "analyse.band",
        place=measured_text(band.position_nm, band.position_sigma_nm),
        energy=band.energy_ev,
        width=measured_text(band.fwhm_nm, band.fwhm_sigma_nm),
    )
    times = times_of_line(shown)
    if times is not None:
        yield Text("analyse.times", ratio=times.ratio, line=times.line)


def _class_name(layer_class: int) -> str:
    return Text("layers.six") if layer_class == SIX_OR_MORE else str(layer_class)
