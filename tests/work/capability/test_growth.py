"""Growths end to end, on real wire protocols: the answer, and that it is the same twice."""

import csv
import hashlib
import io
import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from labharness.core.vocabulary.durations import parse_duration
from labharness.faces.testing.bench import Bench
from labharness.journal.artifacts import resolve
from labharness.journal.reading import export_jsonl, read, verify_file
from labharness.work.admission.schemas import output_fault
from labharness.work.capability.cvd import CAPABILITY
from rig import EXAMPLE, SHORT_LINE, Injection, Ran, Run, approved_copy, plant_fault, submission


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
    assert set(outputs) == CAPABILITY.declaration.produces()
    assert output_fault(CAPABILITY.declaration.output_schema, outputs) is None
    spectrum = outputs["spectrum_data"]
    assert len(spectrum["raman_shift"]) == len(spectrum["intensity"]) == 1024
    silicon = max(zip(spectrum["intensity"], spectrum["raman_shift"], strict=True))
    assert silicon[1] == pytest.approx(520.7, abs=0.6)
    assert true_layers(grown) == 1


def test_the_analysis_has_its_evidence_its_spots_and_a_coverage_near_the_true_one(
    grown: Ran,
) -> None:
    raman = grown.body["outputs"]["raman_analysis"]
    assert len(raman["evidence"]) == 3
    assert all(term["systematic_error"] for term in raman["evidence"])
    assert sum(raman["posterior"].values()) == pytest.approx(1.0)
    assert raman["credible_set"] == [1]
    assert all(1000 < row["a1g_counts"] < 10_000 for row in raman["spots"])
    assert len(raman["spots"]) == 9
    true = grown.truth["coverage"][0]
    assert raman["places_surveyed"] >= 16
    sd = math.sqrt(true * (1 - true) / raman["places_surveyed"])
    assert abs(raman["covered_fraction"] - true) <= 3 * sd
    raw = json.loads((grown.result.folder / "artifacts" / "raw_spectrum.json").read_text("utf-8"))
    assert len(raw["raman"]) == len(raw["photoluminescence"]) == 9
    assert raw["dark_counts"] == pytest.approx(300, abs=5)


def test_the_growth_log_has_one_row_a_phase_with_what_was_set_and_measured(grown: Ran) -> None:
    rows = grown.body["outputs"]["growth_log"]
    assert [row["phase"] for row in rows] == [
        *("loading", "leak_check", "purge", "ramp", "material_growth", "cooling"),
        *("transfer", "characterisation", "analysis"),
    ]
    growth = rows[4]
    assert growth["duration_s"] == pytest.approx(900, abs=2)
    assert growth["measured"]["furnace.temperature"]["mean"] == pytest.approx(725, abs=10)
    assert growth["measured"]["sulfur.temperature"]["mean"] == pytest.approx(200, abs=10)
    assert rows[3]["measured"]["sulfur.temperature"] >= 195
    assert rows[3]["setpoints"]["furnace.setpoint"] == 725
    ends = [row["started_at"] + row["duration_s"] for row in rows]
    assert ends[:-1] == pytest.approx([row["started_at"] for row in rows[1:]], abs=0.01)


def set_to(ran: Ran, channel: str) -> list[float]:
    """Each value to which the plan set a channel, in order."""
    records = list(read(ran.result.folder / "journal.sqlite"))
    planned = next(at for at, each in enumerate(records) if each.kind == "step")
    intents = (each.body for each in records[planned:] if each.kind == "intent")
    return [each["value"] for each in intents if each["channel"] == channel]


def test_the_laser_is_on_to_measure_and_off_after(grown: Ran) -> None:
    assert set_to(grown, "laser.emission")[:7] == [1, 0, 1, 0, 1, 0, 0]
    assert max(set_to(grown, "laser.power")) <= 0.0003
    assert grown.truth["laser_output_w"] == 0


@pytest.mark.thorough
def test_a_growth_with_hydrogen_runs_and_leaves_none_in_the_tube(
    tmp_path: Path, run_task: Run
) -> None:
    plan = approved_copy(tmp_path, gases=("argon", "nitrogen", "hydrogen", "hydrogen sulfide"))
    ran = run_task(plan, submission(recipe={"temperature_c": 740.0, "hydrogen_sccm": 5.0}))
    assert ran.type == "task_completed", ran.body
    assert set_to(ran, "hydrogen.setpoint")[:2] == [5.0, 0.0]


def test_a_leak_ends_the_run_before_anything_is_heated(run_task: Run) -> None:
    leak = Injection("leak_check", 0.0, plant_fault("air_leak_sccm", 1.0))
    ran = run_task(inject=(leak,))
    assert ran.type == "task_failed"
    assert "look for a leak" in ran.body["error_message"]
    assert not any(set_to(ran, f"box.{heater}_contactor")[-1] for heater in ("furnace", "sulfur"))
    phases = [row["phase"] for row in ran.body["partial_outputs"]["growth_log"]]
    assert phases == ["loading", "leak_check"]


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
    grown: Ran, run_task: Run, seed: int
) -> None:
    ran = grown if seed == 1 else run_task(seed=seed)
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
