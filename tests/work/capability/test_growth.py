"""Growths end to end, on real wire protocols: the answer, and that it is the same twice."""

import csv
import hashlib
import io
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from labharness.core.vocabulary.durations import parse_duration
from labharness.faces.testing.bench import Bench
from labharness.journal.artifacts import resolve
from labharness.journal.reading import export_jsonl, read, verify_file
from labharness.lab import LabPlan
from rig import EXAMPLE, SHORT_LINE, Ran, submission

Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The example's growth, run once for all who only look at what it left."""
    folder = tmp_path_factory.mktemp("grown")
    return Bench(SHORT_LINE, folder, state=folder / "state").run(submission())


def true_layers(ran: Ran) -> int:
    """The commonest layer count over the spots that carry film, by the plant's own account."""
    counts = Counter(layers for _, _, layers in ran.truth["measured_spots"] if layers)
    return counts.most_common(1)[0][0] if counts else 0


def test_the_example_grows_a_monolayer_and_says_so_in_the_protocols_words(grown: Ran) -> None:
    assert grown.type == "task_completed"
    outputs = grown.body["outputs"]
    assert outputs["layer_count"] == 1
    assert outputs["confidence"] >= 0.95
    assert 17.8 <= outputs["peak_distance"] <= 22.0
    spectrum = outputs["spectrum_data"]
    assert len(spectrum["raman_shift"]) == len(spectrum["intensity"]) > 100
    assert isinstance(outputs["raman_analysis"], dict)
    assert [row["phase"] for row in outputs["growth_log"]][:3] == ["loading", "leak_check", "purge"]
    assert true_layers(grown) == 1


def test_every_artifact_resolves_by_its_uri_and_its_checksum_holds(grown: Ran) -> None:
    listed = {each["name"]: each for each in grown.body["artifacts"]}
    assert set(listed) == {"raw_spectrum", "growth_log_csv"}
    roots = [grown.result.folder / "artifacts"]
    for each in listed.values():
        data = resolve(each["uri"], roots).read_bytes()
        assert len(data) == each["size_bytes"]
        assert each["checksum"] == "sha256:" + hashlib.sha256(data).hexdigest()
    log = resolve(listed["growth_log_csv"]["uri"], roots).read_text("utf-8")
    table = list(csv.reader(io.StringIO(log)))
    assert table[0][0] == "time [s]"
    assert "furnace.temperature [degC]" in table[0]
    furnace = table[0].index("furnace.temperature [degC]")
    readings = [float(row[furnace]) for row in table[1:] if row[furnace]]
    assert max(readings) == pytest.approx(725, abs=8)
    times = [float(row[0]) for row in table[1:]]
    assert times == sorted(times)
    assert len(readings) >= len(times) - 2, "rows lack their readings"


def test_the_journal_is_one_chain_that_ends_with_the_terminal_message(grown: Ran) -> None:
    path = grown.result.folder / "journal.sqlite"
    assert verify_file(path).ok
    kinds = [record.kind for record in read(path)]
    assert kinds[-1] == "terminal"
    token = next(d for kind, d in grown.events if kind == "task_accepted")["session_token"]
    assert token is None  # the callee never repeats it


def test_the_id_of_the_file_is_kept_and_the_run_has_one_of_its_own(grown: Ran) -> None:
    records = read(grown.result.folder / "journal.sqlite")
    (body,) = [each.body for each in records if each.kind == "submitted"]
    asked = json.loads(EXAMPLE.read_text("utf-8"))["message_id"]
    assert body["metadata"]["source_message_id"] == asked
    assert body["message_id"] != asked


def test_a_whole_growth_calls_nobody_for_what_it_sets_itself(grown: Ran) -> None:
    assert [data for kind, data in grown.events if kind == "warning"] == []
    records = read(grown.result.folder / "journal.sqlite")
    assert [record for record in records if record.kind == "warning"] == []


def test_what_the_summary_counts_is_what_the_journal_holds(grown: Ran) -> None:
    records = list(read(grown.result.folder / "journal.sqlite"))
    planned = next(record for record in records if record.kind == "planned")
    done = grown.body["execution_summary"]
    assert done["steps_executed"] == len(planned.body["instructions"]["instructions"])
    made = [record.body["after"] for record in records if record.kind == "checkpoint"]
    assert made == ["load_lid_shut", "sulfur_cold", "enclosure_shut"]
    told = [data["checkpoint_id"] for kind, data in grown.events if kind == "checkpoint_created"]
    assert told == ["ckpt-001", "ckpt-002", "ckpt-003"]
    assert done["checkpoints_created"] == len(made)
    intents = [record for record in records if record.kind == "intent"]
    outcomes = [record for record in records if record.kind == "outcome"]
    assert [each.body["intent"] for each in outcomes] == [each.seq for each in intents]
    assert {each.body["ending"] for each in outcomes} <= {"confirmed", "unconfirmed"}


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 11))]
)
def test_ten_seeds_on_the_short_line_are_answered_rightly_or_not_at_all(
    grown: Ran, short_plan: LabPlan, run_task: Run, seed: int
) -> None:
    ran = grown if seed == 1 else run_task(short_plan, seed=seed)
    assert ran is grown or ran.result.journal_head != grown.result.journal_head
    if ran.type == "task_completed":
        assert ran.body["outputs"]["layer_count"] == true_layers(ran)
    else:
        assert ran.body["error_code"] == "execution_error"
        assert "posterior" in json.dumps(ran.body["partial_outputs"])


@pytest.mark.promise(7)
@pytest.mark.soak  # the digests of test_chaos.py hold it every day
def test_the_same_seed_gives_the_same_chain_and_export_over_hash_seeds(tmp_path: Path) -> None:
    found = set()
    for hash_seed in ("0", "random"):
        out = tmp_path / hash_seed
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-m", "labharness.faces.cli", "run", str(EXAMPLE)]
        command += ["--lab", str(SHORT_LINE), "--out", str(out), "--seed", "7", "--json"]
        done = subprocess.run(command, env=env, capture_output=True, timeout=100, check=False)
        assert done.returncode in (0, 1), done.stderr
        exported = io.BytesIO()
        export_jsonl(out / "journal.sqlite", exported)
        head = verify_file(out / "journal.sqlite").head.hash
        found.add((head, hashlib.sha256(exported.getvalue()).hexdigest(), done.stdout))
    assert len(found) == 1


def test_the_duration_ends_when_the_line_is_safe_and_verified_and_not_when_it_is_cold(
    grown: Ran,
) -> None:
    records = list(read(grown.result.folder / "journal.sqlite"))
    begun = next(
        each.at_s
        for each in records
        if each.kind == "event" and each.body["data"].get("to_state") == "RUNNING"
    )
    safe = [each.at_s for each in records if each.kind == "verified"][-1]
    took_s = parse_duration(grown.body["execution_summary"]["duration"])
    assert took_s == pytest.approx(safe - begun, abs=1.0)
