"""The house carries out tasks that need no instruments itself, beside whatever the line does."""

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commands import say
from house_kept import DeskHouse
from labharness.core.clock import Chance, pause
from labharness.journal.chain import Record
from labharness.lab import read_lab
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.house import screening
from labharness.lab.house.access import abort_session
from labharness.lab.house.intake import Submitted
from labharness.lab.house.message_store import MessageStore
from labharness.lab.house.orders import RunFolders, RunOrder
from labharness.lab.house.screening import LOOK_S, LabFiles
from labharness.protocols.hcp.codec import decode
from labharness.work.capability.document_analysis import supervised
from labharness.work.task.commands import CancelTask, TaskActor
from rig import HERE
from up_lab import Up, until

LAB = HERE.parent / "envelopes" / "labharness_envelopes" / "labs" / "cvd_mos2"
EXAMPLE = HERE.parent / "examples" / "document-analysis.json"
ANSWER = '{"sections": 1, "findings": [], "growth": null}'
QUICK = f"print('''{ANSWER}''')"
SLOW = "import pathlib, time; pathlib.Path(__file__ + '.on').touch(); time.sleep(50)"
PLACES = 4
"""The declared ``concurrent_limit`` of the capability."""


class Desk(DeskHouse):
    """A house with a desk on a folder, which may be opened again."""

    def __init__(self, folder: Path) -> None:
        lab = folder / "lab" / "lab.toml"
        if not lab.exists():
            shutil.copytree(LAB, lab.parent)
        self.news: list[list[str]] = []
        super().__init__(folder, lab)

    def hear(self) -> None:
        self.news.append(self.answers())

    def answers(self) -> list[str]:
        return [each.name for each in (self.folder / "runs").glob("*/answer.json")]

    def submit(self, key: str, **changes: Any) -> str:
        return self.received(key, **changes).task_id

    def received(self, key: str, via: str = "", **changes: Any) -> Submitted:
        body = json.loads(EXAMPLE.read_text("utf-8")) | {"message_id": key}
        body["payload"] |= changes
        return self.house.submit(json.dumps(body).encode(), via=via)

    def records(self, session_id: str) -> list[Record]:
        return list(RunFolders(self.folder / "runs").records(session_id, 0))

    def status(self, task_id: str) -> str:
        self.house.step()
        return self.house.tasks.by_id[task_id].status

    def statuses(self) -> list[str]:
        self.house.step()
        return [each.status for each in self.house.tasks.by_id.values()]


def _begun(tmp_path: Path) -> bool:
    return (tmp_path / "stands_in.py.on").exists()


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let another program stand in the place of the reader of documents."""

    def stands_in(script: str) -> None:
        (tmp_path / "stands_in.py").write_text(script)

    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(supervised, "READER", "stands_in")
    stands_in(QUICK)
    return stands_in


@pytest.fixture
def made(tmp_path: Path, reader: object) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.desk.leave("over")
    desk.journal.close()


@pytest.mark.promise(63)
def test_a_map_waits_for_the_line_and_stored_spectra_are_judged_beside_it(made: Desk) -> None:
    asks: dict[str, Any] = {"capability": "raman-characterization", "caller_id": "operator"}
    asks |= {"intent": "how many layers", "constraints": {}, "expected_output": {}}
    maps = [
        made.submit(f"map {name}", **asks, inputs={"measure": {"sample_id": name}})
        for name in ("a", "b")
    ]
    flat = {"raman_shift": [float(x) for x in range(300, 600)], "intensity": [1.0] * 300}
    stored = made.submit("stored", **asks, inputs={"spectra": [flat]})
    made.until(lambda: made.status(stored) == "failed")  # there is no film in it
    assert [made.status(each) for each in maps] == ["queued", "queued"]
    made.line.up = True
    made.until(lambda: made.status(maps[0]) != "queued")
    assert made.status(maps[1]) == "waiting_resource"
    (lease,) = made.house.tasks.leases.values()
    assert {"laser", "spectrometer", "stage", "furnace"} <= set(lease.instruments)
    beside = made.submit("beside", **asks, inputs={"spectra": [flat]})
    made.until(lambda: made.status(beside) == "failed")
    assert made.status(maps[1]) == "waiting_resource"


@pytest.mark.promise(64)
def test_a_task_is_completed_while_the_line_owner_is_away(made: Desk) -> None:
    task_id = made.submit("one")
    made.until(lambda: made.status(task_id) == "completed")
    task = made.house.tasks.by_id[task_id]
    assert [each.worker for each in task.attempts] == ["desk"]
    assert made.line.orders == []
    answer = made.folder / "runs" / task.attempts[0].run_id / "answer.json"
    assert decode(answer.read_bytes()).type == "task_completed"
    made.until(lambda: made.status(task_id) == "completed" and not made.house.tasks.leases)


def test_a_run_that_was_begun_is_left_as_it_is_when_its_order_comes_again(
    made: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders: list[RunOrder] = []
    begin = made.desk.begin

    def noted(order: RunOrder) -> None:
        orders.append(order)
        begin(order)

    monkeypatch.setattr(made.desk, "begin", noted)
    task_id = made.submit("one")
    made.until(lambda: made.status(task_id) == "completed")
    (order,) = orders
    Path(order.submit).unlink()
    begin(order)  # it does not look for what it is to run
    assert made.desk.status_of(order.run_id).run_id == ""


def test_the_house_is_told_when_a_run_is_accepted_and_when_it_has_ended(made: Desk) -> None:
    made.submit("one")
    made.house.step()
    made.until(lambda: len(made.news) == 2)
    assert made.news == [[], ["answer.json"]]


def test_as_many_run_at_once_as_the_capability_declares(
    made: Desk, reader: Callable[[str], None]
) -> None:
    reader(SLOW)
    names = [made.submit(str(each)) for each in range(PLACES + 2)]
    made.until(lambda: made.statuses().count("running") == PLACES)
    assert len(made.house.tasks.leases) == PLACES
    assert [made.status(each) for each in names[PLACES:]] == ["waiting_resource"] * 2
    reader(QUICK)
    made.house.give(CancelTask(task_id=names[0], reason="enough"), TaskActor("op", "operator"))
    made.until(lambda: made.status(names[0]) == "cancelled")
    made.until(lambda: made.status(names[-1]) != "queued" and "completed" in made.statuses())


def test_a_task_that_can_never_run_is_rejected_at_once(made: Desk) -> None:
    body = {"document_uri": "file:///etc/passwd"}
    task_id = made.submit("one", inputs=body)
    assert made.status(task_id) == "failed"
    with MessageStore(made.home) as messages:
        answer = messages.answer(task_id)
    assert answer is not None
    assert answer.payload.model_dump()["reason_code"] == "forbidden"


@pytest.mark.promise(61)
def test_a_run_that_its_house_took_with_it_has_failed_and_may_be_tried_again(
    made: Desk, reader: Callable[[str], None], tmp_path: Path
) -> None:
    reader(SLOW)
    task_id = made.submit("one")
    made.until(lambda: made.status(task_id) == "running" and _begun(tmp_path))
    made.journal.close()  # the thread goes on, and the next house knows nothing of it
    reader(QUICK)
    after = Desk(tmp_path)
    after.until(lambda: after.status(task_id) == "failed")
    assert after.house.tasks.by_id[task_id].error_code == "worker_lost"
    after.house.retry(task_id, Chance(None).uuid4(), "again", "op", resume=False)
    after.until(lambda: after.status(task_id) == "completed")
    assert len(after.house.tasks.by_id[task_id].attempts) == 2
    after.desk.leave("over")
    after.journal.close()


def test_an_order_that_was_kept_and_not_given_is_given_by_the_next_house(
    made: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made.desk, "begin", lambda order: None)
    task_id = made.submit("one")
    made.journal.close()
    after = Desk(tmp_path)
    after.until(lambda: after.status(task_id) == "completed")
    assert len(after.house.tasks.by_id[task_id].attempts) == 1
    after.journal.close()


@pytest.mark.promise(64)
def test_a_task_that_only_waits_for_its_turn_is_accepted_on_receipt(
    made: Desk, reader: Callable[[str], None]
) -> None:
    reader(SLOW)
    kept = [made.received(str(each), via="amqp") for each in range(PLACES + 2)]
    for each in kept:
        created, accepted = each.opening
        assert created.session_id == accepted.session_id == each.session_id
        payload = accepted.payload.model_dump()
        assert (payload["risk_level"], payload["in_reply_to"]) == ("R1", str(kept.index(each)))
    tokens = {each.opening[1].payload.model_dump()["session_token"] for each in kept}
    assert len(tokens) == len(kept)
    made.until(lambda: made.statuses().count("running") == PLACES)
    last = kept[-1]
    with MessageStore(made.home) as messages:
        told = partial(abort_session, made.house, messages, "harness-local-01", last.session_id)
        token = last.opening[1].payload.model_dump()["session_token"]
        assert told(next(iter(tokens - {token})), "enough") == "token"
        assert told("", "enough") == "asked"  # it is PENDING
        begun = partial(abort_session, made.house, messages, "harness-local-01", kept[0].session_id)
        assert begun("", "enough") == "token"
        assert begun(kept[0].opening[1].payload.model_dump()["session_token"], "") == "asked"
    assert made.status(last.task_id) == "cancelled"


def test_a_run_begins_with_the_acceptance_that_its_caller_has(made: Desk) -> None:
    kept = made.received("one", via="amqp")
    made.journal.close()  # a house that dies between acceptance and run
    after = Desk(made.folder)
    after.until(lambda: after.status(kept.task_id) == "completed")
    records = after.records(kept.session_id)
    with MessageStore(after.home) as messages:
        assert messages.acceptance(kept.session_id) == kept.opening[1]
        assert messages.kept(kept.session_id, "accepted") == ()
    (accepted,) = [each.body for each in records if each.kind == "task_accepted"]
    told = kept.opening[1].payload.model_dump()
    assert {name: accepted[name] for name in ("risk_level", "safety_envelope", "in_reply_to")} == {
        name: told[name] for name in ("risk_level", "safety_envelope", "in_reply_to")
    }
    assert accepted["session_token"] is None
    assert told["session_token"] not in json.dumps([each.body for each in records])
    after.desk.leave("over")
    after.journal.close()


def test_what_the_rules_forbid_meanwhile_fails_and_is_not_begun(made: Desk) -> None:
    kept = made.received("one", via="amqp")
    callers = made.lab.parent / "callers.toml"
    callers.write_text(callers.read_text().replace('["document-analysis", ', "["))
    pause(LOOK_S)
    made.until(lambda: made.status(kept.task_id) == "failed")
    records = made.records(kept.session_id)
    assert not [each for each in records if each.kind in ("planned", "step")]
    (end,) = [each.body for each in records if each.kind == "terminal"]
    assert (end["type"], end["payload"]["error_code"]) == ("task_failed", "resource_unavailable")
    states = [each.body["data"].get("to_state") for each in records if each.kind == "event"]
    assert states == [None, "RUNNING", "FAILED", None]


@pytest.mark.promise(68)
def test_an_edit_of_the_callers_counts_for_the_next_task(made: Desk) -> None:
    callers = made.lab.parent / "callers.toml"
    first = made.submit("one")
    made.until(lambda: made.status(first) == "completed")
    text = callers.read_text()
    callers.write_text(text.replace('["document-analysis", ', "["))
    assert callers.read_text() != text
    pause(LOOK_S)
    assert made.status(made.submit("two")) == "failed"


@pytest.mark.promise(68)
def test_a_house_that_looks_finds_an_edit_before_anybody_asks(
    made: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LabFiles(made.lab)
    before = files.current()
    callers = made.lab.parent / "callers.toml"
    text = callers.read_text()
    callers.write_text(text.replace('["document-analysis", ', "["))
    files.look()
    read = files.current()
    assert read is not before
    callers.write_text("no table at all")
    files.look()
    reads: list[Path] = []

    def reading(lab: Path) -> LabPlan:
        reads.append(lab)
        return read_lab(lab)

    monkeypatch.setattr(screening, "read_lab", reading)
    files.look()
    assert not reads  # once is enough where nobody asks
    with pytest.raises(BadLabFile):
        files.current()
    callers.write_text(text)
    assert files.current()[1] != read[1]
    assert len(reads) == 2


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_paper_is_analysed_beside_a_growth_and_a_killed_house_tells_what_it_cost(
    tmp_path: Path,
) -> None:
    up = Up(LAB / "lab.toml", tmp_path / "runs")
    try:
        growth = up.submit(HERE.parent / "examples" / "mos2-monolayer.json")
        until(lambda: up.is_(growth, "running"))
        paper = up.submit(EXAMPLE)
        until(lambda: up.is_(paper, "completed"))
        assert up.is_(growth, "running"), "the growth was over before the paper was read"
        long = json.loads(EXAMPLE.read_text("utf-8")) | {"message_id": "long"}
        long["payload"]["inputs"]["document"] = "The film reaches 5 nm at 700 K. " * 30_000
        (tmp_path / "long.json").write_text(json.dumps(long))
        cut = up.submit(tmp_path / "long.json")
        until(lambda: up.is_(cut, "running"))
        up.kill("house")
        up.start()
        until(lambda: up.is_(cut, "failed"))
        assert up.task(cut)["lastError"]["code"] == "worker_lost"
    finally:
        say("down", "--lab", up.lab, "--stop")
        until(up.down)
