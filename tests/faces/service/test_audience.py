"""Callers are told of inputs and limits, and nothing of the machine of the lab (ruling 27)."""

import re
from typing import Any

import pytest

from labharness.core.vocabulary.texts import Text
from labharness.faces.service.audience import OWN, for_caller
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.terms import Rejected
from plain_caller import Told, leaks
from rig import HERE
from sentences import SENTENCES as TEXTS

OURS = re.compile(r"labharness [a-z]|--[a-z]{2}|(?<![:\w/>])/[a-z]+/|process [0-9]")
NAMES = re.compile(r"\{(\w+)")
CODE = HERE.parent / "labharness"


def failed(message: str, **more: Any) -> Any:
    whole = answers.task_failed(
        message_id="m",
        timestamp="2026-01-01T00:00:00.000Z",
        session_id="s",
        error_code="execution_error",
        error_message=message,
        **more,
    )
    return for_caller(whole).payload


def test_no_text_of_the_catalogue_tells_a_caller_a_command_or_a_path() -> None:
    told = {code: failed(Text(code, **given(code))).error_message for code in TEXTS}
    assert [code for code, text in told.items() if OURS.search(text)] == []


WAYS = ("work", "line", "protocols", "lab/house", "lab/wiring", "lab/config/lock.py")
"""The rooms whose words reach a caller."""
FOR_OPERATORS = {  # and for nobody else: answers to their own commands, alarms, refused files
    *("by_hand.nobody_stop", "stop.again", "alarm.next_level", "run.real_speed", "order.no_time"),
    *("approvers.key", "approvers.needs_key", "house.no_checkpoint", "owner.see"),
    *("house.other_speed", "job.one_of"),
}


def test_each_text_that_names_a_command_has_one_for_callers_beside_it() -> None:
    """The fact stays: a caller who is told a command, or nothing at all, is not told it."""
    paths = [CODE / way for way in WAYS]
    files = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])]
    said = "".join(file.read_text("utf-8") for file in files)
    reach = [code for code in TEXTS if f'"{code}"' in said and OURS.search(TEXTS[code][0])]
    assert len(reach) > 20
    lack = [code for code in reach if OWN + code not in TEXTS]
    assert sorted(lack) == sorted(FOR_OPERATORS)


def test_each_text_for_callers_takes_the_parameters_of_the_other() -> None:
    own = [code for code in TEXTS if code.startswith(OWN)]
    for code in own:
        beside = TEXTS[code.removeprefix(OWN)][0]
        assert set(NAMES.findall(TEXTS[code][0])) <= set(NAMES.findall(beside)), code
        assert not OURS.search(TEXTS[code][0])


def test_of_words_with_a_path_in_them_the_path_alone_is_left_out() -> None:
    told = failed("stopped by hand: see /var/lib/lab/log, run labharness reset --name NAME, pid 12")
    assert told.error_message == (
        "stopped by hand: see (a file of the lab), run (a command of the lab), "
        "(a program of the lab)"
    )


def given(code: str) -> dict[str, Any]:
    places = ("path", "folder", "file", "log")
    names = NAMES.findall(TEXTS[code][0])
    return {name: "/var/lib/lab/x" if name in places else 1.0 for name in names}


def test_a_sentence_for_the_caller_stays_beside_one_that_is_not() -> None:
    mine = Text("outputs.lack", fields="raman")
    way_out = Text("sentences", parts=(mine, Text("advice.reset", lab=" --lab x.toml")))
    told = str(failed("why", suggestion=way_out).suggestion)
    assert mine in told
    assert not OURS.search(told)


def test_results_and_plain_words_stay_as_they_are() -> None:
    outputs = {"sample": "/shelf/3/box", "message": "flat"}
    artifact = {"name": "a", "type": "t", "uri": "hcp://s/artifacts/a.json", "size_bytes": 1}
    told = failed("the film is too thick", partial_outputs=outputs, artifacts=[artifact])
    assert told.partial_outputs == outputs
    assert told.artifacts[0].uri == artifact["uri"]
    assert told.error_message == "the film is too thick"


def test_a_reason_of_the_operating_system_is_not_passed_on() -> None:
    rejected = Rejected("resource_unavailable", "/run/lab/line.lock: held by process 4711")
    message = answers.task_rejected(
        message_id="m", timestamp="2026-01-01T00:00:00.000Z", in_reply_to="k", rejected=rejected
    )
    assert not OURS.search(str(for_caller(message).payload.model_dump()))


def test_words_of_an_operator_stay_whole_around_a_path_of_any_system() -> None:
    words = "see /srv/lab/a.txt, 见/data/x/y和C:\\Users\\x: door open"
    by = Text("by_hand", what=Text("by_hand.hold"), by="root", reason=Text("after", parts=[words]))
    for said in (words, by, Text("hold.ended", why=by)):
        told = str(failed(said).error_message)
        for kept in (
            "see (a file of the lab), 见(a file of the lab)和(a file of the lab)",
            "door open",
        ):
            assert kept in told


@pytest.mark.promise(67)
def test_no_caller_hears_who_else_there_is() -> None:
    act = Text("by_hand", what=Text("by_hand.hold"), by="root", reason="")
    told = Text("by_hand.told", by="root", what=act)
    ended = Text("by_hand.ended", told=told, ending="confirmed", detail="")
    abroad = Text("owner.abroad", pid=1, of=Text("owner.of", account="root"), does="d", by="b")
    leased = Text("lease.taken", path="/a/b/c", who="root on host")
    for said in (act, told, ended, Text("after", parts=[ended]), abroad, leased):
        assert "root" in said
        assert "root" not in failed(said).error_message
    assert "by hand" in failed(ended).error_message
    one_of = failed("why", suggestion=Text("caller.one_of", callers="root, beta")).suggestion
    assert one_of == TEXTS["told.caller.one_of"][0]
    done = answers.event(
        message_id="m",
        timestamp="2026-01-01T00:00:00.000Z",
        session_id="s",
        event_type="log",
        sequence=3,
        data={"level": "info", "message": "done", "details": {"confirmed_by": "Olga (root)"}},
    )
    assert "Olga" not in str(for_caller(done).payload.model_dump())


LEAKS = (
    *("run labharness reset", "give --lab", "see /var/lib/lab", "held by process 4711"),
    *("mallory is first", "ValueError('x')", "s3cret"),
)


@pytest.mark.parametrize("text", LEAKS)
def test_a_leak_of_any_kind_is_seen(text: str) -> None:
    fine = {"session_token": "s3cret", "message": "see hcp://session-x/artifacts/a.csv; 5 sccm"}
    accepted = Told(type="task_accepted", payload=fine)
    assert leaks([accepted], ("mallory",)) == []
    event = Told(type="event", payload={"message": text})
    assert len(leaks([accepted, event], ("mallory",))) == 1
