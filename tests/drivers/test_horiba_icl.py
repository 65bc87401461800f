"""The Horiba ICL driver and its simulator: open, home, expose, fetch, and every refusal."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faced import answer
from icl_bench import PLACEHOLDER, Bench, reply_of
from labharness.core.vocabulary import BadReply, DeviceFault
from labharness.instruments.driver import Identity, Query
from labharness_drivers.horiba_icl import HoribaIcl


def spectrum_query() -> Query:
    return HoribaIcl().queries()[0]


def region(**of: object) -> dict[str, object]:
    return {"acquisition": [{"acqIndex": 1, "roi": [of]}]}


@pytest.fixture
def bench() -> Bench:
    return Bench().prepare()


def test_the_messages_are_the_manuals() -> None:
    def sent(channel: str, value: float) -> list[dict[str, Any]]:
        frames = [request.frame for request in HoribaIcl(mono_index=1).write(channel, value)]
        bodies = [json.loads(frame) for frame in frames]
        return [{"command": each["command"]} | each["parameters"] for each in bodies]

    assert sent("wavelength", 320) == [
        {"command": "mono_moveToPosition", "index": 1, "wavelength": 320.0},
        {"command": "ccd_setCenterWavelength", "index": 0, "monoIndex": 1, "wavelength": 320.0},
        {"command": "ccd_setXAxisConversionType", "index": 0, "type": 2},
    ]
    assert sent("exposure", 50) == [{"command": "ccd_setExposureTime", "index": 0, "time": 50}]
    assert sent("acquire", 1) == [
        {"command": "ccd_acquisitionStart", "index": 0, "openShutter": True}
    ]
    assert sent("acquire", 0) == [
        {"command": "ccd_acquisitionAbort", "index": 0},
        {"command": "ccd_restart", "index": 0},
    ]
    assert [each["command"] for each in sent("mono_open", 1)] == ["mono_discover", "mono_open"]
    chip = {"command": "ccd_setRoi", "index": 0, "roiIndex": 1, "xOrigin": 0, "yOrigin": 0}
    assert sent("roi", 5) == [
        {"command": "ccd_setAcqFormat", "index": 0, "numberOfRois": 1, "format": 1},
        chip | {"xSize": 5, "ySize": 256, "xBin": 1, "yBin": 256},
    ]


def test_a_prepared_instrument_shows_all_that_was_set(bench: Bench) -> None:
    assert {name: bench.read(name) for name in ("mono_open", "mono_home", "ccd_open")} == {
        "mono_open": 1.0,
        "mono_home": 1.0,
        "ccd_open": 1.0,
    }
    assert (bench.read("x_axis"), bench.read("roi"), bench.read("exposure")) == (2.0, 8.0, 500.0)
    assert bench.read("wavelength") == 545.0
    assert bench.read("chip_temperature") == -60.0


def test_an_exposure_takes_its_time_and_is_drawn_once() -> None:
    bench = Bench().prepare(exposure_ms=500)
    bench.set("acquire", 1)
    bench.wait(0.499)
    assert bench.read("acquisition_busy") == 1.0
    assert bench.optics.exposures == []
    with pytest.raises(DeviceFault, match="-309"):
        bench.spectrum()
    bench.wait(0.001)
    assert bench.read("acquisition_busy") == 0.0
    wavelengths_nm, counts = bench.spectrum()
    assert bench.spectrum() == (wavelengths_nm, counts)
    assert counts == tuple(float(100 + at) for at in range(8))
    assert wavelengths_nm == tuple(bench.optics.wavelengths_nm())
    assert bench.optics.exposures == [(0.5, 1)]


def test_an_aborted_exposure_leaves_no_data(bench: Bench) -> None:
    bench.set("acquire", 1)
    bench.set("acquire", 0)
    bench.wait(10)
    assert bench.read("acquisition_busy") == 0.0
    assert bench.optics.exposures == []
    with pytest.raises(DeviceFault, match="-312"):
        bench.spectrum()


def test_an_abort_restarts_the_ccd_which_is_set_up_again_before_the_next_exposure() -> None:
    bench = Bench().prepare()
    bench.set("acquire", 1)
    bench.set("acquire", 0)
    assert bench.read("acquisition_busy") == 1.0  # it restarts
    with pytest.raises(DeviceFault, match="-309"):
        bench.set("exposure", 500)
    bench.wait(10)
    assert bench.read("acquisition_busy") == 0.0
    with pytest.raises(DeviceFault, match="-318"):  # no exposure time is set
        bench.set("acquire", 1)
    bench.prepare().set("acquire", 1)
    bench.wait(0.5)
    assert len(bench.spectrum()[1]) == 8


def test_the_axis_is_of_the_centre_that_was_told_before_its_kind() -> None:
    bench = Bench().prepare(exposure_ms=1)
    told = {"index": 0, "monoIndex": 0, "wavelength": 600.0}
    assert bench.say("ccd_setCenterWavelength", **told)["errors"] == []
    bench.set("acquire", 1)
    bench.wait(0.001)
    middle = 4
    assert bench.spectrum()[0][middle] == pytest.approx(545.0)  # the kind was asked for before
    assert bench.say("ccd_setXAxisConversionType", index=0, type=2)["errors"] == []
    assert bench.spectrum()[0][middle] == pytest.approx(600.0)


def test_no_read_starts_an_exposure_or_moves_the_grating(bench: Bench) -> None:
    driver = bench.driver
    reads = [each.request for each in driver.scans()]
    for request in [*reads, driver.identify().request]:
        bench.exchange(request)
    bench.wait(10)
    assert bench.read("acquisition_busy") == 0.0
    assert (bench.optics.exposures, bench.optics.centre_nm) == ([], 545.0)
    verbs = [json.loads(request.frame)["command"].partition("_")[2] for request in reads]
    assert all(verb.startswith(("get", "is")) for verb in verbs)


def test_the_axis_follows_the_grating_because_the_ccd_is_told_the_centre() -> None:
    bench = Bench().prepare(exposure_ms=1)
    bench.set("wavelength", 600.0)
    bench.set("acquire", 1)
    bench.wait(0.001)
    assert bench.spectrum()[0] == tuple(bench.optics.wavelengths_nm())
    bench.set("x_axis", 0)
    assert bench.spectrum()[0] == tuple(float(at) for at in range(8))


def test_opening_what_is_open_already_is_no_error_and_resets_nothing(bench: Bench) -> None:
    bench.set("mono_open", 1)
    bench.set("ccd_open", 1)
    assert bench.read("exposure") == 500.0
    bench.set("ccd_open", 0)
    bench.set("ccd_open", 1)
    assert bench.read("exposure") == 0.0


Step = Callable[[Bench], object]


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (lambda bench: bench.set("acquire", 1), "-320"),
        (lambda bench: bench.set("exposure", 10), "-309"),
    ],
)
def test_a_running_exposure_refuses_to_be_changed(bench: Bench, step: Step, code: str) -> None:
    bench.set("acquire", 1)
    with pytest.raises(DeviceFault, match=code):
        step(bench)


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (lambda bench: bench.read("wavelength"), "-506"),
        (lambda bench: bench.read("chip_temperature"), "-305"),
        (lambda bench: bench.set("acquire", 1), "-305"),
    ],
)
def test_what_is_not_open_refuses(step: Step, code: str) -> None:
    with pytest.raises(DeviceFault, match=code):
        step(Bench())


def test_a_grating_that_is_not_homed_or_busy_does_not_move() -> None:
    bench = Bench()
    bench.set("mono_open", 1)
    bench.set("ccd_open", 1)
    with pytest.raises(DeviceFault, match="-505"):
        bench.set("wavelength", 600.0)
    bench.set("mono_home", 1)
    assert (bench.read("mono_busy"), bench.read("mono_home")) == (1.0, 0.0)
    bench.wait(10)
    assert (bench.read("mono_busy"), bench.read("mono_home")) == (0.0, 1.0)
    bench.optics.moving = True
    with pytest.raises(DeviceFault, match="-519"):
        bench.set("wavelength", 600.0)


def test_an_exposure_of_a_ccd_that_was_not_set_up_gives_no_data() -> None:
    bench = Bench()
    bench.set("ccd_open", 1)
    with pytest.raises(DeviceFault, match="-318"):
        bench.set("acquire", 1)
    bench.set("exposure", 1)
    bench.set("acquire", 1)
    bench.wait(1)
    with pytest.raises(BadReply):
        bench.spectrum()


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"command": "ccd_setEverything", "parameters": {"index": 0}}, -2),
        ({"command": "mono_getposition", "parameters": {"index": 0}}, -2),
        ({"command": "mono_open", "parameters": {"index": 0}}, -507),
        ({"command": "mono_isOpen", "parameters": {"index": 3}}, -508),
        ({"command": "ccd_isOpen"}, -307),
        ({"command": "icl_binMode", "parameters": {"mode": "some"}}, -3),
        ({"command": "mono_moveMirror", "parameters": {"index": 0}}, -510),
        ({"command": "ccd_getTriggerIn", "parameters": {"index": 0}}, -315),
        ({"command": "ccd_setAcquisitionStart", "parameters": {"index": 0}}, -2),
        ({"command": "ccd_setAcquisitionAbort", "parameters": {"index": 0}}, -2),
        ({"command": "ccd_getAcquisitionReady", "parameters": {"index": 0}}, -2),
    ],
)
def test_the_library_names_what_is_wrong_by_its_code(message: dict[str, Any], code: int) -> None:
    body = json.loads(answer(Bench().face, json.dumps({"id": 7} | message).encode()))
    assert (body["id"], body["command"], body["results"]) == (7, message["command"], {})
    (error,) = body["errors"]
    assert error.startswith(f"[E];{code};")


def test_no_device_on_the_bus_is_a_fault() -> None:
    with pytest.raises(DeviceFault, match="no device"):
        HoribaIcl().accept("ccd_open", reply_of({"count": 0}, "ccd_discover"))


def test_a_late_reply_of_another_transaction_is_thrown_away() -> None:
    request = HoribaIcl().scans()[0].request
    late = json.dumps({"id": 3, "command": "mono_getPosition", "results": {"wavelength": 1.0}})
    assert request.reply.take(late.encode(), PLACEHOLDER) == -len(late)


def test_a_spectrum_in_pairs_as_the_manual_shows_it_is_read_too() -> None:
    pairs = [[885.6389770507812, 976], [885.2899780273438, 975]]
    assert spectrum_query().decode(reply_of(region(xyData=pairs))) == (
        (885.6389770507812, 885.2899780273438),
        (976.0, 975.0),
    )


@pytest.mark.parametrize("x", [[1.0, 2.0], [[1.0, 2.0]]])
@pytest.mark.parametrize("y", [[7, 8], [[7, 8]]])
def test_a_spectrum_is_read_flat_and_as_the_only_row_of_a_list(x: object, y: object) -> None:
    assert spectrum_query().decode(reply_of(region(xData=x, yData=y))) == ((1.0, 2.0), (7.0, 8.0))


@pytest.mark.parametrize(
    "results",
    [
        {},
        {"acquisition": []},
        {"acquisition": "none"},
        {"acquisition": [{"roi": []}]},
        region(xData=[1.0, 2.0], yData=[[1]]),
        region(xData=[], yData=[[]]),
        region(xData=[[1.0], [1.0]], yData=[[1]]),
        region(xData=[[[1.0]]], yData=[[1]]),
        region(xData=[1.0], yData=[[1], [2]]),
        region(xData=[1.0], yData=[["1"]]),
        region(xData=[1.0], yData=[[True]]),
        region(xData=[math.nan], yData=[[1]]),
        region(xData=[1.0], yData=[[math.inf]]),
        region(xData=[1.0], yData=[[10**400]]),
        region(xData={"0": 1}, yData=[[1]]),
        region(xyData=[[1.0, 2, 3]]),
        region(xyData=[[1.0, 2], [1.0]]),
        region(xyData=7),
    ],
)
def test_a_malformed_spectrum_is_a_bad_reply(results: object) -> None:
    with pytest.raises(BadReply):
        spectrum_query().decode(reply_of(results))


def test_an_error_beside_a_spectrum_is_a_device_fault() -> None:
    with pytest.raises(DeviceFault, match="-312"):
        spectrum_query().decode(b'{"results": {}, "errors": ["[E];-312;Get spectra failed"]}')


def test_a_thousand_pixels_come_across_whole() -> None:
    bench = Bench(pixels=1024).prepare(exposure_ms=1)
    bench.set("acquire", 1)
    bench.wait(0.001)
    wavelengths_nm, counts = bench.spectrum()
    assert wavelengths_nm == tuple(bench.optics.wavelengths_nm())
    assert counts == tuple(float(100 + at) for at in range(1024))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
KEYS = ["wavelength", "busy", "open", "initialized", "time", "type", "size", "isBusy"]


@given(JSON, JSON, st.sampled_from([*KEYS, "acquisition"]))
@settings(max_examples=150, deadline=None)
def test_any_message_in_form_gives_floats_or_an_error(
    value: object, errors: object, key: str
) -> None:
    driver = HoribaIcl()
    reply = json.dumps({"results": {key: value}, "errors": errors}).encode()
    for scan in driver.scans():
        try:
            values = scan.decode(reply)
        except (BadReply, DeviceFault):
            continue
        assert all(type(each) is float and math.isfinite(each) for each in values)
    with pytest.raises((BadReply, DeviceFault)):
        spectrum_query().decode(reply)


@given(JSON)
@settings(max_examples=100, deadline=None)
def test_any_region_gives_a_whole_spectrum_or_a_bad_reply(inner: object) -> None:
    for results in (region(xyData=inner), region(xData=inner, yData=[inner])):
        try:
            spectrum: Any = spectrum_query().decode(reply_of(results))
        except BadReply:
            continue
        wavelengths_nm, counts = spectrum
        assert len(wavelengths_nm) == len(counts) > 0


def test_it_says_who_it_is() -> None:
    bench = Bench()
    query = bench.driver.identify()
    identity = query.decode(bench.exchange(query.request))
    assert isinstance(identity, Identity)
    assert identity.firmware == "2.1.0.a41d1ab7"
    assert bench.driver.expects(identity) == ""
    assert "is not the" in bench.driver.expects(Identity("LabSpec"))


@pytest.mark.parametrize(
    ("version", "taken"),
    [
        ("2.0.0.108.d762232a", True),
        ("3.0", True),
        ("1.9.9.77.0badcafe", False),
        ("0.1", False),
        ("", False),
        ("v2", False),
    ],
)
def test_an_icl_older_than_2_is_named_and_refused(version: str, taken: bool) -> None:
    why = HoribaIcl().expects(Identity("Instrument Control Library", version))
    assert bool(why) is not taken
    if not taken:
        assert repr(version) in why
        assert "2 or newer" in why


def test_an_icl_that_does_not_know_a_command_is_told_from_one_that_fails() -> None:
    reply = json.dumps({"results": {}, "errors": ["[E];-2;Unknown command"]}).encode()
    home = next(each for each in HoribaIcl().scans() if each.name == "mono_home")
    for step in (lambda: home.decode(reply), lambda: HoribaIcl().accept("acquire", reply)):
        with pytest.raises(DeviceFault, match=r"-2;Unknown command.*older than the .*2\.1\.0"):
            step()
    with pytest.raises(DeviceFault, match=r"-306;CCD not found$"):
        HoribaIcl().accept("ccd_open", b'{"results": {}, "errors": ["[E];-306;CCD not found"]}')


def test_the_first_messages_of_the_makers_own_client_are_answered() -> None:
    bench = Bench()
    assert bench.say("icl_info")["results"]["nodeVersion"] == "2.1.0.a41d1ab7"
    assert bench.say("icl_binMode", mode="none")["errors"] == []
    for device in ("ccd", "mono"):
        assert bench.say(f"{device}_list")["results"] == {"devices": []}  # none was looked for yet
        assert bench.say(f"{device}_discover")["results"] == {"count": 1}
        (found,) = bench.say(f"{device}_list")["results"]["devices"]
        assert found["index"] == 0
        assert {"deviceType", "serialNumber"} <= found.keys()
        assert bench.say(f"{device}_open", index=0)["errors"] == []
    assert bench.say("saq3_discover")["results"] == {"count": 0}
    assert bench.say("saq3_list")["results"] == {"devices": []}
    mono = bench.say("mono_getConfig", index=0, compact=False)["results"]["configuration"]
    assert [each["grooveDensity"] for each in mono["gratings"]] == [1800]
    ccd = bench.say("ccd_getConfig", index=0)["results"]["configuration"]
    assert (ccd["chipWidth"], ccd["chipHeight"]) == ("8", "256")
    for name, token in (("Gain", 2), ("Speed", 2)):
        assert bench.say(f"ccd_set{name}", index=0, token=token)["errors"] == []
        assert bench.say(f"ccd_get{name}", index=0)["results"]["token"] == token
        assert bench.say(f"ccd_set{name}", index=0, token=9)["errors"][0].startswith("[E];-317;")
    assert bench.say("ccd_setTimerResolution", index=0, resolutionToken=0)["errors"] == []
    assert bench.say("ccd_setAcqCount", index=0, count=1)["errors"] == []
    assert bench.say("ccd_setAcqCount", index=0, count=2)["errors"][0].startswith("[E];-315;")
