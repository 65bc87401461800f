"""The face of an answer about a film, grown or only measured: layers, film and spectra."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from labharness.core.vocabulary import share_text
from labharness.core.vocabulary.texts import Text
from labharness.faces.report.answer_face import AnswerFace, ComparedRun
from labharness.faces.report.cvd import film
from labharness.faces.report.document import section
from labharness.faces.report.facts import RunFacts, as_mapping
from labharness.faces.report.markup import Html, el
from labharness.faces.report.words import both, say

__all__ = ["FACE", "GrowthFace"]

SERIES = frozenset(
    ("spectrum_data", "growth_log", "spots", "evidence", "posterior", "best_spot")
) | {"shares", "of_film", "of_area", "bare"}


class GrowthFace(AnswerFace):
    """Shows the film."""

    series = SERIES

    def lines(self, outputs: Mapping[str, Any], summary: Mapping[str, Any]) -> Iterator[str]:
        """Return layer count, confidence, peak distance, and the film in one line."""
        said = (
            f"layer_count {outputs['layer_count']}, "
            f"confidence {share_text(outputs['confidence'])}, "
            f"peak_distance {outputs['peak_distance']:.2f} cm⁻¹"
        )
        yield Text("cli.completed_with", outputs=said)
        if "finding" in summary:
            yield Text("cli.film", finding=summary["finding"])
        if outputs.get("intent", {}).get("said"):
            yield outputs["intent"]["said"]

    def headline(self, facts: RunFacts) -> Html | None:
        """Return the claim on the film, or that the number of layers is undetermined."""
        count = _analysis(facts).get("layer_count", "")
        if count is not None and not isinstance(count, int):
            return None
        found = as_mapping(facts.results.get("film"))
        return film.headline(found, count) if "claim" in found else film.layers_text(count)

    def confidence(self, facts: RunFacts) -> object:
        """Return the confidence in the layer count."""
        return _analysis(facts).get("confidence", super().confidence(facts))

    def beneath(self, facts: RunFacts) -> Iterator[Html]:
        """Return the layer counts that are credible, and whether the words of the task were met."""
        analysis = _analysis(facts)
        credible = analysis.get("credible_set")
        if isinstance(credible, list) and len(credible) > 1 and analysis.get("layer_count") is None:
            yield el("p", say("credible", set=", ".join(str(each) for each in credible)))
        unmet = as_mapping(facts.results.get("intent")).get("said")
        if unmet:
            yield el("p", both(unmet), class_="alarm")

    def glance(self, facts: RunFacts) -> Iterator[tuple[Html, object]]:
        """Return the separation of the two lines, and how many spots carry the answer."""
        analysis = _analysis(facts)
        distance, sigma = analysis.get("peak_distance_cm1"), analysis.get("peak_distance_sigma_cm1")
        if isinstance(distance, float | int) and isinstance(sigma, float | int):
            yield say("distance"), f"{distance:.2f} ± {sigma:.2f} cm⁻¹"
        spots, carried = analysis.get("spots"), analysis.get("spots_of_class")
        if isinstance(spots, list) and spots and isinstance(carried, int):
            yield say("spots_agree"), say("of", count=carried, total=len(spots))

    def conditions(self, facts: RunFacts) -> Iterator[tuple[str, object]]:
        """Return the conditions of the growth and of its spectra."""
        return film.growth_conditions(facts)

    def sections(self, facts: RunFacts) -> Iterator[Html]:
        """Return film and evidence; the plain results where there is no film to draw."""
        drawn = film.of_raman(film.film, facts)
        if drawn is None:
            yield from super().sections(facts)
            return
        yield section("film", drawn)
        if facts.results["raman_analysis"]["spots"]:
            yield section("evidence", film.of_raman(film.evidence, facts) or Html(""))

    def compared(self, runs: Sequence[ComparedRun]) -> Iterator[Html]:
        """Return the spectra and films of both."""
        return film.growths_compared(runs)


def _analysis(facts: RunFacts) -> Mapping[str, Any]:
    return as_mapping(facts.results.get("raman_analysis"))


FACE = GrowthFace()
