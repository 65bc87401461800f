"""An adapter that gives back what is sent: dropped where the lab file says so, named elsewhere."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import edited_lab
from guarded import whole
from labharness.core.vocabulary import Exactly, Request, Rtu, Until
from labharness.faces.testing.faults import simulated_of
from labharness.faces.testing.pairs import framed
from labharness.lab import Lab, read_lab
from labharness.lab.operate import idle_line
from labharness.lab.operate.idle_line import identify, read_now
from labharness.safety.guard import GuardCore
from labharness.safety.guard.port import IDLE
from rig import SHORT_LINE, lab_with

READ = framed("01 03 00 01 00 01")
WRITE = framed("01 06 00 02 1F 40")
CASES = [
    (Request(READ, Rtu(1, 3, 2), 0.5), framed("01 03 02 00 FA")),
    (Request(WRITE, Rtu(1, 6, None, WRITE[2:6]), 0.5, obeyed=b"(?s:.*)"), WRITE),
    (Request(b"@253PR4?;FF", Until(b";FF", b"@253"), 0.5), b"@253ACK7.6E+2;FF"),
    (Request(b"A\r", Until(b"\r"), 0.5), b"A +1\r"),
    (Request(b"?", Exactly(2), 0.5), b"ok"),
]


def core_of(request: Request, *, echoes: bool) -> GuardCore:
    return GuardCore({"p": [request.frame]}, {}, echoes=["p"] if echoes else [])


@pytest.mark.promise(4)
@given(case=st.sampled_from(CASES), cuts=st.lists(st.integers(0, 40), max_size=6))
def test_an_echo_is_dropped_and_the_reply_after_it_taken(
    case: tuple[Request, bytes], cuts: list[int]
) -> None:
    request, reply = case
    core = core_of(request, echoes=True)
    port = core.ports["p"]
    heard = core.send("p", request, 0.0, None) + reply
    places = sorted({0, len(heard), *(each for each in cuts if each < len(heard))})
    ends = [port.feed(heard[a:b], 0.1) for a, b in pairwise(places)]
    assert not any(ends[:-1])
    assert (whole(ends[-1]), port.discarded) == ((reply, ""), 0)


@pytest.mark.promise(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case[0].frame))
def test_an_echo_alone_is_never_an_answer(case: tuple[Request, bytes]) -> None:
    request, _ = case
    core = core_of(request, echoes=True)
    port = core.ports["p"]
    assert port.feed(core.send("p", request, 0.0, None), 0.1) is None
    assert whole(port.expire(1.0))[0] is None


def test_an_echo_that_nobody_stated_is_named() -> None:
    request, _ = CASES[0]
    core = core_of(request, echoes=False)
    got, why = whole(core.ports["p"].feed(core.send("p", request, 0.0, None), 0.1))
    assert got is None
    assert "your own frame comes back" in why
    assert core.ports["p"].state is not IDLE


def test_what_is_no_echo_where_one_is_stated_is_a_bad_reply() -> None:
    request, reply = CASES[0]
    core = core_of(request, echoes=True)
    core.send("p", request, 0.0, None)
    assert "does not come back as it was" in whole(core.ports["p"].feed(reply, 0.1))[1]


def echoing(lab: Lab) -> None:
    for port in ("heat", "inert", "vacuum"):
        simulated_of(lab).buses[port].faults.echo = True


def test_a_lab_file_says_that_a_port_echoes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_line, "Lab", lab_with(echoing))
    found = identify(read_lab(SHORT_LINE))
    for name in ("furnace", "argon", "gauge"):
        wrong = [why for who, _, why in found if who == name]
        assert "your own frame comes back" in wrong[0], name
        assert "address" not in wrong[0]
    stated = edited_lab(tmp_path, 'name = "heat"\n', 'name = "heat"\necho = true\n')
    (read,) = read_now(read_lab(stated), ["furnace.temperature"])
    assert read["ok"], read
