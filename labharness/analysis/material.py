"""Identify the material of spectra: their lines, explained by the table of materials, name it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import NamedTuple

import numpy as np

from labharness.analysis.arrays import Array, Mask, Rows
from labharness.analysis.film import film_rows
from labharness.analysis.lines import (
    ITERATIONS_MAX,
    FoundLines,
    LineFits,
    SeenLine,
    area_sigma,
    find_lines,
    fit_window,
    line_area,
)
from labharness.analysis.material_table import (
    MATERIALS,
    MOS2_PAIR,
    SILICON,
    SUBSTRATES,
    UNKNOWN,
    Form,
    LayerLimit,
    LineGroup,
    Material,
)
from labharness.analysis.peaks import SiliconFit
from labharness.analysis.spectrum import NM_TO_CM1, Stack, covers, cut_window


class OpenLine(NamedTuple):
    """A line that nothing explains; the numbers are rough, and heights in electrons."""

    position_cm1: float
    fwhm_cm1: float
    height_counts: float


@dataclass(frozen=True, slots=True)
class Named:
    """The material of one spectrum, and its lines by their names in the table.

    Attributes:
        probability: Probability that the name is right; 0 of `unknown`.
        beside: Further films in the same spectrum.
        open_lines: Lines that nothing explains, the highest first.
        on_silicon: The line near 520.7 cm⁻¹ is silicon's.
        refused: A material whose lines stand there, and the place of the line that speaks against
            it.
    """

    material: Material
    lines: Mapping[str, SeenLine[float]] = field(default_factory=dict)
    probability: float = 1.0
    beside: tuple[str, ...] = ()
    open_lines: tuple[OpenLine, ...] = ()
    on_silicon: bool = False
    refused: tuple[str, float] | None = None

    def ratio(self, line: str, over: str) -> tuple[float, float] | None:
        """Return the ratio of two heights and its error; None without the second line."""
        below = self.lines.get(over)
        if below is None:
            return None
        above = self.lines.get(line)
        if above is None:
            return 0.0, below.height_sigma_counts / below.height_counts
        value = above.height_counts / below.height_counts
        return value, value * math.hypot(
            above.height_sigma_counts / above.height_counts,
            below.height_sigma_counts / below.height_counts,
        )


AIR_CM1 = (1556.0, 2330.7)
"""Oxygen and nitrogen of the air in the beam: Fenner 1973, 10.1364/JOSA.63.000073."""

AIR_FWHM_MAX_CM1 = 16.0

ROTATION_CM1 = 165.0
"""Where nitrogen shows, narrow lines below this shift are those of its rotation."""

RAY_SHARE = 0.5
"""A line of less than this share of silicon's width is a cosmic ray that a program smoothed."""

LASER_FOOT_CM1 = 90.0
EDGE_CM1, EDGE_REACH_CM1, EDGE_FWHM_CM1 = 320.0, 60.0, 18.0
"""Below this shift is light of the laser; where the axis begins within it, a broad hill so near to
its beginning is the edge of the filter."""

LAMP_NM = (
    *(435.83, 546.07, 576.96, 579.07, 611.6),  # mercury and its phosphor: light of the room
    *(476.49, 488.90, 496.51, 501.72, 514.18, 520.83, 528.69),  # argon of an ion laser
    *(633.44, 638.30, 640.22, 650.65, 659.90, 667.83, 692.95, 703.24),  # neon of a He-Ne laser
)
"""Lines of lamps and of gas lasers in air: NIST Atomic Spectra Database."""

LAMP_REACH_CM1, LAMP_FWHM_CM1 = 2.0, 6.0

SLACK_PIXELS, SLACK_WIDTHS = 1.0, 0.3
"""A found line's place is rough; so far outside a window it may still belong to it."""

ALSO_ROOM = 1.5
"""A further line of a material may exceed its usual share by this factor."""


def by_instrument(
    lines: FoundLines, axis: Array, silicon_fwhm_cm1: Array, laser_nm: float | None
) -> Mask:
    """Return which lines are not of the sample: filter, air, lamps, cosmic rays that are left.

    Args:
        lines: The lines.
        axis: Shift of each pixel.
        silicon_fwhm_cm1: Width of silicon in each row; 0 without.
        laser_nm: It places the lines of lamps.
    """
    at, fwhm = lines.position_cm1, lines.fwhm_cm1
    pixel = float(np.median(np.diff(axis)))
    found = np.abs(at) < LASER_FOOT_CM1
    found |= fwhm < RAY_SHARE * silicon_fwhm_cm1[:, None]
    near_start = (at < EDGE_CM1) & (at - axis[0] < EDGE_REACH_CM1)
    found |= near_start & (fwhm > EDGE_FWHM_CM1)
    for place in AIR_CM1:
        reach = np.maximum(4.0, SLACK_WIDTHS * fwhm)
        found |= (np.abs(at - place) < reach) & (fwhm < AIR_FWHM_MAX_CM1)
    if laser_nm is not None:
        for place in NM_TO_CM1 / laser_nm - NM_TO_CM1 / np.array(LAMP_NM):
            narrow = fwhm < max(LAMP_FWHM_CM1, 3 * pixel)
            found |= (np.abs(at - place) < max(LAMP_REACH_CM1, pixel)) & narrow
    nitrogen = (found & (np.abs(at - AIR_CM1[1]) < AIR_FWHM_MAX_CM1)).any(axis=1, keepdims=True)
    found |= nitrogen & (at < ROTATION_CM1) & (fwhm < LAMP_FWHM_CM1)
    return found


def within(lines: FoundLines, low_cm1: float, high_cm1: float, pixel_cm1: float) -> Mask:
    """Return which lines lie in a window."""
    slack = SLACK_PIXELS * pixel_cm1 + SLACK_WIDTHS * np.nan_to_num(lines.fwhm_cm1)
    return (lines.position_cm1 >= low_cm1 - slack) & (lines.position_cm1 <= high_cm1 + slack)


def by_material(material: Material, lines: FoundLines, own: Array, pixel_cm1: float) -> Mask:
    """Return which lines a material explains whose highest line has these heights (rows).

    In the windows that name it lines may have any height, elsewhere at most their usual share.
    """
    found = np.zeros(lines.position_cm1.shape, dtype=bool)
    forms = (group for form in material.forms for group in form.groups)
    for window in (each for group in (*forms, *material.besides) for each in group.windows):
        found |= within(lines, window.low_cm1, window.high_cm1, pixel_cm1)
    for low, high, most, least in material.also:
        weak = lines.height_counts <= ALSO_ROOM * most * own[:, None]
        found |= within(lines, low, high, pixel_cm1) & weak & (lines.fwhm_cm1 >= least)
    return found


HEIGHT_SIGMA_MIN = 6.0
"""A line must exceed this many of its own errors, of its height or of its area."""

ALONE_SIGMA_MIN = 10.0
"""The limit for a line that is the only one of its material."""

ITERATIONS_ALONE = 16
"""Steps for a single line: a present one needs 5 to 10, an absent one never converges."""

PASSES_MAX = 3
"""A film explains lines that stood against another one; three on one place are rare."""

SURE_OF_MANY, SURE_OF_TWO, SURE_OF_ONE, SURE_OF_PART = 0.99, 0.97, 0.85, 0.7
"""Probability of a name by the number of its lines that stand out, where nothing else does; and its
factor for a single line on an axis that shows less than ``SEEN_SHARE_MIN`` of where others would
be. Tried on published lines of other substances: docs/reference/confidence.md."""

SEEN_SHARE_MIN = 0.7
MOST_ALONE = 0.5
"""One line is a name only where nothing unexplained has half of its height."""

HIGH_SHARE = 0.4
"""A line of this share of a material's highest counts as one of its high lines."""

NAME_MIN = 0.7
"""A less probable name is not given."""

OPEN_COSTS, OPEN_SHARE, ONE_COSTS = 0.3, 0.3, 0.85
"""Share of the probability that an unexplained line costs at the highest that is allowed; and what
remains of it for each that has so much of the material's height."""

OPEN_SIGMA_MIN, OPEN_MAX, OPEN_SHARE_MIN = 6.0, 24, 0.02
"""An unexplained line rises by so many errors; most of them told of a spectrum, and the least share
of the highest of them."""

SILICON_NEAR_CM1, SILICON_WEAK_MOST, SILICON_SURE_MOST = 4.0, 0.3, 4.0
SILICON_CM1 = (518.0, 523.0)
SILICON_SECOND_CM1 = ((930.0, 990.0, 15.0, 80.0), (297.0, 309.0, 8.0, 30.0))  # and widths
SILICON_ALONE_FWHM_MAX_CM1 = 6.5
SILICON_SECOND_LEAST, SILICON_SECOND_MOST = 0.01, 0.3
"""A line near 520.7 is silicon's if no unexplained one has 0.3 of its height, with silicon's second
order beside it and no farther off than 4 cm⁻¹ four times as high. One farther off needs that second
order or a film whose lines are as far off; so does one that is wider than silicon is on an
instrument of some 5 cm⁻¹, for lines of other crystals and of molecules are as wide."""

CHUNK_SPECTRA = 2000
"""Rows identified together; this bounds the memory for a map of any size."""


class _Fitted(NamedTuple):
    """One group fitted in some rows of a stack; the height is 0 in rows without a fit.

    Attributes:
        values: Position, width and height and their errors (rows x lines x 6).
        stands: Whether each line stands out and is at no bound (rows x lines).
        sure: The same by the limit for a single line.
    """

    values: Array
    stands: Mask
    sure: Mask


def identify_rows(
    stack: Stack, silicon: Sequence[SiliconFit | None], laser_nm: float | None = None
) -> tuple[Named, ...]:
    """Return the material of each row, on an axis already calibrated to silicon.

    All lines are found first. A material whose required lines stand out is named while no line that
    nothing explains is higher than its own where it speaks. Of several films the first of the table
    gives the name; silicon and other substrates come after the films.

    Args:
        stack: The spectra.
        silicon: The silicon line of each, or None.
        laser_nm: Places the lines of lamps, if it is known.
    """
    named: list[Named] = []
    for part in stack.parts(CHUNK_SPECTRA):
        lines = silicon[len(named) : len(named) + len(part.counts)]
        named += _Naming(part, lines, laser_nm).names()
    return tuple(named)


class _Candidate(NamedTuple):
    """Rows that show all lines of a material in one form.

    Attributes:
        own: Height of its highest line (rows).
        explains: The found lines that it explains (rows x lines).
        needed: Those among them that it is recognised by.
        sure: Probability that these lines are its own, by their number and clearness.
    """

    material: Material
    form: Form
    groups: tuple[LineGroup, ...]
    rows: Rows
    own: Array
    explains: Mask
    needed: Mask
    sure: Array


class _Naming:
    """The rows of one stack while they are identified; each group of lines is fitted once."""

    def __init__(
        self, stack: Stack, silicon: Sequence[SiliconFit | None], laser_nm: float | None
    ) -> None:
        self._stack = stack
        self._pixel = float(np.median(np.diff(stack.shift_cm1)))
        self._silicon = np.array([0.0 if each is None else each.height_counts for each in silicon])
        self._offset = np.array([0.0 if each is None else each.offset_cm1 for each in silicon])
        self._fitted: dict[LineGroup, tuple[_Fitted, Mask]] = {}
        self._lines = find_lines(stack)
        fwhm = np.array([0.0 if each is None else each.fwhm_cm1 for each in silicon])
        self._narrow = fwhm < SILICON_ALONE_FWHM_MAX_CM1
        instrument = by_instrument(self._lines, stack.shift_cm1, fwhm, laser_nm)
        self._line = self._lines.height_counts > 0
        self._explained = instrument | self._lines.is_foot | (self._lines.sigma < OPEN_SIGMA_MIN)
        self._films = np.zeros_like(self._line)
        self._far = np.abs(self._offset) > SILICON_NEAR_CM1
        # A line too narrow or too bright to calibrate may still be silicon's.
        there = within(self._lines, *SILICON_CM1, self._pixel)
        first = np.where(there, self._lines.height_counts, 0.0).max(axis=1, initial=0.0)
        first = np.maximum(self._silicon, first)
        self._second = self._has_second(first)
        first = np.where(self._second | (self._silicon > 0), first, 0.0)
        self._explained |= by_material(SILICON, self._lines, first, self._pixel)

    def names(self) -> list[Named]:
        """Name what holds in each row, until nothing more does; the first film is its name."""
        waiting = list(self._candidates())
        found: list[list[tuple[_Candidate, int, float]]] = [[] for _ in self._silicon]
        refused: dict[int, tuple[str, float]] = {}
        for _ in range(PASSES_MAX):
            kept = []
            for each in waiting:
                holds, sure, worst = self._holds(each)
                for at in np.nonzero(holds)[0].tolist():
                    found[each.rows[at]].append((each, at, float(sure[at])))
                for at in np.nonzero(~np.isnan(worst))[0].tolist():
                    refused[int(each.rows[at])] = each.material.name, float(worst[at])
                rows = each.rows[holds]
                self._explained[rows] |= each.explains[holds]
                if each.material not in SUBSTRATES:
                    self._films[rows] |= each.explains[holds]
                kept.append(_of(each, ~holds))
            if sum(each.rows.size for each in kept) == sum(each.rows.size for each in waiting):
                break
            waiting = kept
        bare, sure = self._silicon_holds()
        order = {
            material.name: at for at, material in enumerate((*MATERIALS, SILICON, *SUBSTRATES))
        }
        names = []
        for row, held in enumerate(found):
            held.sort(key=lambda one: order[one[0].material.name])
            films = [one for one in held if one[0].material not in SUBSTRATES]
            open_lines = self._open(row)
            why = refused.get(row)
            if films or (held and not bare[row]):
                each, at, share = (films or held)[0]
                fitted = [(group, self._fit(group, each.rows)) for group in each.groups]
                beside = tuple(one[0].material.name for one in films[1:])
                lines = _standing(fitted, row)
                names.append(
                    Named(each.material, lines, share, beside, open_lines, bool(bare[row]))
                )
            elif bare[row]:
                names.append(Named(SILICON, {}, float(sure[row]), (), open_lines, True))
            else:
                names.append(Named(UNKNOWN, {}, 0.0, (), open_lines, False, why))
        return names

    def _candidates(self) -> Iterator[_Candidate]:
        every = np.arange(len(self._silicon))
        for material in (*MATERIALS, *SUBSTRATES):
            left = every
            for form in material.forms:
                rows = self._showing(material, form, left)
                if rows.size:
                    yield self._candidate(material, form, rows)
                    left = np.setdiff1d(left, rows)

    def _candidate(self, material: Material, form: Form, rows: Rows) -> _Candidate:
        groups = (*form.groups, *material.besides)
        fits = [self._fit(group, rows) for group in groups]
        own = np.max(
            [fit.values[rows, :, 4].max(axis=1) for fit in fits[: len(form.groups)]], axis=0
        )
        lines = self._lines.of(rows)
        windows = [
            window
            for group in form.groups
            for name, window in zip(group.names, group.windows, strict=True)
            if name not in group.shoulders
        ]
        count = sum(fit.stands[rows].sum(axis=1) for fit in fits)
        sure = np.where(count > 2, SURE_OF_MANY, np.where(count > 1, SURE_OF_TWO, SURE_OF_ONE))
        low, high = material.speaks_cm1
        axis = self._stack.shift_cm1
        seen = (min(high, axis[-1]) - max(low, axis[0])) / (high - low)
        if form.alone and seen < SEEN_SHARE_MIN:
            sure = sure * SURE_OF_PART
        return _Candidate(
            material,
            form,
            groups,
            rows,
            own,
            by_material(material, lines, own, self._pixel),
            np.logical_or.reduce(
                [within(lines, each.low_cm1, each.high_cm1, self._pixel) for each in windows]
            ),
            sure,
        )

    def _holds(self, each: _Candidate) -> tuple[Mask, Array, Array]:
        """Return where a candidate holds, how sure, and else the place of the line against it."""
        lines, material = self._lines.of(each.rows), each.material
        # No line names two films: one of its high lines is its own alone.
        high = lines.height_counts > HIGH_SHARE * each.own[:, None]
        mine = (each.needed & high & ~self._films[each.rows]).any(axis=1)
        against = ~(self._explained[each.rows] | each.explains)
        against &= lines.fwhm_cm1 <= material.broad_cm1
        limit = np.where(_speaks(material, lines), material.most, material.most_beyond)
        if each.form.alone:
            limit = np.minimum(limit, MOST_ALONE)
        height = np.where(against, lines.height_counts, 0.0)
        over = height / limit / np.maximum(each.own, np.finfo(float).tiny)[:, None]
        most = over.max(axis=1, initial=0.0)
        several = (height > OPEN_SHARE * each.own[:, None]).sum(axis=1)
        sure = each.sure * (1 - OPEN_COSTS * np.minimum(most, 1) ** 2) * ONE_COSTS**several
        holds = mine & (most <= 1) & (sure >= NAME_MIN)
        worst = np.full(each.rows.size, np.nan)
        if over.size:
            strongest = lines.position_cm1[np.arange(each.rows.size), height.argmax(axis=1)]
            worst = np.where(mine & ~holds, strongest, np.nan)
        return holds, sure, worst

    def _silicon_holds(self) -> tuple[Mask, Array]:
        """Return where silicon's line is silicon's, and how surely.

        A substance with a higher line that nothing explains may have one here too, unless the
        second order of silicon stands there as well.
        """
        lines = self._lines
        against = ~self._explained & (lines.fwhm_cm1 <= SILICON.broad_cm1)
        against &= _speaks(SILICON, lines)
        height = np.where(against, lines.height_counts, 0.0).max(axis=1, initial=0.0)
        witness = self._second | self._films.any(axis=1)
        there = (self._silicon > 0) & (witness | (~self._far & self._narrow))
        limit = np.where(self._second & ~self._far, SILICON_SURE_MOST, SILICON_WEAK_MOST)
        over = height / limit / np.where(self._silicon > 0, self._silicon, 1.0)
        sure = np.where(self._second, SURE_OF_MANY, SURE_OF_ONE)
        holds: Mask = np.asarray(there & (over <= 1), dtype=np.bool_)
        return holds, sure * (1 - OPEN_COSTS * np.minimum(over, 1) ** 2)

    def _has_second(self, first: Array) -> Mask:
        """Return where silicon's second order stands: broad, and far lower than the first."""
        lines = self._lines
        share = lines.height_counts / np.where(first > 0, first, np.nan)[:, None]
        found = np.zeros_like(share, dtype=bool)
        for low, high, least, most in SILICON_SECOND_CM1:
            wide = (lines.fwhm_cm1 > least) & (lines.fwhm_cm1 < most)
            found |= within(lines, low, high, self._pixel) & wide
        low_enough = (share > SILICON_SECOND_LEAST) & (share < SILICON_SECOND_MOST)
        return np.asarray((found & low_enough).any(axis=1), dtype=np.bool_)

    def _open(self, row: int) -> tuple[OpenLine, ...]:
        """Return what nothing explains in a row, the highest first, without the least."""
        lines = self._lines
        at = np.nonzero(~self._explained[row])[0]
        if at.size == 0:
            return ()
        height = lines.height_counts[row, at]
        at = at[np.argsort(-height)][:OPEN_MAX]
        least = OPEN_SHARE_MIN * float(height.max())
        return tuple(
            OpenLine(*(float(each[row, n]) for each in lines[:3]))
            for n in at.tolist()
            if lines.height_counts[row, n] >= least
        )

    def _showing(self, material: Material, form: Form, rows: Rows) -> Rows:
        """Return the rows that show the material in this form."""
        axis = self._stack.shift_cm1
        if form.without is not None and covers(axis, *form.without.needs_cm1):
            return rows[:0]
        if form.calibrated:
            sure = (self._silicon > 0) & (~self._far | self._second)  # not by each other alone
            rows = rows[sure[rows]]
        if not all(group.fits_on(axis) for group in form.groups):
            return rows[:0]
        for group in form.groups:  # fits without lines take longest
            for name, window in zip(group.names, group.windows, strict=True):
                if name not in group.shoulders and rows.size:
                    lines = self._lines.of(rows)
                    near = within(lines, window.low_cm1, window.high_cm1, self._pixel)
                    rows = rows[(near & self._line[rows]).any(axis=1)]
        if MOS2_PAIR in form.groups and rows.size:
            # A survey trusts its camera, but the scale of an external file is a guess. So the lines
            # are tested again, against the misfit of their fit.
            rows = rows[film_rows(self._stack.of(rows))[1]]
        for group in form.groups:
            fitted = self._fit(group, rows)
            stands = fitted.sure if form.alone else fitted.stands
            rows = rows[stands[rows].all(axis=1)]
        for limit in form.limits:
            rows = rows[self._within(material, form, limit, rows)]
        return rows

    def _within(self, material: Material, form: Form, limit: LayerLimit, rows: Rows) -> Mask:
        groups = (*form.groups, *material.besides)
        value, stands = self._value(groups, limit.line, rows, 1 if not limit.over else 2)
        if limit.distance:
            value, _ = self._value(groups, limit.line, rows, 0)
            value = value - self._value(groups, limit.over, rows, 0)[0]
        elif limit.over:
            below, there = self._value(groups, limit.over, rows, 2)
            value = np.divide(
                np.where(stands, value, 0.0),
                below,
                out=np.full(rows.size, np.inf),
                where=there & (below > 0),
            )
        return (value >= limit.low) & (value <= limit.high)

    def _value(
        self, groups: Sequence[LineGroup], line: str, rows: Rows, which: int
    ) -> tuple[Array, Mask]:
        for group in groups:
            if line in group.names:
                at = group.names.index(line)
                fitted = self._fit(group, rows)
                return fitted.values[rows, at, 2 * which], fitted.stands[rows, at]
        return np.zeros(rows.size), np.zeros(rows.size, dtype=bool)

    def _fit(self, group: LineGroup, rows: Rows) -> _Fitted:
        if group not in self._fitted:
            rows_done = np.zeros(len(self._silicon), dtype=bool)
            self._fitted[group] = _nothing(rows_done.size, len(group.names)), rows_done
        fitted, done = self._fitted[group]
        todo = rows[~done[rows]]
        if todo.size:
            done[todo] = True
            for all_of_it, part in zip(
                fitted, _fit_group(self._stack.of(todo), group), strict=True
            ):
                all_of_it[todo] = part
        return fitted


def _speaks(material: Material, lines: FoundLines) -> Mask:
    """Return which lines lie where those of a material would have to be explained."""
    low, high = material.speaks_cm1
    return (lines.position_cm1 >= low) & (lines.position_cm1 <= high)


def _standing(fitted: Sequence[tuple[LineGroup, _Fitted]], row: int) -> dict[str, SeenLine[float]]:
    """Return the lines of these groups that stand out in one row, each from its first group."""
    lines: dict[str, SeenLine[float]] = {}
    for group, found in fitted:
        stands = found.stands[row].tolist()
        for at, name in enumerate(group.names):
            if stands[at] and name not in lines:
                lines[name] = SeenLine(*found.values[row, at].tolist())
    return lines


def _nothing(rows: int, lines: int) -> _Fitted:
    shape = (rows, lines)
    return _Fitted(np.zeros((*shape, 6)), np.zeros(shape, bool), np.zeros(shape, bool))


def _fit_group(stack: Stack, group: LineGroup) -> _Fitted:
    """Fit a group in every row."""
    lines = len(group.windows)
    values, stands, sure = fitted = _nothing(len(stack.counts), lines)
    if not group.fits_on(stack.shift_cm1):
        return fitted
    iterations_max = ITERATIONS_ALONE if lines == 1 else ITERATIONS_MAX
    fits = fit_window(cut_window(stack, group.range_cm1), group.windows, iterations_max)
    for line in range(lines):
        values[:, line] = np.stack(astuple(fits.line(line))[:6], axis=1)
        clear = _clear(fits, line)
        stands[:, line] = fits.converged & (clear > HEIGHT_SIGMA_MIN)
        sure[:, line] = fits.converged & (clear > ALONE_SIGMA_MIN)
    return fitted


def _clear(fits: LineFits, line: int) -> Array:
    """Return by how many of its own errors a line stands out, of its height or of its area.

    For a line two pixels wide only the product of height and width is known.
    """
    height, fwhm = fits.parameters[:, 3 * line], fits.parameters[:, 3 * line + 2]
    covariance = fits.covariance[:, [[3 * line], [3 * line + 2]], [3 * line, 3 * line + 2]]
    of_height = np.sqrt(fits.variance[:, 3 * line])
    of_area = area_sigma(height, fwhm, covariance)
    tiny = np.finfo(float).tiny
    return np.maximum(
        height / np.maximum(of_height, tiny), line_area(height, fwhm) / np.maximum(of_area, tiny)
    ) / np.sqrt(fits.inflation)


def _of(each: _Candidate, kept: Mask) -> _Candidate:
    of_rows = ("rows", "own", "explains", "needed", "sure")
    return each._replace(**{name: getattr(each, name)[kept] for name in of_rows})
