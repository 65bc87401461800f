"""The command line: its exit codes, and that what it prints is one answer or one plain error."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from commands import ROOT, TIMEOUT_S, Said, say, spawn, spawn_without_privilege, start
from labharness.journal.artifacts import Artifacts
from labharness.journal.reading import read
from labharness.lab import LabPlan
from platforms import takes_open_files_away
from rig import EXAMPLE, SHORT_LINE


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Said]:
    """One completed run of the short line, by the command in a process of its own."""
    folder = tmp_path_factory.mktemp("done") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABHARNESS_STATE", str(tmp_path_factory.mktemp("state")))
        return folder, spawn("run", EXAMPLE, "--lab", SHORT_LINE, "--out", folder, "--json")


# ---- 0, completed


def test_a_completed_run_exits_0_and_its_output_is_one_task_completed_and_nothing_else(
    done: tuple[Path, Said],
) -> None:
    folder, said = done
    assert said.code == 0, said.err
    assert said.err == ""
    assert said.answer["type"] == "task_completed"
    assert said.answer["payload"]["outputs"]["layer_count"] == 1
    assert json.loads((folder / "answer.json").read_text("utf-8")) == said.answer
    assert not (folder / "run.log").exists()  # it is made with its first line


@pytest.mark.soak
def test_without_json_the_result_is_told_in_words_and_progress_goes_to_standard_error(
    tmp_path: Path,
) -> None:
    said = say("run", EXAMPLE, "--lab", SHORT_LINE, "--out", tmp_path / "run")
    assert said.code == 0
    assert said.out.startswith("completed: layer_count 1, confidence ")
    folder = tmp_path / "run"
    last = f"answer, journal and report: {folder}\nopen {folder / 'report.html'}\n"
    assert said.out.endswith(last)
    assert said.err.startswith("Short line of the tests")
    assert "accepted at R3" in said.err
    assert "leak check" in said.err


@takes_open_files_away
def test_a_folder_that_is_taken_away_ends_the_run_and_is_not_said_to_hold_it(
    short_plan: LabPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(self: object, kind: str, data: object) -> None:
        if kind == "tick":
            shutil.rmtree(tmp_path / "run", ignore_errors=True)

    monkeypatch.setattr("labharness.faces.cli.run._Progress.tell", tell)
    said = say("run", EXAMPLE, "--lab", SHORT_LINE, "--out", tmp_path / "run")
    assert said.code == 1
    assert "it was removed or replaced" in said.out
    assert said.out.endswith(f"no answer, journal or report: {tmp_path / 'run'}\n")


@pytest.mark.soak
def test_a_run_goes_on_when_nobody_reads_its_progress_any_more(tmp_path: Path) -> None:
    run = start("run", EXAMPLE, "--lab", SHORT_LINE, "--out", tmp_path / "run")
    assert run.stdout is not None
    assert run.stderr is not None
    run.stderr.readline()
    run.stderr.close()
    run.stdout.close()
    assert run.wait(TIMEOUT_S) == 0
    answer = json.loads((tmp_path / "run" / "answer.json").read_text("utf-8"))
    assert answer["type"] == "task_completed"


# ---- 64, wrong usage; what is no message, no lab and no folder is in the corpus


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "COMMAND"),
        (["dance"], "'dance'"),
        (["run"], "TASK.json"),
        (["run", "t.json", "--unknown"], "--unknown"),
        (["run", "t.json", "--speed", "warp"], "'warp' is not fast, real, or a number"),
        (["simulat"], "no 'simulat' (did you mean simulate?); there are example, schema, run"),
        (["alarms", "shelv"], "no 'shelv' (did you mean shelve?); there are list, test, ack"),
        (["program", "fly"], "no 'fly'; there are check, upload, start, hold, reset"),
        (["analyse", "x", "--film", "cvt"], "no 'cvt' (did you mean cvd?)"),
        (["run", "t.json", "--sped", "fast"], "run: no option '--sped' (did you mean --speed?); "),
        (["lab", "check", "--labb=x"], "lab check: no option '--labb' (did you mean --lab?); "),
        (["drivers", "more"], "drivers: 'more' is one word too many; see"),
        (["simulated"], "required: DIR, WHAT; see"),
        (["chaos", "--hours", "1e10"], "'1e10' is not a duration above 0: a number alone"),
        (["run", "t.json", "--speed", "nan"], "'nan'"),
        (["run", "t.json", "--speed", "-1"], "--speed"),
        (["run", "t.json", "--speed", "0"], "'0'"),
        (["run", "t.json", "--seed", "x"], "'x' is not a whole number"),
        (["run", "t.json", "--seed=-1"], "'-1'"),
        (["run", "t.json", "--seed", "1" * 19], "at most 18 digits"),
        (
            ["capabilities", "show", "cvd-synthesis"],
            "'cvd-synthesis' (did you mean cvd-material-synthesis?); there are",
        ),
        (
            ["capabilities", "show", "alchemy"],
            "'alchemy'; there are annealing, cvd-material-synthesis, document-analysis, iv-curve",
        ),
        (["reset", "--name", "Ada"], "--reason"),
        (["reset", "--name", " ", "--reason", "x"], "--name: it is empty"),
        (["artifact", "nonsense"], "'nonsense'"),
        (["artifact", "hcp://session-s/artifacts/../../secret"], "is not an address"),
        (["journal", "verify", "nowhere"], "nowhere holds no journal.sqlite"),
    ],
)
def test_wrong_usage_exits_64_with_one_line(arguments: list[str], words: str) -> None:
    say(*arguments).is_one_plain_error("labharness", words)


LONG = "x" * 5000
URI = "hcp://session-s/artifacts/a.csv"


AT_A_PATH = (
    "report {path}",
    "journal verify {path}",
    f"artifact {URI} --runs {{path}}",
    "history --runs {path}",
    "compare {path} {path}",
    "chaos --replay {path}/x",
    "chaos --state {path}/x",
    "simulated {path} status",
)


@pytest.mark.parametrize("words", [*AT_A_PATH, "journal show {path}", "journal export {path}"])
def test_a_path_that_is_too_long_is_one_plain_error(words: str) -> None:
    said = say(*words.format(path=LONG).split())
    said.is_one_plain_error(f"labharness {words.split()[0]}: {LONG}", "File name too long")


def test_a_report_goes_to_no_path_that_is_too_long(done: tuple[Path, Said]) -> None:
    said = say("report", done[0], "--out", LONG)
    said.is_one_plain_error(f"labharness report: {LONG}: File name too long")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name are Unix's")
@pytest.mark.parametrize(
    "words",
    [
        *("run", "plan", "lab check --lab", "doctor --lab", "analyse", "arm", "guard", "simulate"),
        *("chaos --line", "chaos --state"),
    ],
)
def test_a_pipe_that_nobody_fills_is_not_waited_for(tmp_path: Path, words: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    said = spawn(*words.split(), tmp_path / "pipe")
    said.is_one_plain_error(str(tmp_path / "pipe"), "it is a pipe or a device, and no file")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="nothing is handed over so here")
def test_what_the_shell_hands_over_is_read(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"{}")
    os.close(write_end)
    said = say("plan", f"/dev/fd/{read_end}")
    os.close(read_end)
    said.is_one_plain_error("is not an HCP message: ")


@pytest.mark.skipif(sys.platform != "linux", reason="root gives up its privilege as on Linux")
@pytest.mark.parametrize("words", AT_A_PATH)
def test_a_folder_of_another_account_is_one_plain_error(tmp_path: Path, words: str) -> None:
    shut = tmp_path / "shut"
    shut.mkdir(mode=0)
    said = spawn_without_privilege(*(each.format(path=shut) for each in words.split()))
    said.is_one_plain_error(f"labharness {words.split()[0]}: {shut}", ": Permission denied")


@pytest.mark.skipif(sys.platform != "linux", reason="root gives up its privilege as on Linux")
def test_a_run_that_may_not_be_read_is_named_in_the_list_of_runs(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir(mode=0)
    said = spawn_without_privilege("history", "--runs", tmp_path)
    assert said.code == 1
    assert said.out == f"no run in {tmp_path}{os.sep} can be read\n"
    assert said.err == f"labharness history: {shut / 'journal.sqlite'}: Permission denied\n"


def leaves(words: list[str]) -> Iterator[list[str]]:
    """Return every command that has none below it, as its help lists them."""
    said = say(*words, "--help").out
    below = re.findall(r"^    ([a-z-]+)(?: |$)", said, re.MULTILINE) if " ...\n" in said else []
    if not below:
        yield words
    for each in below:
        yield from leaves([*words, each])


def test_the_help_of_every_command_says_what_it_does() -> None:
    commands = list(leaves([]))
    assert len(commands) == 96
    for words in commands:
        said = say(*words, "--help")
        assert said.code == 0
        usage, sentence, *_ = said.out.split("\n\n")
        assert usage.startswith(f"usage: labharness {' '.join(words)}")
        assert sentence[0].isupper()
        assert sentence.endswith(".")
        assert "positional arguments" not in sentence


def test_the_version_is_told() -> None:
    said = say("--version")
    assert (said.code, said.out) == (0, f"labharness {version('labharness')}\n")


# ---- the other commands


def test_drivers_lists_every_installed_kind() -> None:
    said = say("drivers")
    assert said.code == 0
    kinds = [line.split()[0] for line in said.out.splitlines()]
    files = sorted((ROOT / "drivers" / "labharness_drivers").glob("[a-z]*.py"))
    assert kinds == [path.stem for path in files]


def test_capabilities_are_listed_and_shown_as_they_are_declared() -> None:
    said = say("capabilities", "list")
    assert said.code == 0
    names, versions = zip(*(line.split()[:2] for line in said.out.splitlines()), strict=True)
    assert (" ".join(names), {*versions}) == (
        "annealing cvd-material-synthesis document-analysis iv-curve raman-characterization"
        " sequence",
        {"1.0.0"},
    )
    shown = json.loads(say("capabilities", "show", "cvd-material-synthesis").out)["capability"]
    assert shown["version"] == "1.0.0"
    assert shown["input_schema"]["required"] == ["target_material", "substrate"]


def test_a_journal_is_verified_shown_and_exported(done: tuple[Path, Said]) -> None:
    folder, _ = done
    said = say("journal", "verify", folder)
    assert said.code == 0
    assert "records holds, head " in said.out
    assert "tail known" in said.out
    assert "are as they were signed" in said.out
    shown = say("journal", "show", folder).out.splitlines()
    assert " terminal " in shown[-1]
    exported = spawn("journal", "export", folder).out
    assert len(exported.splitlines()) == 1 + len(shown)


@pytest.mark.parametrize(
    "name", ["submit.json", "answer.json", "report.html", "artifacts/mine.csv"]
)
def test_a_run_writes_over_nothing_that_lies_in_its_folder(tmp_path: Path, name: str) -> None:
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine", "utf-8")
    said = say("run", EXAMPLE, "--lab", SHORT_LINE, "--out", tmp_path)
    said.is_one_plain_error(f"{tmp_path} holds {name.split('/')[0]} already", "a fresh folder")
    assert mine.read_text("utf-8") == "mine"
    assert [each.name for each in tmp_path.iterdir()] == [name.split("/")[0]]


def test_a_report_is_written_over_nothing_but_a_report(
    done: tuple[Path, Said], tmp_path: Path
) -> None:
    folder, _ = done
    pages = {
        "a.html": "<p>mine",
        "b.html": "<!doctype html><title>labharness</title>",
        "c.html": "",
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(text, "utf-8")
    mine = [folder / "journal.sqlite", folder / "answer.json", *map(tmp_path.joinpath, pages)]
    for path in mine:
        before = path.read_bytes()
        said = say("report", folder, "--out", path)
        said.is_one_plain_error(f"{path} is in the way: it is not a report")
        assert path.read_bytes() == before
    if hasattr(os, "mkfifo"):  # as a device is, of which /dev/null is one
        os.mkfifo(tmp_path / "pipe")
        say("report", folder, "--out", tmp_path / "pipe").is_one_plain_error("pipe: File exists")
        assert not (tmp_path / "pipe").is_file()
    assert say("report", folder, "--out", folder / "report.html").code == 0


def test_a_changed_journal_is_told_by_its_first_bad_record(
    done: tuple[Path, Said], tmp_path: Path
) -> None:
    folder, _ = done
    data = (folder / "journal.sqlite").read_bytes()
    assert b"immediate_shutdown" in data
    (tmp_path / "journal.sqlite").write_bytes(
        data.replace(b"immediate_shutdown", b"immediate_shutdowm")
    )
    said = say("journal", "verify", tmp_path)
    assert said.code == 1
    found = re.search(r"record (\d+) is bad", said.out)
    assert found is not None
    good = int(found[1]) - 1
    assert f"the {good} records before it hold" in said.out
    for verb, lines in (("show", good), ("export", good + 1)):
        said = spawn("journal", verb, tmp_path)
        assert said.code == 1
        assert len(said.out.splitlines()) == lines
        assert f"the {good} records before it hold" in said.err
    said = say("report", tmp_path)
    assert said.code == 1
    assert f"record {good + 1} does not fit" in said.err


def test_what_is_no_journal_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").write_text("not a database", "utf-8")
    for verb in ("verify", "show"):
        said = say("journal", verb, tmp_path)
        assert said.code == 1
        assert said.out == ""
        assert said.err.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="closing a pipe is no error there")
def test_a_reader_that_has_enough_of_a_journal_is_no_error(done: tuple[Path, Said]) -> None:
    show = start("journal", "show", done[0])
    assert show.stdout is not None
    assert show.stderr is not None
    assert "stream" in show.stdout.readline()
    show.stdout.close()
    with show.stderr as errors:
        assert errors.read() == ""
    assert show.wait(TIMEOUT_S) == 0


def test_an_artifact_is_found_by_its_uri(done: tuple[Path, Said]) -> None:
    folder, said = done
    for each in said.answer["payload"]["artifacts"]:
        found = say("artifact", each["uri"], "--runs", folder.parent)
        assert found.code == 0
        assert Path(found.out.strip()).stat().st_size == each["size_bytes"]
    one_run = say("artifact", each["uri"], "--runs", folder)
    assert one_run.out == found.out
    gone = each["uri"].rpartition("/")[0] + "/gone.csv"
    say("artifact", gone, "--runs", folder.parent).is_one_plain_error("gone.csv")


def test_the_spectra_of_a_run_can_be_judged_again(done: tuple[Path, Said]) -> None:
    folder, said = done
    again = say("analyse", "--json", "--film", "cvd", folder / "artifacts" / "raw_spectrum.json")
    assert again.code == 0, again
    (found,) = json.loads(again.out)
    assert found["format"] == "labharness raw spectra"
    assert found["laser_nm"] == 532
    assert found["layer_count"] == said.answer["payload"]["outputs"]["layer_count"]


def test_progress_counts_the_predicted_time_and_each_step_says_what_it_does(
    done: tuple[Path, Said],
) -> None:
    records = list(read(done[0] / "journal.sqlite"))
    predicted = next(each.body for each in records if each.kind == "prediction")
    events = [each.body for each in records if each.body.get("event_type") == "progress"]
    told = {each["data"]["message"]: each["data"]["percent"] for each in events}
    began = {each["instruction"]: each["started_s"] for each in predicted["steps"]}
    assert told["Flush while cooling"] == pytest.approx(
        100 * began["cool_flow"] / predicted["duration_s"], abs=0.06
    )
    assert told["Furnace: open the contactor"] > 0, "the second time it is said"
    assert "looking for an approval" in told
    assert "waiting for an approval" not in told, "a standing one covers it, so nobody is asked"


def test_an_address_that_two_runs_have_is_not_guessed(tmp_path: Path) -> None:
    """Runs of one seed have one session id, whatever they grew."""
    for name, log in (("a", b"t\n1\n"), ("b", b"t\n1\n"), ("c", b"t\n2\n")):
        made = Artifacts(tmp_path / name / "artifacts", "s").put("log", "log.csv", "text/csv", log)
        (tmp_path / name / "journal.sqlite").touch()
    said = say("artifact", made.uri, "--runs", tmp_path)
    assert (said.code, said.out) == (1, "")
    folders = ", ".join(str(tmp_path / name) for name in ("c", "b", "a"))
    assert f"3 runs have this address: {folders}; name one with --runs" in said.err
    named = say("artifact", made.uri, "--runs", tmp_path / "a")
    assert named.out == f"{tmp_path / 'a' / 'artifacts' / 'log.csv'}\n"
