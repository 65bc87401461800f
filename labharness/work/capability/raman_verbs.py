"""The verbs at the microscope: survey, Raman map, photoluminescence, and the verdict on them."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from statistics import median
from typing import Any

from labharness.core.vocabulary import Command
from labharness.core.vocabulary.texts import Text
from labharness.work.capability.raman_verdict import judge, raman_shift, sees_film
from labharness.work.plan import RunningStep, Verb

DARK, SURVEY, MAP, GLOW = "dark", "survey", "raman", "photoluminescence"
"""The kinds of spectra, as they are kept with each of them."""

GRID_SIDE = 7
GRID_STEP_UM = 60.0
"""A survey covers +-180 um of a sample 1 mm wide, in steps longer than a usual triangle."""

GRID_STRIDE = 20
"""Places are visited this many apart (coprime to their number), so that the first few are spread
over the whole grid."""

SURVEY_S = 1.0
"""At 0.3 mW a monolayer gives some 200 counts of A1g a second, ten times what is needed."""

A1G_COUNTS = 3000.0
"""Height of A1g that an exposure aims at, within 1000-10000: the separation is good to 0.05 cm-1
and silicon, eight times higher on a monolayer, does not saturate."""

EXPOSURE_S_MIN, EXPOSURE_S_MAX = 0.1, 60.0
PL_SHARE = 0.1
"""Photoluminescence of a monolayer is some 20 times A1g: a tenth of the exposure will do."""

SATURATED_COUNTS = 60_000.0
"""A 16-bit camera ends at 65535."""

SATURATED_CUT = 4.0
EXPOSURES_MAX = 4
"""Exposures tried at one place, each shorter, before it is given up as too bright."""

READ_OUT_S_MAX = 10.0
"""Time after its exposure for which a camera may still be busy."""

MORE_SPOTS = 3
"""Spots added at a time while the verdict is in doubt."""


def grid() -> tuple[tuple[float, float], ...]:
    """Return the places of a survey in the order of the visit, in um from the middle."""
    half = (GRID_SIDE - 1) / 2
    count = GRID_SIDE * GRID_SIDE
    visits = [divmod(number * GRID_STRIDE % count, GRID_SIDE) for number in range(count)]
    return tuple(
        ((column - half) * GRID_STEP_UM, (row - half) * GRID_STEP_UM) for row, column in visits
    )


async def survey(step: RunningStep) -> Mapping[str, Any]:
    """Look for film on a grid, until enough places with film are found.

    A dark exposure comes first: the counts of a camera without light are not signal.
    """
    asked = step.parameters
    _, dark, _ = await _expose(step, SURVEY_S, {"of": DARK})
    dark_counts = median(dark)
    film: list[dict[str, float]] = []
    looked = 0
    async with _laser(step):
        for x_um, y_um in grid():
            place = {"x_um": x_um, "y_um": y_um}
            taken, wavelength_nm, counts = await _look(step, SURVEY, place, SURVEY_S)
            shift = raman_shift(asked["laser_nm"], wavelength_nm)
            try:
                height = sees_film(shift, [value - dark_counts for value in counts])
            except ValueError as why:
                text = Text("raman.survey", x_um=x_um, y_um=y_um, why=str(why))
                raise step.failed(text) from None
            looked += 1
            if height is not None:
                film.append({**place, "a1g_counts_per_s": height / taken["exposure_s"]})
            if len(film) >= asked["film_places"] and looked >= asked["places_min"]:
                break
    return {
        "film": film,
        "places": looked,
        "dark_counts": dark_counts,
        "laser_nm": asked["laser_nm"],
    }


async def raman_map(step: RunningStep) -> Mapping[str, Any]:
    """Take a Raman spectrum at the first places of a survey that have film."""
    found = step.parameters["survey"]
    return {"spots": await _raman_spots(step, found, 0, step.parameters["spots"])}


async def photoluminescence(step: RunningStep) -> Mapping[str, Any]:
    """Measure the height of the A exciton at the spots of a Raman map, in counts a second."""
    from labharness.analysis.film import peak_height  # numpy loads longer than a plan is made

    spots, dark_counts = step.parameters["spots"], step.parameters["dark_counts"]
    heights: list[float] = []
    spectra: list[dict[str, Any]] = []
    if spots:
        async with _laser(step):
            for spot in spots:
                wanted_s = max(PL_SHARE * spot["exposure_s"], EXPOSURE_S_MIN)
                taken, wavelength_nm, counts = await _look(step, GLOW, spot, wanted_s)
                try:
                    light = [value - dark_counts for value in counts]
                    height = peak_height(wavelength_nm, light)
                except ValueError as why:
                    raise step.failed(Text("raman.glow", why=str(why))) from None
                heights.append(height / taken["exposure_s"])
                spectra.append({**taken, "wavelength_nm": wavelength_nm, "counts": counts})
    return {"heights_per_s": heights, "spectra": spectra}


async def analyse(step: RunningStep) -> Mapping[str, Any]:
    """Judge the layers; while that leaves doubt, measure more spots up to ``spots_max``."""
    asked = step.parameters
    found = asked["survey"]
    spots = list(asked["spots"])
    most = min(asked["spots_max"], len(found["film"]))
    while True:
        try:
            # In a thread: tens of spots take longer than the line may wait for its next poll.
            verdict = await asyncio.to_thread(
                judge,
                spots,
                asked["pl_heights_per_s"],
                found["dark_counts"],
                asked["reference"],
                asked["threshold"],
                asked.get("origin"),
            )
        except ValueError as why:
            raise step.failed(Text("raman.unjudged", why=str(why))) from None
        sure = verdict["layer_count"] is not None and verdict["confidence"] >= asked["threshold"]
        if sure or len(spots) >= most:
            return {"verdict": verdict, "spots": spots, "threshold": asked["threshold"]}
        spots += await _raman_spots(step, found, len(spots), min(most, len(spots) + MORE_SPOTS))


async def _raman_spots(
    step: RunningStep, found: Mapping[str, Any], first: int, end: int
) -> list[dict[str, Any]]:
    places = found["film"]
    if not places[first:end]:
        return []
    per_s = median(place["a1g_counts_per_s"] for place in places)
    exposure_s = min(max(A1G_COUNTS / per_s, EXPOSURE_S_MIN), EXPOSURE_S_MAX)
    spots = []
    async with _laser(step):
        for place in places[first:end]:
            taken, wavelength_nm, counts = await _look(step, MAP, place, exposure_s)
            shift = raman_shift(found["laser_nm"], wavelength_nm)
            spots.append({**taken, "raman_shift": shift, "counts": counts})
    return spots


@asynccontextmanager
async def _laser(step: RunningStep) -> AsyncIterator[None]:
    """Have the laser on, and off again however it ends; the plan's last step sees it off."""
    await step.perform("laser.emission", 1, "")
    try:
        yield
    finally:
        await step.operations.perform(Command("laser.emission", 0, ""))


async def _look(
    step: RunningStep, of: str, spot: Mapping[str, float], exposure_s: float
) -> tuple[dict[str, float], list[float], list[float]]:
    """Take a spectrum of a kind at a place; return place and exposure, wavelengths, and counts."""
    place = {"x_um": spot["x_um"], "y_um": spot["y_um"]}
    for channel, value_um in (("stage.x", spot["x_um"]), ("stage.y", spot["y_um"])):
        await step.perform(channel, value_um, "um")
        while await step.operations.read("stage.moving"):  # a controller refuses an axis meanwhile
            await step.tick("raman.still_moves", channel=channel, value_um=value_um)
    wavelength_nm, counts, took_s = await _expose(step, exposure_s, {"of": of, **place})
    return {**place, "exposure_s": took_s}, list(wavelength_nm), list(counts)


async def _expose(
    step: RunningStep, exposure_s: float, about: Mapping[str, Any]
) -> tuple[Sequence[float], Sequence[float], float]:
    """Return wavelengths, counts, and the exposure it took: a shorter one where light saturates."""
    for _ in range(EXPOSURES_MAX):
        exposure_ms = max(1, round(exposure_s * 1000))
        wavelength_nm, counts = await _acquire(step, exposure_ms, about)
        if max(counts) < SATURATED_COUNTS:
            return wavelength_nm, counts, exposure_ms / 1000
        exposure_s /= SATURATED_CUT
    raise step.failed(Text("raman.saturated", exposures=EXPOSURES_MAX, exposure_ms=exposure_ms))


async def _acquire(
    step: RunningStep, exposure_ms: int, about: Mapping[str, Any]
) -> tuple[Sequence[float], Sequence[float]]:
    operations = step.operations
    await step.perform("spectrometer.exposure", exposure_ms, "ms")
    await step.perform("spectrometer.acquire", 1, "")
    ready_s = operations.now_s() + exposure_ms / 1000
    while True:
        await step.tick("raman.exposing")
        if operations.now_s() < ready_s:
            continue
        if not await operations.read("spectrometer.acquisition_busy"):
            break
        if operations.now_s() > ready_s + READ_OUT_S_MAX:
            late = Text("raman.busy_after", after_s=READ_OUT_S_MAX, exposure_ms=exposure_ms)
            raise step.failed(Text("raman.busy", late=late))
    known = {**about, "exposure_s": exposure_ms / 1000}
    found: Any = await operations.query("spectrometer", "spectrum", known)
    wavelength_nm, counts = found  # the driver's Query gives two rows of finite numbers
    if not len(wavelength_nm) == len(counts) > 0:
        raise step.failed(Text("raman.no_spectrum"))
    return wavelength_nm, counts


RAMAN_VERBS: Mapping[str, Verb] = {
    "survey": survey,
    "raman_map": raman_map,
    "photoluminescence": photoluminescence,
    "analyse": analyse,
}
