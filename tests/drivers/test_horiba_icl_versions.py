"""Which ICL the driver takes, and what of the maker's own client the simulator answers."""

import json

import pytest

from icl_bench import Bench
from labharness.core.vocabulary import DeviceFault
from labharness.instruments.driver import Identity
from labharness_drivers.horiba_icl import HoribaIcl


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
