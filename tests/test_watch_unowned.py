"""A line that nobody drives is watched though an instrument is silent, or it is latched."""

import json
from collections.abc import Callable

import pytest

from commands import say
from labharness.lab import Lab, LabPlan, care
from rig import SHORT_LINE, cut


@pytest.fixture
def without_detector(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Cut the gas detector's wires in every lab that is built from now on."""

    def act() -> None:
        class Cut(Lab):
            def __init__(self, *args: object, **options: object) -> None:
                super().__init__(*args, **options)  # type: ignore[arg-type]  # as the lab has them
                cut("detector")(self)

        monkeypatch.setattr(care, "Lab", Cut)

    return act


def test_one_silent_instrument_blinds_nobody_to_the_others(
    short_plan: LabPlan, without_detector: Callable[[], None]
) -> None:
    without_detector()
    said = say("watch", "--for", "2", "--json", "--lab", SHORT_LINE)
    assert said.code == 0, said
    first, second = (json.loads(line) for line in said.out.splitlines())
    assert second["readings"]["furnace.temperature"][0] is not None
    assert "no reply" in second["unknown"]["h2_detector"]
    assert list(first["unknown"]) == ["h2_detector"]
    plain = say("watch", "--for", "1", "--lab", SHORT_LINE)
    assert plain.code == 0
    (row,) = [each for each in plain.out.splitlines() if "h2_detector" in each]
    assert row.split()[:2] == ["h2_detector", "unknown"]
