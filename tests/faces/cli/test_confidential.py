"""Confidential data (T3, T4) on the command line: nothing in clear, and a key to read them."""

import json
import logging
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from canary import CANARY, NUMBER, found_in, traces
from commands import COMMAND, Said, say
from confidential import PAPER, SPECTRA, confidential_lab, confidential_task
from labharness.core.clock import pause, steady_s
from labharness.journal.encryption import KEY_VARIABLE
from labharness.journal.reading import read
from rig import task_submit

EXITS = {"task_completed": 0, "task_failed": 1, "task_rejected": 2}


class Place:
    """A lab and its runs, in folders that are searched as a whole."""

    def __init__(self, folder: Path, *, keyed: bool = True) -> None:
        self.folder = folder
        self.inputs = folder / "inputs"
        self.lab = confidential_lab(folder / "lab", keyed=keyed, inputs=self.inputs)
        (folder / "tasks").mkdir()
        self.searched = [folder / "lab", folder / "state", folder / "runs", folder / "tmp"]

    def run(self, name: str, payload: dict[str, Any]) -> tuple[Said, dict[str, Any]]:
        """Run a task; its file is its caller's own, and is not searched."""
        task = self.folder / "tasks" / f"{name}.json"
        task.write_text(json.dumps(task_submit(payload, name)), "utf-8")
        out = self.folder / "runs" / name
        said = say("run", task, "--lab", self.lab, "--out", out, "--json")
        answer = said.answer
        assert said.code == EXITS[answer["type"]], said
        return said, answer

    def read(self, name: str, answer: dict[str, Any]) -> Said:
        uri = answer["payload"]["artifacts"][0]["uri"]
        return say("artifact", uri, "--runs", self.folder / "runs" / name, "--cat")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    log = logging.FileHandler(tmp_path / "tmp" / "debug.log")
    log.setLevel(logging.DEBUG)
    root = logging.getLogger()
    before = root.level
    root.addHandler(log)
    root.setLevel(logging.DEBUG)
    yield Place(tmp_path)
    root.setLevel(before)
    root.removeHandler(log)
    log.close()


INLINE: dict[str, Any] = {
    "intent": f"Find {CANARY}",
    "context": {"project": CANARY},
}
SWEEP: dict[str, Any] = {"start_v": 0.0, "stop_v": 0.7, "points": 11, "junction_c": NUMBER / 100}
TASKS = {
    "t3": (confidential_task({"document": PAPER}, **INLINE), "task_completed"),
    "t4": (confidential_task({"document": PAPER}, "T4", **INLINE), "task_completed"),
    "spectra": (
        confidential_task({"spectra": SPECTRA}, capability="raman-characterization"),
        "task_failed",
    ),
    "unreadable": (
        confidential_task({"document": CANARY, "media_type": "application/pdf"}),
        "task_failed",
    ),
    "wrong": (confidential_task({"document_uri": f"file:///{CANARY}"}), "task_rejected"),
    "unknown": (confidential_task({CANARY: 1}), "task_rejected"),
    "misnamed": (confidential_task({"document": CANARY}, "T5"), "task_rejected"),
    "line": (confidential_task({"note": CANARY}, capability="iv-curve"), "task_rejected"),
    "sweep": (confidential_task(SWEEP, capability="iv-curve", **INLINE), "task_completed"),
    "sweep4": (confidential_task(SWEEP, "T4", capability="iv-curve", **INLINE), "task_completed"),
    "beyond": (
        confidential_task({**SWEEP, "stop_v": NUMBER}, capability="iv-curve", **INLINE),
        "task_rejected",
    ),
}


@pytest.mark.promise(71)
@pytest.mark.parametrize("name", TASKS)
def test_nothing_of_a_confidential_task_is_kept_in_clear(place: Place, name: str) -> None:
    payload, ends = TASKS[name]
    said, answer = place.run(name, payload)
    assert answer["type"] == ends, answer
    assert not traces((said.out + said.err).encode()), "no result is on the terminal either"
    assert found_in(*place.searched) == []


@pytest.mark.promise(71)
@pytest.mark.parametrize("name", ["t3", "spectra", "line"])
def test_a_lab_without_a_key_refuses_confidential_data_and_keeps_none(
    tmp_path: Path, name: str
) -> None:
    place = Place(tmp_path, keyed=False)
    said, answer = place.run(name, TASKS[name][0])
    assert answer["payload"]["reason_code"] == "forbidden"
    assert "no key" in answer["payload"]["reason_message"]
    assert not traces((said.out + said.err).encode())
    assert found_in(place.folder / "runs", place.folder / "state") == []


@pytest.mark.promise(71)
def test_a_task_on_a_line_refers_to_its_inputs_and_keeps_none_of_them_in_clear(
    place: Place,
) -> None:
    place.inputs.mkdir()
    asked = place.inputs / "sweep.json"
    asked.write_text(json.dumps(SWEEP), "utf-8")
    referred = confidential_task({"inputs_uri": asked.as_uri()}, capability="iv-curve")
    _, answer = place.run("sweep", referred)
    assert answer["type"] == "task_completed", answer
    shown = list(read(place.folder / "runs" / "sweep" / "journal.sqlite"))
    kept = next(each for each in shown if each.kind == "submitted").body["payload"]["inputs"]
    assert kept == SWEEP, "what the file held then is a fact of the run"
    uri = next(e["uri"] for e in answer["payload"]["artifacts"] if e["name"] == "iv_curve")
    for name, data_class, says in (
        ("again", "T3", "no JSON object"),
        ("open", "T2", "no artifact at inputs_uri"),
    ):
        task = confidential_task({"inputs_uri": uri}, data_class, capability="iv-curve")
        _, refused = place.run(name, task)
        assert refused["type"] == "task_rejected"
        assert says in refused["payload"]["reason_message"]
    asked.write_text("[1]", "utf-8")
    (place.lab.parent / "else.json").write_text(json.dumps(SWEEP), "utf-8")
    for number, (given, says) in enumerate(
        (
            ({"inputs_uri": asked.as_uri()}, "no JSON object"),
            ({"inputs_uri": asked.as_uri(), **SWEEP}, "in the place of all other"),
            ({"inputs_uri": (place.lab.parent / "else.json").as_uri()}, "not below a folder"),
            ({"inputs_uri": f"{place.inputs.as_uri()}/../lab/else.json"}, "not below a folder"),
            ({"inputs_uri": (place.inputs / CANARY).as_uri()}, "no file at inputs_uri"),
            ({"inputs_uri": f"https://localhost/{CANARY}"}, "does not begin with file: or hcp://"),
            ({"inputs_uri": [CANARY]}, "does not begin with file: or hcp://"),
        )
    ):
        _, refused = place.run(f"no{number}", confidential_task(given, capability="iv-curve"))
        assert refused["type"] == "task_rejected"
        assert says in refused["payload"]["reason_message"], refused
    place.searched.remove(place.folder / "lab")
    assert found_in(*place.searched) == []


def test_the_search_finds_what_an_open_task_leaves(place: Place) -> None:
    """A control: the same task of the class T2 shows the canary in each file of its run."""
    place.run("open", confidential_task({"document": PAPER}, "T2", **INLINE))
    found = " ".join(found_in(*place.searched))
    for name in ("submit.json", "answer.json", "journal.sqlite"):
        assert name in found


@pytest.mark.promise(71)
def test_outputs_are_references_to_what_the_key_reads(place: Place) -> None:
    _, answer = place.run("t3", TASKS["t3"][0])
    payload = answer["payload"]
    artifact, remarks = payload["artifacts"]
    assert (artifact["name"], remarks["name"]) == ("results", "remarks")
    assert payload["outputs"]["findings"] == f"{artifact['uri']}#/findings"
    assert set(payload["execution_summary"]) >= {"duration", "warnings"}
    assert "finding" not in payload["execution_summary"]
    assert payload["execution_summary"]["warnings"] == []
    results = json.loads(place.read("t3", answer).out)
    assert CANARY in results["findings"][0]["statement"]
    assert len(place.read("t3", answer).out.strip()) == artifact["size_bytes"]


def test_why_a_confidential_task_has_no_answer_is_in_an_artifact(place: Place) -> None:
    _, answer = place.run("unreadable", TASKS["unreadable"][0])
    assert answer["payload"]["error_code"] == "input_error", answer
    assert json.loads(place.read("unreadable", answer).out)["error_message"]
    _, refused = place.run("wrong", TASKS["wrong"][0])
    assert refused["payload"]["suggestion"]
    shown = say("journal", "show", place.folder / "runs" / "wrong")
    assert "withheld" in shown.out


@pytest.mark.promise(71)
@pytest.mark.thorough
def test_a_confidential_run_that_is_killed_at_any_instant_has_left_nothing_in_clear(
    place: Place,
) -> None:
    task = place.folder / "tasks" / "t.json"
    task.write_text(json.dumps(task_submit(TASKS["t3"][0])), "utf-8")
    ended = 0
    for number in range(8):
        out = place.folder / "runs" / str(number)
        words = ("run", task, "--lab", place.lab, "--out", out)
        with (place.folder / "tmp" / "said").open("ab") as said:
            run = subprocess.Popen(
                [*COMMAND, *map(str, words)], stdout=said, stderr=said, start_new_session=True
            )
        until_s = steady_s() + 30.0
        while run.poll() is None and not (out / "submit.json").exists():
            assert steady_s() < until_s
        pause(0.12 * number)
        ended += run.poll() is not None
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait(30)
        assert found_in(*place.searched) == [], number
    assert ended < 8, "some were killed at their work"


@pytest.mark.promise(71)
def test_results_are_the_input_of_a_task_that_is_as_confidential_and_of_no_other(
    place: Place,
) -> None:
    _, answer = place.run("t3", TASKS["t3"][0])
    artifact = answer["payload"]["artifacts"][0]
    inputs = {"document_uri": artifact["uri"], "media_type": "text/plain"}
    _, again = place.run("again", confidential_task(inputs))
    assert again["type"] == "task_completed"
    document = json.loads(place.read("again", again).out)["document"]
    assert document["sha256"] == artifact["checksum"]
    _, refused = place.run("open", confidential_task(inputs, "T2"))
    assert refused["type"] == "task_failed"
    assert found_in(*place.searched) == []


@pytest.mark.promise(71)
def test_without_the_key_nothing_is_read_and_the_chain_still_holds(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, answer = place.run("t3", TASKS["t3"][0])
    run, key = place.folder / "runs" / "t3", place.lab.parent / "data.key"
    key.rename(key.with_name("moved.key"))
    for words in (("journal", "show", run), ("report", run, "--out", place.folder / "r.html")):
        told = say(*words)
        assert (told.code, told.out) == (1, ""), told
        assert told.err.count("\n") == 1
        assert "its key cannot be had" in told.err
    told = place.read("t3", answer)
    assert told.code != 0
    assert told.out == ""
    assert say("journal", "verify", run).code == 0
    monkeypatch.setenv(KEY_VARIABLE, str(key.with_name("moved.key")))
    assert place.read("t3", answer).code == 0
    (run / "key.json").unlink()
    told = say("journal", "show", run)
    assert "gone" in told.err
    assert say("journal", "verify", run).code == 0
    kept = say("retention", "list", "--runs", run.parent, "--lab", place.lab).out
    assert "T3" in kept
    assert "open" not in kept
    assert "retention.always" not in say("retention", "list", "--runs", run.parent).out


@pytest.mark.promise(71)
def test_restricted_results_are_read_by_those_alone_whom_another_person_has_approved(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, answer = place.run("t4", TASKS["t4"][0])
    run = place.folder / "runs" / "t4"
    refused = place.read("t4", answer)
    assert (refused.code, refused.out) == (1, ""), refused
    assert "nobody has approved" in refused.err
    assert say("journal", "show", run).code == 1
    reader = refused.err.partition("approved that '")[2].partition("'")[0]
    signed = ("--reason", "review of 2026")
    own = say("journal", "grant", run, "--reader", "Olga", "--name", "Olga", *signed)
    assert own.code != 0
    assert "their own" in own.err
    other = say("journal", "grant", run, "--reader", "Ben", "--name", "Olga", *signed)
    assert other.code == 0, other
    assert place.read("t4", answer).code == 1
    granting = ("journal", "grant", run, "--reader", reader, "--name", "Olga", *signed)
    assert say(*granting).code != 0, "it is the reader's own account that approves"
    with monkeypatch.context() as patch:
        patch.setenv("LOGNAME", "olga")
        assert say(*granting).code == 0
    assert CANARY in place.read("t4", answer).out
    told = say("journal", "access", run).out
    assert "approved: " in told
    assert answer["payload"]["artifacts"][0]["uri"] in told


@pytest.mark.promise(71)
def test_where_a_lab_has_approvers_one_of_them_signs_for_the_reader(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABHARNESS_PASSPHRASE", "a long enough one")
    keys = place.folder / "tasks"
    rows = say("approvals", "key", "--name", "Ada", "--out", keys / "ada").out
    say("approvals", "key", "--name", "Ben", "--out", keys / "ben")
    (place.lab.parent / "approvers.toml").write_text(rows[rows.index("[approvers") :], "utf-8")
    text = place.lab.read_text("utf-8")
    head = 'callers = "callers.toml"\n'
    place.lab.write_text(text.replace(head, f'{head}approvers = "approvers.toml"\n'), "utf-8")
    _, answer = place.run("t4", TASKS["t4"][0])
    run = place.folder / "runs" / "t4"
    reader = place.read("t4", answer).err.partition("approved that '")[2].partition("'")[0]
    monkeypatch.setenv("LOGNAME", "ada")
    given = ("journal", "grant", run, "--reader", reader, "--reason", "review")
    for words, says in (
        (("--name", "Ada"), "approve with --key FILE"),
        (("--name", "Ada", "--key", keys / "ben"), "not signed with the key of 'Ada'"),
        (("--name", "Ben", "--key", keys / "ben"), "none of the approvers of this lab: Ada"),
    ):
        refused = say(*given, *words)
        assert refused.code != 0
        assert says in refused.err
        assert place.read("t4", answer).code == 1
    assert say(*given, "--name", "Ada", "--key", keys / "ada").code == 0
    monkeypatch.delenv("LOGNAME")
    assert CANARY in place.read("t4", answer).out
    assert "signed" in say("journal", "access", run).out


def test_a_campaign_takes_no_confidential_task(place: Place) -> None:
    task = place.folder / "tasks" / "task.json"
    task.write_text(json.dumps(task_submit(TASKS["sweep"][0])), "utf-8")
    series = 'name = "{}"\ntask = "task.json"\nlabs = {{ one = "{}" }}\n[vary]\n"{}" = ["{}"]\n'
    for name, path, value in (
        ("one", "intent", CANARY),
        ("two", "constraints.data_classification", "T4"),
    ):
        file = task.with_name("campaign.toml")
        file.write_text(series.format(name, place.lab, path, value), "utf-8")
        said = say("campaign", "run", file)
        assert said.code != 0
        assert "not taken in a campaign" in said.err, said
        assert not traces((said.out + said.err).encode())
    assert found_in(*place.searched, *task.parent.glob("*.campaign")) == []


def test_a_report_of_a_confidential_run_is_written_where_it_is_asked_for(place: Place) -> None:
    place.run("t3", TASKS["t3"][0])
    run = place.folder / "runs" / "t3"
    say("report", run).is_one_plain_error("confidential", "--out")
    assert say("report", run, "--out", place.folder / "r.html").code == 0
    assert found_in(*place.searched) == []


@pytest.mark.promise(71)
def test_a_file_that_was_changed_or_exchanged_is_not_read(place: Place) -> None:
    _, answer = place.run("t3", TASKS["t3"][0])
    run = place.folder / "runs" / "t3"
    path = run / "artifacts" / "results.json"
    whole = path.read_bytes()
    other = (run / "artifacts" / "index.json").read_bytes()
    for bad in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[:40], other):
        path.write_bytes(bad)
        told = place.read("t3", answer)
        assert (told.code, told.out) == (1, ""), told
        assert "cannot be decrypted" in told.err
        assert say("report", run, "--out", place.folder / "r.html").code == 1


def test_the_key_of_a_lab_is_made_for_its_account_alone(tmp_path: Path) -> None:
    made = say("lab", "key", "--out", tmp_path / "k")
    assert made.code == 0
    assert "[data]" in made.out
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600
    say("lab", "key", "--out", tmp_path / "k").is_one_plain_error("File exists")


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such rights")
def test_a_key_that_others_may_read_is_not_used(place: Place) -> None:
    (place.lab.parent / "data.key").chmod(0o640)
    checked = say("lab", "check", "--lab", place.lab)
    assert checked.code == 1
    assert "chmod 600" in checked.out
    task = place.folder / "tasks" / "t.json"
    task.write_text(json.dumps(task_submit(TASKS["t3"][0])), "utf-8")
    told = say("run", task, "--lab", place.lab, "--out", place.folder / "runs" / "x")
    told.is_one_plain_error("chmod 600")
    assert not traces(told.err.encode())
    assert repr(NUMBER) not in told.err
