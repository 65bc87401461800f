"""The face of a growth's answer: layers, film and spectra."""

from collections.abc import Iterator, Mapping
from typing import Any

from labharness.core.vocabulary import share_text
from labharness.faces.report.answer_face import AnswerFace

__all__ = ["FACE", "GrowthFace"]


class GrowthFace(AnswerFace):
    """Shows what has grown."""

    def lines(self, outputs: Mapping[str, Any], summary: Mapping[str, Any]) -> Iterator[str]:
        """Return layer count, confidence, peak distance, and the film in one line."""
        yield (
            f"completed: layer_count {outputs['layer_count']}, "
            f"confidence {share_text(outputs['confidence'])}, "
            f"peak_distance {outputs['peak_distance']:.2f} cm⁻¹"
        )
        if "finding" in summary:
            yield f"the film: {summary['finding']}"
        if outputs.get("intent", {}).get("said"):
            yield outputs["intent"]["said"]


FACE = GrowthFace()
