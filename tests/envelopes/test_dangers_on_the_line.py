"""What a reviewer of the whole line found, each as the run that showed it.

The plant's own account decides, not the line's: pressures, coils, and frames on the wire.
"""

from collections.abc import Callable

import pytest

from labharness.core.vocabulary import DeviceFault
from labharness.faces.cli.answer_said import print_message
from labharness.instruments.link.loopback import LoopbackLink
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan
from labharness.safety.guard import Source
from rig import Injection, Ran, Run, cut, plant_fault, stick_argon

Act = Callable[[Lab], None]
DWELL = "material_growth"
PORTS = ("heat", "relays", "inert", "hydrogen", "vacuum", "detector", "laser")
VERIFY_S_MAX = 10.0  # of every procedure of the short line
VENT_PA_MIN = 93_326.0  # 700 Torr: below it an open vent sucks the bubbler's oil back
CONTACTOR_FURNACE, CONTACTOR_SULFUR, HYDROGEN_VALVE, VENT = 6, 7, 2, 4  # coils from 0, as wired


def all_of(*acts: Act) -> Act:
    def act(lab: Lab) -> None:
        for each in acts:
            each(lab)

    return act


def spying(seen: list[tuple[float, bool, bool]], every_s: float) -> Act:
    """Write down pressure (Pa), vent open and line tripped until the links are closed."""

    def spy(lab: Lab) -> None:
        assert lab.simulated is not None
        plant = lab.simulated.plant
        tripped = lab.line.memory.trip is not None
        seen.append((plant.truth()["pressure_pa"], coils(lab)[VENT], tripped))
        if not lab.guard._closed:
            lab.clock.loop.call_later(every_s, spy, lab)

    return spy


def coils(lab: Lab) -> list[bool]:
    assert lab.simulated is not None
    found: list[bool] = lab.simulated.plant.parts["relays"].coils
    return found


def heat_is_off(ran: Ran) -> bool:
    now = coils(ran.lab)
    return not (now[CONTACTOR_FURNACE] or now[CONTACTOR_SULFUR] or now[HYDROGEN_VALVE])


def error_code(ran: Ran) -> object:
    return ran.body.get("error_code", ran.body)


# ---- arming


def test_a_safe_table_that_does_not_hold_ends_in_an_answer(run_task: Run) -> None:
    ran = run_task(prepare=stick_argon)
    assert error_code(ran) == "execution_error"
    assert "the safe table does not hold: argon.setpoint = 100" in ran.body["error_message"]
    assert ran.lab.guard._closed


@pytest.mark.parametrize("after_s", [0.2, 1.0])
def test_an_emergency_stop_while_arming_is_told_as_a_safety_violation(
    run_task: Run, after_s: float
) -> None:
    ran = run_task(inject=(Injection("arming", after_s, plant_fault("estop_open")),))
    (trip,) = ran.lab.line.trip_response.trips
    assert trip.cause.value == "emergency_stop_loop"
    assert error_code(ran) == "safety_violation"
    assert ran.body["execution_summary"]["risk_events"][0]["code"] == "emergency_stop_loop"


# ---- a port that does not answer, or answers without end


@pytest.mark.thorough
@pytest.mark.parametrize("port", PORTS)
def test_a_dead_bus_is_called_by_its_name_and_answered_in_time(run_task: Run, port: str) -> None:
    ran = run_task(inject=(Injection(DWELL, 60.0, cut(port)),))
    assert error_code(ran) == "execution_error"
    assert ran.body["execution_summary"]["risk_events"][0]["code"] == "communication"
    (verification,) = ran.lab.line.trip_response.verifications
    assert verification.within_s <= VERIFY_S_MAX
    told = ran.body["execution_summary"]["warnings"]
    assert all(f"{verification.procedure}: {step}" in told for step in verification.unverified())
    assert port == "relays" or heat_is_off(ran)


@pytest.mark.thorough
@pytest.mark.parametrize("port", ["heat", pytest.param("relays", marks=pytest.mark.soak)])
def test_a_port_that_babbles_without_end_is_answered(run_task: Run, port: str) -> None:
    period_s, hour = 0.021, 3600.0  # quicker than a port takes to fall quiet
    said = 0

    def babble(lab: Lab) -> None:
        nonlocal said
        said += 1
        if lab.guard._closed:
            return
        if said * period_s > hour:
            raise RuntimeError("an hour of lab time later there is no answer")
        link = lab.links[port]
        assert isinstance(link, LoopbackLink)
        link._deliver(b"\x00")
        lab.clock.loop.call_later(period_s, babble, lab)

    ran = run_task(inject=(Injection(DWELL, 60.0, babble),))
    assert error_code(ran) == "execution_error", ran.body
    assert said * period_s < hour
    verification, *later = ran.lab.line.trip_response.verifications
    assert len(later) <= len(verification.unverified()), "what is found later is told once"
    assert verification.within_s <= VERIFY_S_MAX


# ---- a stop request at a bad moment


@pytest.mark.parametrize(
    ("act", "at_s"),
    [
        pytest.param(
            *(all_of(stick_argon, plant_fault("estop_open")), 60.6), marks=pytest.mark.thorough
        ),
        pytest.param(
            *(all_of(stick_argon, plant_fault("estop_open")), 62.0), marks=pytest.mark.thorough
        ),
        pytest.param(*(cut("heat"), 66.0), marks=pytest.mark.thorough),
    ],
    ids=["as it begins", "as a step is tried again", "on a dead bus"],
)
def test_a_stop_request_while_a_trip_is_verified_leaves_the_verification_whole(
    short_plan: LabPlan, run_task: Run, act: Act, at_s: float
) -> None:
    ran = run_task(short_plan, inject=(Injection(DWELL, 60.0, act),), abort=(DWELL, at_s))
    assert ran.type in ("event", "task_failed")
    assert ran.lab.guard._closed
    assert heat_is_off(ran)
    (verification,) = ran.lab.line.trip_response.verifications
    assert verification.unverified()
    said = str(ran.body)
    assert all(step in said for step in verification.unverified())
    assert (short_plan.state_dir / "latch.json").exists()


@pytest.mark.parametrize("at_s", [5.0, 60.0, 110.0], ids=["pumping", "at vacuum", "refilling"])
def test_a_stop_request_in_the_leak_check_never_opens_the_vent_below_700_torr(
    run_task: Run, at_s: float
) -> None:
    seen: list[tuple[float, bool, bool]] = []
    ran = run_task(
        inject=(Injection("leak_check", at_s - 0.1, spying(seen, 0.02)),),
        abort=("leak_check", at_s),
    )
    assert ran.type == "event"
    assert seen[0][0] < VENT_PA_MIN, "the stop request is to find a tube under vacuum"
    assert [look for look in seen if look[0] < VENT_PA_MIN and look[1]] == []
    assert "warnings" not in ran.body["data"]
    assert heat_is_off(ran)


@pytest.mark.parametrize("at_s", [0.012, 0.067])
def test_every_intent_has_an_outcome_after_a_stop_request(run_task: Run, at_s: float) -> None:
    ran = run_task(abort=("ramp", at_s))
    records = list(read(ran.result.folder / "journal.sqlite"))
    ended = {each.body["intent"] for each in records if each.kind == "outcome"}
    intents = [each for each in records if each.kind == "intent"]
    assert intents
    assert [each.body for each in intents if each.seq not in ended] == []


def test_a_safe_state_that_is_not_verified_is_told_by_the_message_and_at_the_command_line(
    run_task: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run_task(inject=(Injection("ramp", 20.0, cut("relays")),), abort=("ramp", 20.5))
    assert ran.type == "event"
    warnings = ran.body["data"]["warnings"]
    assert any("box.furnace_contactor = 0: unknown" in each for each in warnings)
    print_message(ran.result.message, "cvd-material-synthesis")
    out = capsys.readouterr().out
    assert "is in its safe state" not in out
    assert "NOT verified safe" in out
    assert all(each in out for each in warnings)


# ---- over-pressure


@pytest.mark.thorough
def test_the_answer_to_over_pressure_does_not_raise_the_pressure(run_task: Run) -> None:
    seen: list[tuple[float, bool, bool]] = []
    every_s = 0.5
    block = all_of(plant_fault("outlet_blocked"), spying(seen, every_s))
    ran = run_task(inject=(Injection(DWELL, 60.0, block),))
    assert ran.body["execution_summary"]["risk_events"][0]["code"] == "over_pressure"
    at = next(number for number, look in enumerate(seen) if look[2])
    tripped_pa = seen[at][0]
    rise_pa_per_s = (seen[at - 1][0] - seen[0][0]) / ((at - 1) * every_s)
    one_poll_pa = 2 * rise_pa_per_s  # what still flows until each port has heard the procedure
    assert ran.truth["peak_pressure_pa"] <= tripped_pa + one_poll_pa
    assert seen[at + 20][0] <= seen[at + 4][0], "10 s later no gas is still coming in"


# ---- what a command was, and what a latch is


@pytest.mark.thorough
def test_a_command_whose_second_frame_is_refused_is_not_confirmed(
    run_task: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_camera(lab: Lab) -> None:
        driver = lab.line.instruments["spectrometer"].driver
        real = driver.accept

        def accept(channel: str, reply: bytes) -> None:
            if b"ccd_setCenterWavelength" in reply:
                raise DeviceFault("the CCD refused its centre wavelength")
            real(channel, reply)

        monkeypatch.setattr(driver, "accept", accept)

    # not before the dwell: the pre-flight, whose drivers are the same, has to pass
    ran = run_task(inject=(Injection(DWELL, 10.0, refuse_camera),))
    assert ran.type == "task_failed"
    records = read(ran.result.folder / "journal.sqlite")
    ended = [each.body for each in records if each.kind == "outcome"]
    refused = {each["ending"] for each in ended if "CCD refused" in each["detail"]}
    assert refused == {"failed"}


def test_a_latch_that_cannot_be_written_is_told_and_the_next_run_is_not_started(
    short_plan: LabPlan, run_task: Run
) -> None:
    def block(lab: Lab) -> None:
        (short_plan.state_dir / "latch.new").mkdir()

    ran = run_task(
        short_plan,
        inject=(
            Injection("ramp", 10.0, block),
            Injection("ramp", 12.0, plant_fault("estop_open")),
        ),
    )
    assert error_code(ran) == "safety_violation"
    assert not (short_plan.state_dir / "latch.json").exists()
    warnings = ran.body["execution_summary"]["warnings"]
    assert any(each.startswith("the latch could not be saved") for each in warnings)
    again = run_task(short_plan)
    assert again.type == "task_rejected"
    assert "a latch could not be written" in again.body["reason_message"]
    assert {sent.source for sent in again.lab.guard.core.log or []} <= {Source.READ}
