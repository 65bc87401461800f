"""A folder of requests by itself: how long each stands, what counts, and what a run is told."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from labharness.core.clock import Clock, VirtualLoop, run
from labharness.lab.wiring import approvals
from labharness.lab.wiring.approvals import ApprovalFolder, BadDecision, Persons
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.approval import ApprovalRequest, Approved
from requested import request as requested

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
MOMENT = timedelta(seconds=1)


def request(**changes: Any) -> ApprovalRequest:
    """A request of grace's at R4, for which one person is enough."""
    fields = {"session_id": "s-1", "capability": "growth", "why": "nothing covers it"}
    return requested(**{**fields, **changes})


class Folder(ApprovalFolder):
    """A folder whose world time is moved by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.time = NOON
        super().__init__(path, lambda: self.time)

    def files(self) -> list[str]:
        """Name the kinds of files that lie there."""
        return sorted(each.suffix for each in (self.path / "approvals").iterdir())

    def log(self) -> list[dict[str, Any]]:
        """Return what the log says."""
        lines = (self.path / "approvals.jsonl").read_text("utf-8").splitlines()
        return [json.loads(each) for each in lines]

    def agree(self, name: str, person: str = "Ada", *, agrees: bool = True) -> None:
        """Have a person say something of a request."""
        self.decide(name, person, "seen", agrees=agrees, account="ada")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def name(folder: Folder) -> str:
    """Return the id of a request that waits in the folder."""
    return folder.ask(request())


def other(number: int) -> ApprovalRequest:
    """Another plan."""
    return request(instructions={"instructions": [{"instructionId": f"{number}"}]})


def test_a_request_waits_with_what_was_asked_and_said_of_it(folder: Folder, name: str) -> None:
    folder.agree(name, agrees=False)
    (found,) = folder.pending()
    assert (found.id, found.request, found.stale) == (name, request(), 0)
    assert found.asked_at == "2026-03-01T12:00:00.000Z"
    (said,) = found.decisions
    assert (said.name, said.reason, said.agrees, said.account) == ("Ada", "seen", False, "ada")
    assert (said.digest, said.ticket) == (request().digest(), found.ticket)
    assert folder.verdict(name, request()) == said
    assert found.used_up == ""


def test_a_request_stands_for_a_day_and_is_then_closed_by_the_next(
    folder: Folder, name: str
) -> None:
    folder.time = NOON + DAY
    assert [each.id for each in folder.pending()] == [name]
    folder.ask(other(1))
    assert len(folder.files()) == 2
    folder.time += MOMENT
    with pytest.raises(BadDecision, match=f"no request '{name}' waits for approval; there are: "):
        folder.read(name)
    folder.ask(other(2))
    assert folder.log()[-2]["became"] == "expired: nobody used it within a day"
    assert len(folder.files()) == 2


def test_an_agreement_counts_for_a_day_and_not_before_it_was_given(
    folder: Folder, name: str
) -> None:
    folder.agree(name)
    for later, counts in ((timedelta(), True), (DAY, True), (-MOMENT, False)):
        folder.time = NOON + later
        assert isinstance(folder.verdict(name, request()), Approved) is counts
    folder.time = NOON + DAY - MOMENT
    again = folder.ask(request())
    assert again == name
    folder.time += 2 * MOMENT
    assert isinstance(folder.verdict(name, request()), str), "of a request that was renewed"


def test_the_oldest_waits_first(folder: Folder) -> None:
    names = []
    for number in (3, 1, 2):
        names.append(folder.ask(other(number)))
        folder.time += MOMENT
    assert [each.id for each in folder.pending()] == names


def test_so_many_requests_wait_and_one_that_waits_already_may_be_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert approvals.REQUESTS_MAX == 100
    monkeypatch.setattr(approvals, "REQUESTS_MAX", 3)
    folder = Folder(tmp_path)
    for number in range(3):
        folder.ask(other(number))
    with pytest.raises(BadDecision, match="3 requests wait for approval already"):
        folder.ask(other(3))
    folder.ask(other(1))
    folder.settle(folder.ask(other(2)), "done")
    folder.ask(other(3))


@pytest.mark.parametrize("what", ["name", "reason"])
def test_a_name_and_a_reason_have_one_to_five_hundred_characters(
    what: str, folder: Folder, name: str
) -> None:

    def say(text: str) -> None:
        words = {"person": "Ada", "reason": "seen", "person" if what == "name" else what: text}
        folder.decide(name, words["person"], words["reason"], agrees=True, account="a")

    for text in ("", "  ", "a" * 501):
        with pytest.raises(BadDecision, match=f"a decision takes a {what} of 1 to 500 characters"):
            say(text)
    say("a" * (500 if what == "reason" else 80))
    assert approvals.TEXT_MAX == 500


def test_so_many_decisions_are_kept_of_one_request(folder: Folder, name: str) -> None:
    for number in range(20):
        folder.agree(name, f"person {number}")
    with pytest.raises(BadDecision, match=f"20 decisions on {name} were given already"):
        folder.agree(name, "one more")
    assert len(folder.read(name).decisions) == 20


def test_who_asked_may_refuse_and_not_agree(folder: Folder, name: str) -> None:
    with pytest.raises(BadDecision, match=r"^'grace' asked for it and cannot approve it$"):
        folder.agree(name, "grace")
    with pytest.raises(BadDecision, match="'grace' asked for it and cannot approve it, as 'Grace'"):
        folder.agree(name, "Grace")
    folder.agree(name, "grace", agrees=False)


def test_a_line_that_nobody_here_wrote_says_nothing_and_keeps_no_other_from_counting(
    tmp_path: Path, folder: Folder, name: str
) -> None:
    folder.agree(name)
    said = tmp_path / "approvals" / f"{name}.decisions"
    good = json.loads(said.read_text("utf-8"))
    odd = json.dumps({**good, "at": "no time"})
    said.write_text("\n".join(['{"half', odd, "[]", json.dumps(good), ""]), "utf-8")
    assert isinstance(folder.verdict(name, request()), Approved)
    assert len(folder.read(name).decisions) == 1


def test_what_was_closed_is_told_as_that_and_what_was_never_asked_for_too(
    tmp_path: Path, folder: Folder, name: str
) -> None:
    text = (tmp_path / "approvals" / f"{name}.json").read_text("utf-8")
    folder.settle(name, "used by session s-1")
    (tmp_path / "approvals" / f"{name}.json").write_text(text, "utf-8")
    with pytest.raises(BadDecision, match="says of it: used by session s-1, 2026-03-01T12:00:00"):
        folder.read(name)
    (tmp_path / "approvals.jsonl").unlink()
    with pytest.raises(BadDecision, match="says of it: it was never asked for"):
        folder.read(name)
    assert folder.pending() == ()


def test_a_request_is_closed_with_all_that_was_said_before_its_files_go(
    folder: Folder, name: str
) -> None:
    folder.agree(name)
    folder.time += MOMENT
    folder.settle(name, "used by session s-1")
    last = folder.log()[-1]
    assert (last["at"], last["id"], last["became"]) == (
        "2026-03-01T12:00:01.000Z",
        name,
        "used by session s-1",
    )
    assert (last["requester"], last["capability"], last["risk_level"]) == ("grace", "growth", "R4")
    assert [each["name"] for each in last["decisions"]] == ["Ada"]
    assert folder.files() == []


@pytest.mark.parametrize(
    "name", ["", "0123456789a", "0123456789abc", "0123456789aG", "../../../a/"]
)
def test_what_is_no_id_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadDecision, match="waits for approval; there are: none"):
        Folder(tmp_path).read(name)


# ---- who waits for an answer


class Waits:
    """A run that waits for persons.

    Attributes:
        asked: The ids that it told.
        looked_s: When the wait had ended.
    """

    def __init__(self, folder: Folder, wait_s: float, **more: Any) -> None:
        self.loop = VirtualLoop()
        self.clock = Clock(self.loop)
        self.asked: list[str] = []
        self.persons = Persons(folder, self.clock, wait_s, self.asked.append, **more)
        self.looked_s = 0.0

    def rejected(self, **changes: Any) -> Rejected:
        """Wait for persons who do not agree."""
        found = self.decide(request(**changes))
        assert isinstance(found, Rejected)
        return found

    def decide(self, asked: ApprovalRequest) -> Approved | Rejected:
        """Wait."""

        async def work() -> Approved | Rejected:
            found = await self.persons.decide(asked)
            self.looked_s = self.loop.time()
            return found

        return run(work(), self.loop)


def test_an_agreement_is_waited_for_a_look_a_second_and_then_used(folder: Folder) -> None:
    waits = Waits(folder, 10.0)
    waits.loop.call_later(4.5, lambda: folder.agree(waits.asked[0]))
    assert isinstance(waits.decide(request()), Approved)
    assert waits.looked_s == 5.0
    assert folder.log()[-1]["became"] == "used by session s-1"
    fast = Waits(folder, 10.0)
    fast.clock.speed = 4.0
    fast.loop.call_later(17.0, lambda: folder.agree(fast.asked[0]))
    assert isinstance(fast.decide(request()), Approved)
    assert fast.looked_s == 20.0, "seconds of the world are longer on a loop that is faster"


def test_what_nobody_approves_in_time_is_expired_and_closed(folder: Folder) -> None:
    waits = Waits(folder, 10.0)
    verdict = waits.rejected()
    assert verdict.reason_code == "approval_expired"
    assert verdict.reason_message == "Nobody approved it within 10 s: nothing covers it"
    assert (verdict.assessed_risk_level, verdict.suggestion) == ("R4", None)
    assert waits.looked_s == 10.0
    assert folder.log()[-1]["became"] == "expired: nobody agreed within 10 s"


def test_a_refusal_ends_the_wait_with_its_words(folder: Folder) -> None:
    waits = Waits(folder, 10.0)
    waits.loop.call_later(2.5, lambda: folder.agree(waits.asked[0], agrees=False))
    verdict = waits.rejected()
    assert (verdict.reason_code, verdict.reason_message) == (
        "approval_denied",
        "Ada refused it: seen",
    )
    assert folder.log()[-1]["became"] == "refused by Ada"


def test_who_does_not_wait_is_told_the_way_to_an_agreement(folder: Folder) -> None:
    waits = Waits(folder, 0.0, lab_option=" --lab x.toml", sign_again="sign it")
    verdict = waits.rejected()
    (name,) = waits.asked
    assert verdict.reason_code == "approval_expired"
    assert verdict.reason_message == "No approval covers this task: nothing covers it"
    assert verdict.suggestion == (
        f"A person other than the requester looks at it (labharness approvals show {name} "
        f"--lab x.toml) and agrees (labharness approvals approve {name} --name WHO --reason WHY "
        "--lab x.toml); then run it again"
    )
    assert waits.looked_s == 0.0
    assert [each.id for each in folder.pending()] == [name], "it stands for whoever looks"


@pytest.mark.parametrize(
    ("edited", "sign_again", "says"),
    [
        (True, "sign it", "then sign again: sign it"),
        (True, "", "run it again"),
        (False, "x", "run"),
    ],
)
def test_where_the_labs_files_were_edited_they_are_signed_again(
    tmp_path: Path, *, edited: bool, sign_again: str, says: str
) -> None:
    waits = Waits(Folder(tmp_path), 0.0, sign_again=sign_again)
    verdict = waits.rejected(edited=edited, expired=True)
    assert verdict.reason_code == "approval_expired", "one would cover it, had it not expired"
    assert says in str(verdict.suggestion)
    assert ("edited" in str(verdict.suggestion)) is (edited and bool(sign_again))


def test_a_wait_that_is_given_up_withdraws_its_request(folder: Folder) -> None:
    waits = Waits(folder, 10.0)

    async def work() -> None:
        task = asyncio.create_task(waits.persons.decide(request()))
        await asyncio.sleep(2.5)
        task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled()

    run(work(), waits.loop)
    assert folder.log()[-1]["became"] == "withdrawn: the run was aborted"
    assert folder.pending() == ()


def test_where_nobody_can_be_asked_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "approvals").write_text("no folder", "utf-8")
    verdict = Waits(Folder(tmp_path), 0.0).rejected()
    assert verdict.reason_code == "approval_expired"
    assert verdict.reason_message.startswith("Nobody could be asked: ")


def test_a_request_that_is_closed_while_it_is_waited_for_counts_for_nothing(folder: Folder) -> None:
    waits = Waits(folder, 10.0)
    waits.loop.call_later(2.5, lambda: folder.settle(waits.asked[0], "refused by hand"))
    verdict = waits.rejected()
    assert verdict.reason_message.startswith("No agreement can count: no request ")
