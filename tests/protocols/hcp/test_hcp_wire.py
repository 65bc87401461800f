"""The numbers of HCP's layers 1 and 2 on the wire: back-off and prefetch."""

import pytest

from labharness.protocols.hcp.terms import RISK_LEVELS, RiskLevel
from labharness.protocols.hcp.wire import BACK_OFF_S, BackOff, prefetch


def test_waits_double_from_a_second_to_a_minute_and_stay_there() -> None:
    back_off = BackOff()
    assert [back_off.longer() for _ in range(9)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert BACK_OFF_S == (1.0, 60.0)


@pytest.mark.parametrize("level", [None, *RISK_LEVELS])
def test_a_caller_of_grave_work_takes_one_delivery_at_a_time_and_any_other_ten(
    level: RiskLevel | None,
) -> None:
    assert prefetch(level) == (1 if level in ("R4", "R5") else 10)
