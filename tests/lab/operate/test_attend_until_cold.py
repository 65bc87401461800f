"""A line that was driven by hand is watched until it is cold, and can be left before that."""

from dataclasses import replace
from pathlib import Path

import pytest

from labharness.lab import LabPlan
from labharness.lab.operate.attend import Attendance, Left
from labharness.safety.guard import Latch

WISH = {"do": "set", "channel": "argon.setpoint", "value": 9, "unit": "sccm", "by": "Ada"}
NEVER_C = -10.0  # colder than the room


class Hands:
    """A person who ends an attendance by signals.

    Args:
        stops_at: At each of these texts, once, a signal comes.
    """

    def __init__(self, plan: LabPlan, folder: Path, stops_at: tuple[str, ...]) -> None:
        self.told: list[str] = []
        self._left = [*stops_at]
        self.attendance = Attendance(plan, folder, by="Ada", speed=None, for_s=5.0, tell=self._tell)

    def _tell(self, text: str) -> None:
        self.told.append(text)
        for each in [each for each in self._left if each in text]:
            self._left.remove(each)
            self.attendance.stop(f"signal at {each}")

    def drive(self) -> Left:
        return self.attendance.run(WISH, told=lambda answer: 0)[1]


@pytest.fixture
def never_cold(short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch) -> LabPlan:
    """A line that stays warm for ever, which a watch sees after a minute."""
    for module in ("labharness.line.line", "labharness.work.desk.making_safe"):
        monkeypatch.setattr(f"{module}.COOL_WATCH_S_MAX", 60.0)
    return replace(short_plan, cold=dict.fromkeys(short_plan.cold, NEVER_C))


def test_a_cold_line_is_left_by_itself_and_not_latched(short_plan: LabPlan, tmp_path: Path) -> None:
    hands = Hands(short_plan, tmp_path, ())
    left = hands.drive()
    assert (left.unverified, left.tripped) == ((), "")
    assert any("furnace.temperature below 60 degC" in each for each in hands.told)
    assert not any("again leaves it" in each for each in hands.told)


@pytest.mark.promise(62)
@pytest.mark.parametrize(
    "stops_at",
    [("until it is cold",), ("attended here", "until it is cold"), ("attended here", "again")],
    ids=["after its time", "after a first signal", "before the watch"],
)
def test_a_second_stop_ends_the_watch_with_the_line_safe_and_latched(
    never_cold: LabPlan, tmp_path: Path, stops_at: tuple[str, ...]
) -> None:
    hands = Hands(never_cold, tmp_path, stops_at)
    left = hands.drive()
    assert left.unverified == ()
    assert left.tripped.startswith("left before it was cold: the watch was broken off: signal")
    assert Latch(never_cold.state_dir / "latch.json").trip is not None
    assert "Ctrl-C or labharness stop again leaves it as it is" in " ".join(hands.told)


def test_one_stop_alone_breaks_no_watch_off(never_cold: LabPlan, tmp_path: Path) -> None:
    left = Hands(never_cold, tmp_path, ("attended here",)).drive()
    assert "is not cold after" in left.tripped
