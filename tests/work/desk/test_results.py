"""What a query brings is on the disk when it is measured, exactly, and is there after a failure."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journal_rows import rows, store_rows
from labharness.analysis.formats.own import parse_own
from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.artifacts import resolve
from labharness.journal.chain import canonical
from labharness.journal.reading import verify_file
from labharness.line import Line
from labharness.work.capability import Capability, PartialResults, QueryResult
from labharness.work.desk.closing import so_far
from labharness.work.desk.operations import LineOperations
from labharness.work.desk.results import ResultLog, in_short, results
from rig import Injection, Run, cut

NUMBER = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TABLE = st.lists(st.lists(NUMBER, max_size=6), max_size=3)
OTHER = st.none() | st.text(max_size=9) | NUMBER | st.dictionaries(st.text(max_size=3), NUMBER)


def kept(journal: SqliteJournal, *values: object) -> list[int]:
    """Keep one result after the other; return the numbers of their records."""
    log = ResultLog(journal, lambda: 1.0)

    async def keep() -> list[int]:
        return [await log.keep("map", "camera", "spectrum", {"at": 1}, each) for each in values]

    return asyncio.run(keep())


ANY = st.recursive(
    OTHER | st.floats() | st.just(Path("x")), lambda inner: st.lists(inner, max_size=4)
)


@given(ANY)
def test_any_result_is_told_in_short_and_can_be_journaled(value: object) -> None:
    assert len(canonical({"result": in_short(value)})) < 20_000


def test_a_spectrum_is_told_by_its_peak_and_a_number_by_itself() -> None:
    told = {"points": 3, "lowest": 1.0, "highest": 9.0, "highest_at": 385.0}
    axis = {"points": 3, "lowest": 384.0, "highest": 386.0}
    spectrum = [[384.0, 385.0, 386.0], [2.0, 9.0, 1.0]]
    assert in_short(spectrum) == {"rows": 2, "told": [axis, told]}
    assert in_short(0.25) == 0.25


@given(values=st.lists(TABLE | OTHER, max_size=8))
@settings(deadline=None, max_examples=40)
def test_every_number_is_read_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, values: list[object]
) -> None:
    path = tmp_path_factory.mktemp("results") / "journal.sqlite"
    with SqliteJournal(path) as journal:
        records = kept(journal, *values)
    found = list(results(path))
    assert repr([each.value for each in found]) == repr(values)
    assert [each.record for each in found] == records
    assert verify_file(path).ok


def test_an_axis_is_stored_once_and_not_with_every_spectrum(tmp_path: Path) -> None:
    axis = [number / 7 for number in range(2000)]
    values = [[axis, [number * turn for number in range(5)]] for turn in range(30)]
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        kept(journal, *values)
    assert [each.value for each in results(journal.path)] == values
    assert journal.path.stat().st_size < 2 * len(json.dumps(axis))


@pytest.mark.promise(58)
def test_a_changed_number_of_a_spectrum_is_found(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with SqliteJournal(path) as journal:
        first, second = kept(journal, [[1.0, 2.0], [30, 40]], [[1.0, 2.0], [50, 60]])
    stored = rows(path)
    (block,) = [row[3] for row in stored if row[0] == first]
    store_rows(path, [(*row[:3], block if row[0] == second else row[3]) for row in stored])
    assert verify_file(path).first_bad_seq == second


@pytest.mark.promise(58)
def test_a_result_that_names_a_row_nobody_stored_is_no_result(tmp_path: Path) -> None:
    body = {"step": "", "instrument": "a", "query": "b", "about": {}, "rows": [7]}
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        journal.append_block("queried", body, b"[]", 0.0)
    with pytest.raises(JournalFailed, match="record 1"):
        list(results(journal.path))


@pytest.mark.promise(58)
def test_a_plan_gets_a_spectrum_only_after_it_is_on_the_disk(tmp_path: Path) -> None:
    class OneSpectrum:
        holding = SimpleNamespace(total_s=float)
        clock = SimpleNamespace(now_s=float)
        latest = volumes_purged = check = staticmethod(lambda *asked: None)

        async def query(self, instrument: str, name: str) -> object:
            return [[1.0], [2]]

    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        log = ResultLog(journal, float)

        async def keep(
            instrument: str, query: str, about: Mapping[str, object], value: object
        ) -> None:
            await log.keep("map", instrument, query, about, value)

        never: Any = None
        line = cast("Line", OneSpectrum())
        token: Any = SimpleNamespace(beyond=lambda _: "")
        reporter: Any = SimpleNamespace(measured=keep)
        operations = LineOperations(line, never, token, reporter, never)
        asyncio.run(operations.query("camera", "spectrum", {"x_um": 3.0}))
        (found,) = results(journal.path)  # by another connection, while the writer is open
    assert (found.value, found.about) == ([[1.0], [2]], {"x_um": 3.0})


def test_a_capability_that_makes_no_partial_results_loses_none(tmp_path: Path) -> None:
    class Breaks:
        def so_far(self, records: object, measured: object) -> PartialResults:
            raise ZeroDivisionError

    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        kept(journal, [[1.0], [2]])
        journal.commit()
        for capability in (Breaks(), object()):
            found = so_far(cast("Capability", capability), (), journal.path)
            assert found.outputs == {"measured": {"camera.spectrum": 1}}
            (artifact,) = found.artifacts
            (row,) = json.loads(artifact.content)["measured"]
            assert QueryResult(**row).value == [[1.0], [2]]


@pytest.mark.promise(58)
@pytest.mark.thorough
@pytest.mark.parametrize("end", ["failed", "aborted"])
def test_a_failure_in_the_raman_map_keeps_every_spectrum_taken_so_far(
    run_task: Run, end: str
) -> None:
    fault = (Injection("characterisation", 300.0, cut("spectrometer")),)
    if end == "failed":
        ran = run_task(inject=fault)
        assert (ran.type, ran.body["error_details"]["phase"]) == ("task_failed", "characterisation")
        spectra = ran.body["partial_outputs"]["spectra"]
        assert ran.body["partial_outputs"]["growth_log"][-1]["phase"] == "characterisation"
        listed = ran.body["artifacts"]
    else:
        ran = run_task(abort=("characterisation", 300.0))
        assert ran.body["data"]["final_state"] == "ABORTED"
        listed = ran.body["data"]["artifacts"]
        spectra = None
    (uri,) = [each["uri"] for each in listed if each["name"] == "partial_raw_spectrum"]
    text = resolve(uri, [ran.result.folder / "artifacts"]).read_text("utf-8")
    content = json.loads(text)
    measured = list(results(ran.result.folder / "journal.sqlite"))
    told = [data for kind, data in ran.events if kind == "intermediate_result"]
    assert [each["data"]["record"] for each in told] == [each.record for each in measured]
    for event, each in zip(told, measured, strict=True):
        axis, counts = each.value
        peak = event["data"]["result"]["told"][1]
        assert (peak["points"], peak["highest"]) == (len(counts), max(counts))
        assert peak["highest_at"] == axis[counts.index(max(counts))]
    of_map = [each for each in measured if each.about["of"] == "raman"]
    assert 0 < len(of_map) < 9
    assert [spot["counts"] for spot in content["raman"]] == [each.value[1] for each in of_map]
    assert spectra is None or spectra == {"dark": 1, "survey": 49, "raman": len(of_map)}
    assert parse_own(text).intensity.shape[0] == len(of_map)
