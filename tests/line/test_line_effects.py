"""What comes of a procedure, on toys: what has to be dark, what may not rise, what is hot."""

from collections.abc import Callable, Sequence

import pytest

from labharness.core.clock import VirtualLoop, run
from labharness.instruments.driver import Adds, Cools, Dark, Off
from labharness.line.effects import Effects
from labharness.line.instrument import Contact, Instrument
from labharness.safety.kernel import Step
from line_alone import Toy, shown, toy

OFF = Step(channel="oven.setpoint", value=0.0, unit="")
RELAY_OFF = Step(channel="box.mains", value=0.0, unit="")
COOLS = Cools(channel="temperature", lag_s=10.0, over_s=20.0, rise_max=2.0, above=60.0, unit="degC")
HEATS = Off(
    adds=Adds.HEAT,
    steps=(("setpoint", 0.0), ("mode", 1.0)),
    source="test",
    dark=Dark(channel="power", at_most=1.0, within_s=3.0),
)
MODE = Step(channel="oven.mode", value=1.0, unit="")
STEPS = (OFF, MODE)


def oven(off: Off = HEATS, *fed_by: Contact, cools: tuple[Cools, ...] = (COOLS,)) -> Instrument:
    """An oven, with relays before it."""
    driver = Toy({"setpoint": shown("setpoint"), "mode": shown("mode")}, ("power", "temperature"))
    driver.off = (off,)
    return toy("oven", driver, fed_by=fed_by, cools=cools)


def always(value: float) -> Callable[[float], float]:
    """A reading that stays as it is."""
    return lambda now: value


class Look:
    """Readings by their time, and a look at what comes of steps.

    Attributes:
        asked: What was asked, and when.
        took_s: When the last look had ended.
    """

    def __init__(self, instrument: Instrument, **reads: Callable[[float], float | None]) -> None:
        self._instrument = instrument
        self._reads = {f"oven.{name}": each for name, each in reads.items()}
        self.asked: list[tuple[float, tuple[str, ...]]] = []
        self.took_s = 0.0

    def at(self, what: str, *steps: Step) -> tuple[str, ...]:
        """Look at one thing."""
        loop = VirtualLoop()

        async def read(channels: Sequence[str], within_s: float) -> dict[str, float]:
            assert within_s == 2.0
            self.asked.append((loop.time(), tuple(channels)))
            found = {each: self._reads[each](loop.time()) for each in channels}
            return {each: value for each, value in found.items() if value is not None}

        effects = Effects({"oven": self._instrument}, read, loop.time)

        async def work() -> tuple[str, ...]:
            said: tuple[str, ...] = await getattr(effects, what)(steps)
            self.took_s = loop.time()
            return said

        return run(work(), loop)


def test_what_is_off_has_its_time_to_become_dark_and_then_is_told() -> None:
    for value, dark in ((1.0, True), (1.1, False)):
        look = Look(oven(), power=always(value))
        assert bool(look.at("dark", *STEPS)) is not dark
        assert look.took_s == (0.0 if dark else 3.0)
    look = Look(oven(), power=lambda now: 50.0 if now < 2.9 else 0.5)
    assert look.at("dark", *STEPS) == ()
    assert look.took_s == 3.0
    assert [at_s for at_s, _ in look.asked] == [n * 0.25 for n in range(13)]


def test_what_is_not_dark_is_told_with_the_steps_that_were_verified() -> None:
    look = Look(oven(), power=lambda now: 50.0)
    though = "though oven.setpoint = 0, oven.mode = 1 are verified"
    assert look.at("dark", *STEPS) == (f"oven.power reads 50 , {though}: it may still be heating",)
    though = "though every step is verified, and none switches it off"
    for steps in ((OFF,), (), (OFF, Step(channel="oven.mode", value=0.0, unit=""))):
        (said,) = look.at("dark", *steps)
        assert said == f"oven.power reads 50 , {though}: it may still be heating"
    maybe = Step(channel="oven.mode", value=1.0, unit="", optional=True)
    assert though in look.at("dark", OFF, maybe)[0], "what is only worth a try switches nothing off"


def test_what_is_not_read_in_time_is_told_as_not_known() -> None:
    look = Look(oven(), power=lambda now: None)
    said = "oven.power was not read: whether oven is still heating is not known"
    assert look.at("dark", *STEPS) == (said,)
    assert look.took_s == 3.0


@pytest.mark.parametrize(
    ("before_relay", "relay", "looked_at"),
    [(False, False, True), (False, True, True), (True, False, True), (True, True, False)],
)
def test_what_shows_only_what_a_relay_is_given_says_nothing_behind_one_that_is_off(
    *, before_relay: bool, relay: bool, looked_at: bool
) -> None:
    dark = Dark(channel="power", at_most=1.0, within_s=3.0, before_relay=before_relay)
    off = Off(adds=Adds.HEAT, steps=HEATS.steps, source="test", dark=dark)
    mains = Contact(channel="box.mains", source="test", off=0.0)
    feeds_nothing = Contact(channel="box.lamp", source="test")
    look = Look(oven(off, feeds_nothing, mains), power=lambda now: 50.0)
    steps = (*STEPS, RELAY_OFF) if relay else STEPS
    said = look.at("dark", *steps)
    assert bool(said) is looked_at
    if relay and looked_at:
        assert "oven.setpoint = 0, oven.mode = 1, box.mains = 0 are verified" in said[0]


def test_an_inert_gas_may_flow_unless_it_was_shut_and_nothing_dark_is_nothing_seen() -> None:
    dark = Dark(channel="power", at_most=1.0, within_s=3.0)
    for gas, steps, looked_at in (
        ("Ar", (), False),
        ("Ar", STEPS, True),
        ("Ar", (OFF,), False),
        ("H2", (), True),
    ):
        off = Off(adds=Adds.GAS, steps=HEATS.steps, source="test", gas=gas, dark=dark)
        look = Look(oven(off, cools=()), power=lambda now: 50.0)
        assert bool(look.at("dark", *steps)) is looked_at
    blind = Off(adds=Adds.HEAT, steps=HEATS.steps, source="test")
    look = Look(oven(blind), power=lambda now: 50.0)
    assert look.at("dark", *STEPS) == ()
    assert look.asked == [], "nobody is asked for nothing"


def test_a_temperature_is_read_when_its_lag_is_over_and_again_after_its_watch() -> None:
    look = Look(oven(), temperature=lambda now: 300.0 + now)
    (said,) = look.at("cooling", *STEPS)
    assert said.startswith("oven.temperature rises, from 310 to 330 degC in 20 s")
    assert [at_s for at_s, _ in look.asked] == [0.0, 10.0, 30.0]
    look = Look(oven(), temperature=lambda now: 300.0 + now / 10.0)
    assert look.at("cooling", *STEPS) == ()
    look = Look(oven(), temperature=lambda now: 20.0 + now)
    assert look.at("cooling", *STEPS) == (), "it may be touched"


@pytest.mark.parametrize(("first", "said"), [(300.0, 1), (60.0, 0), (None, 1)])
def test_of_a_temperature_that_is_silent_it_is_told_only_where_it_may_be_hot(
    first: float | None, said: int
) -> None:
    look = Look(oven(), temperature=lambda now: first if now < 5.0 else None)
    found = look.at("cooling", *STEPS)
    words = "oven.temperature was not read: whether it still rises is not known"
    assert found == (words,) * said
    assert look.at("hot", *STEPS) == ("oven.temperature",) * said


def test_what_no_scan_reads_is_not_known() -> None:
    def missing(now: float) -> float:
        raise LookupError("no scan")

    look = Look(oven(), power=missing, temperature=missing)
    assert look.at("hot", *STEPS) == ("oven.temperature",)
    assert len(look.at("dark", *STEPS)) == 1
