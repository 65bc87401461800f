"""The code's own rules, each with a list of today's exceptions that may only shrink."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import hypothesis
import pytest

from rig import HERE
from sentences import SENTENCES

ROOT = HERE.parent
RUNS = ("labharness", "drivers", "simulators", "envelopes")  # what a laboratory runs
CODE = (*RUNS, "tests", "benchmarks")

LINES_MAX = 700  # a file is cut by idea, not by count

WING_LINES_MAX = {  # code lines; raising one takes a line of reason beside it
    "analysis": 5815,
    "chaos": 1505,
    "core": 2000,  # what a process says of itself in a file, once for four rooms
    "faces": 13110,  # plan --draw; tools of agents, MCP, dialogues with a model and clients
    "instruments": 3015,
    "journal": 1575,
    "lab": 9340,  # the plan of a task without its flight; each way of a set is flown
    "line": 2680,
    "protocols": 2165,  # MCP-CP, what a history must not keep, and the branches of a condition
    "safety": 4460,
    "work": 11810,  # sets of instructions, drawn and carried out as a task; intents; dialogues
}

KERNEL_LINES, PROOF_LINES, BOTH_LINES_MAX = range(350, 711), range(150, 276), 935  # decision 14
KERNEL_COMPLEXITY_MAX = 10
KERNEL_MAY_IMPORT = {"collections.abc", "dataclasses", "enum", "math", "typing"}
DRIVER_MAY_IMPORT = {
    "collections.abc",
    "dataclasses",
    "enum",
    "functools",
    "itertools",
    "json",
    "math",
    "re",
    "struct",
    "typing",
}

NO_CHANCE = {"secrets", "time", "uuid"}
CALENDAR = {"now", "today", "utcnow"}
NUMPY_STREAMS = {"Generator", "PCG64", "SeedSequence"}  # each takes a seed that was given
MAKES_A_STREAM = {
    # the nominal plant has no chance; a seeded one draws its branches from the chance it is given
    "simulators/labharness_simulators/plant/cvd_tube.py",
    "simulators/labharness_simulators/plant/spectrum.py",
}

WIRES_THE_LAB = "labharness/lab/"  # it must know which links lead into a simulated lab


MACHINE_PATH = re.compile(r"(?<![\w.~}])/(?:work|root|home)" + "/")
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
REASON = re.compile(
    r"#\s*(?:noqa|type:\s*ignore)(?P<codes>[^\s#]*(?:,\s*[A-Z]+[0-9]+)*)(?P<rest>.*)"
)
TEXT_ENDINGS = {".cfg", ".ini", ".json", ".md", ".py", ".toml", ".txt", ".yaml", ".yml", ""}

DECISION_LINES_MAX = 60
SUPERSEDED = re.compile(r"# \d+\. [^\n]+\n\nSuperseded by \[\d+\]\([\w.-]+\)\.\n")
DECISION_PARTS = ["Context", "Decision", "What was given up"]
CHANGE_PARTS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def python_files(*drawers: str) -> list[Path]:
    return [path for drawer in drawers for path in sorted((ROOT / drawer).rglob("*.py"))]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imports_of(path: Path) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Return line, module and names of each import, also of those inside functions."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield node.lineno, module, tuple(alias.name for alias in node.names)


def code_lines(text: str) -> int:
    """Count the lines that hold code: no blank line, no comment, no docstring."""
    quiet = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in quiet and token.type != tokenize.ENDMARKER:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node) is None:
                continue
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def strangers(paths: list[Path], allowed: set[str], rooms: tuple[str, ...]) -> list[str]:
    return [
        f"{name_of(path)}:{line} imports {module}"
        for path in paths
        for line, module, _ in imports_of(path)
        if module not in allowed
        and not any(module == room or module.startswith(room + ".") for room in rooms)
    ]


def chance_in(path: Path) -> Iterator[tuple[str, int]]:
    """Return each use of the calendar, a clock or a source of chance: what it is, and the line."""
    for line, module, names in imports_of(path):
        if module in NO_CHANCE:
            yield module, line
        elif module == "random":
            yield from (("random." + name, line) for name in names)
        elif module == "os" and "urandom" in names:
            yield "os.urandom", line
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.Attribute):
            continue
        owner = ast.unparse(node.value)
        if node.attr in CALENDAR and owner.split(".")[-1] in ("datetime", "date"):
            yield f"{owner}.{node.attr}", node.lineno
        elif (owner, node.attr) == ("os", "urandom"):
            yield "os.urandom", node.lineno
        elif owner == "random" and node.attr != "Random":
            yield f"random.{node.attr}", node.lineno
        elif owner in ("np.random", "numpy.random") and node.attr not in NUMPY_STREAMS:
            yield f"{owner}.{node.attr}", node.lineno
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "random.Random":
            yield "random.Random()", node.lineno


def repository_files() -> list[Path]:
    """Return what git holds or would hold; outside a checkout, what a source archive holds."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return [*python_files(*CODE), *sorted(ROOT.glob("*.md"))]
    found = [ROOT / name for name in said.splitlines()]
    return [path for path in found if path.suffix in TEXT_ENDINGS and path.is_file()]


def test_time_and_chance_enter_the_house_by_one_door() -> None:
    found = {
        (name_of(path), what, line)
        for path in python_files(*RUNS)
        if not name_of(path).startswith("labharness/core/clock/")
        for what, line in chance_in(path)
    }
    streams = {name for name, what, _ in found if what == "random.Random()"}
    assert {each for each in found if each[1] != "random.Random()"} == set()
    assert streams == MAKES_A_STREAM, "shrink the list, or draw from labharness.core.clock.Chance"


def test_no_verdict_of_a_test_depends_on_a_draw() -> None:
    same = hypothesis.settings.get_profile("same")
    assert (same.derandomize, same.database, same.deadline) == (True, None, None)
    assert hypothesis.settings.get_current_profile_name() in ("same", "drawn", "once")
    unseeded = {
        name_of(path)
        for path in python_files("tests")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and not node.args and not node.keywords
        if ast.unparse(node.func).split(".")[-1] in ("default_rng", "Random")
    }
    assert unseeded == {"tests/faces/testing/test_testing_conformance.py"}, "a driver's own"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import time", "time"),
        ("def f():\n    from time import monotonic", "time"),
        ("import uuid", "uuid"),
        ("import secrets", "secrets"),
        ("from os import urandom", "os.urandom"),
        ("import os\nos.urandom(8)", "os.urandom"),
        ("import datetime\ndatetime.datetime.now()", "datetime.datetime.now"),
        ("from datetime import date\ndate.today()", "date.today"),
        ("import random\nrandom.choice([1])", "random.choice"),
        ("from random import gauss", "random.gauss"),
        ("import random\nrandom.Random(1)", "random.Random()"),
        ("import numpy as np\nnp.random.default_rng()", "np.random.default_rng"),
    ],
)
def test_the_door_is_watched(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(text)
    assert what in {found for found, _ in chance_in(path)}


@pytest.mark.promise(33)
def test_the_kernel_imports_only_what_is_listed() -> None:
    rooms = ("labharness.safety.kernel", "labharness.core.vocabulary", "labharness.core.errors")
    assert strangers(python_files("labharness/safety/kernel"), KERNEL_MAY_IMPORT, rooms) == []


@pytest.mark.promise(33)
def test_the_kernel_is_small_enough_to_be_read_and_not_emptied_elsewhere() -> None:
    both, proofs = (
        sum(code_lines(path.read_text("utf-8")) for path in python_files(room))
        for room in ("labharness/safety/kernel", "labharness/safety/kernel/proofs")
    )
    assert both - proofs in KERNEL_LINES
    assert proofs in PROOF_LINES
    assert both <= BOTH_LINES_MAX


@pytest.mark.promise(33)
def test_no_function_of_the_kernel_has_many_ways_through_it() -> None:
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "C901"]
    bound = f"lint.mccabe.max-complexity = {KERNEL_COMPLEXITY_MAX}"
    command += ["--config", bound, "labharness/safety/kernel"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_lines_of_code_are_counted_without_what_explains_them() -> None:
    text = '''"""A module."""

import math  # why

# a remark


def f() -> tuple[int, str]:
    """Give two.

    Both are small.
    """
    return (
        1,
        """text
        that is no docstring""",
    )
'''
    assert code_lines(text) == 7


def test_the_kernel_uses_no_reflection_and_no_io() -> None:
    banned = {"__import__", "compile", "eval", "exec", "getattr", "input", "open", "print"}
    calls = [
        f"{name_of(path)}:{node.lineno} calls {node.func.id}"
        for path in python_files("labharness/safety/kernel")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in banned
    ]
    assert calls == []


def test_the_nouns_need_the_standard_library_alone() -> None:
    allowed = {*sys.stdlib_module_names, "collections.abc", "importlib.metadata", "importlib.util"}
    alone = ("errors", "on_demand", "texts")
    rooms = ("labharness.core.vocabulary", *(f"labharness.core.{name}" for name in alone))
    nouns = python_files("labharness/core/vocabulary")
    nouns = [*nouns, *(ROOT / f"labharness/core/{name}.py" for name in alone)]
    assert strangers(nouns, allowed, rooms) == []


def test_the_guards_core_needs_the_standard_library_alone_and_does_no_io() -> None:
    allowed = {"collections", "collections.abc", "dataclasses", "enum", "typing"}
    core = [ROOT / f"labharness/safety/guard/{name}.py" for name in ("core", "port")]
    rooms = ("labharness.core.vocabulary", "labharness.core.errors", "labharness.safety.guard.port")
    assert strangers(core, allowed, rooms) == []


def test_drivers_import_nothing_that_could_do_io() -> None:
    rooms = ("labharness.instruments.driver", "labharness.core.vocabulary", "labharness_drivers")
    assert strangers(python_files("drivers"), DRIVER_MAY_IMPORT, rooms) == []


@pytest.mark.promise(8)
def test_nothing_but_what_wires_the_lab_asks_whether_it_is_simulated() -> None:
    found = []
    for path in python_files(*RUNS):
        if name_of(path).startswith(WIRES_THE_LAB):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.If | ast.IfExp | ast.While):
                asked = [node.test]
            elif isinstance(node, ast.comprehension):
                asked = list(node.ifs)
            elif isinstance(node, ast.Match):
                asked = [node.subject]
            else:
                continue
            names = {
                part.id if isinstance(part, ast.Name) else part.attr
                for test in asked
                for part in ast.walk(test)
                if isinstance(part, ast.Name | ast.Attribute)
            }
            found += [f"{name_of(path)}: {name}" for name in names if "simulated" in name.lower()]
        if "is_" + "simulated" in path.read_text("utf-8"):
            found.append(name_of(path))
    assert found == []


def test_every_module_says_first_what_it_is() -> None:
    silent = [name_of(path) for path in python_files(*CODE) if not ast.get_docstring(tree_of(path))]
    assert silent == []


def test_no_file_is_long() -> None:
    long = {
        name_of(path)
        for path in python_files(*CODE)
        if len(path.read_text("utf-8").splitlines()) > LINES_MAX
    }
    tables = {name for name in long if name.startswith("tests/planted_")}  # one row after the other
    assert long == tables, "split the file"


def test_no_wing_is_heavier_than_its_budget() -> None:
    found: dict[str, int] = dict.fromkeys(WING_LINES_MAX, 0)
    for path in python_files("labharness"):
        wing = path.relative_to(ROOT / "labharness").parts[0]
        if not wing.endswith(".py"):
            found[wing] += code_lines(path.read_text("utf-8"))
    heavy = {wing: lines for wing, lines in found.items() if lines > WING_LINES_MAX[wing]}
    assert heavy == {}, "delete what the new lines replace, or raise the budget with its reason"


def test_every_silenced_check_gives_its_reason_on_the_line() -> None:
    bare = {
        name_of(path)
        for path in python_files(*CODE)
        for line in path.read_text("utf-8").splitlines()
        if (found := REASON.search(line)) and len(found["rest"].strip(" #-")) < 5
    }
    assert bare == set(), "give the reason on the line"


def test_no_file_names_a_path_of_somebodys_machine_or_is_left_unfinished() -> None:
    found = [
        f"{name_of(path)}:{number}: {line.strip()[:80]}"
        for path in repository_files()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if MACHINE_PATH.search(line) or UNFINISHED.search(line)
    ]
    assert found == []


def test_the_changelog_has_its_shape() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert text.startswith("# Changelog\n")
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(
        re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", each) for each in versions[1:]
    )
    numbers = [tuple(map(int, re.findall(r"\d+", each)[:3])) for each in versions[1:]]
    assert numbers == sorted(set(numbers), reverse=True)
    sections = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    for section in sections:
        title, _, body = section.partition("\n")
        assert title in CHANGE_PARTS
        assert re.search(r"^- \S", body, re.MULTILINE), f"{title} says nothing"


def test_the_decisions_are_numbered_without_gaps_and_say_what_was_given_up() -> None:
    files = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [path.name[:4] for path in files] == [f"{n:04}" for n in range(1, len(files) + 1)]
    assert files
    for number, path in enumerate(files, 1):
        text = path.read_text("utf-8")
        assert re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", path.name)
        assert text.startswith(f"# {number}. "), path.name
        if SUPERSEDED.fullmatch(text):
            continue
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == DECISION_PARTS, path.name
        assert len(text.splitlines()) <= DECISION_LINES_MAX, path.name


EVERY_KIND_HAS = {"Driver", "Simulator"}


def test_a_public_class_name_means_one_thing() -> None:
    found: dict[str, list[str]] = {}
    for path in python_files(*RUNS):
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(name_of(path))
    twice = {name: files for name, files in found.items() if len(files) > 1}
    assert set(twice) <= EVERY_KIND_HAS, twice


OLD_TERMS = re.compile(
    r"\b(?:[Rr]oads?|Safing|safing|Lookout|lookout|Forgetful|HouseFacts|aftermath|AbsenceLog|blindness|OnPaper)\b"
)


def test_no_old_term_comes_back() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    texts = [*python_files(*CODE), *pages]
    here = Path(__file__).name
    old = {name_of(each) for each in texts if OLD_TERMS.search(each.read_text("utf-8"))}
    assert {
        name for name in old if not name.endswith((here, "0024-wings-and-one-language.md"))
    } == set()


# What does not yet follow "Words" in docs/contributing.md; it shrinks until it is empty.
NOT_YET_PLAIN = (
    "docs/decisions/",
    "labharness/faces/__init__.py",
    "labharness/faces/broker/",
    "labharness/faces/caller/",
    "labharness/faces/service/",
    "tests/",
)
RIDDLES = (  # pattern, an example, the plain way
    (r"(?:^|[.;:] )(?:What|Who|Whose)\b(?![^.;]*\?)", "Who asks is told.", "use a noun as subject"),
    (r"^(?:How|That|Give|Say|Tell)\b", "How long it takes.", "begin with a noun, or 'Return ...'"),
    (r"\b[Ww]hoever\b", "Whoever drives a line.", "name the person or program"),
    (r"\b[Nn]obody\b", "It is nobody's.", "name what is missing: no person, no program"),
    (r"\bof what\b", "Part of what is asked.", "use a noun"),
    (
        r"(?<!here )\b(?:is|are|was|were) no\b(?! (?:long|oth))",
        "It is no text.",
        "is not a, has no",
    ),
    (
        r"\b(?:such that|whose it is|as it does)\b",
        "It ends as it does.",
        "so that, its owner, like",
    ),
)


RIDDLES_IN_TEXTS = (  # of texts.toml: pattern, an example
    (r"(?<!here )\b(?:is|are|was|were) no\b(?! (?:long|oth))", "'oven' is no channel"),
    (
        r"(?:^|[.;:,(] ?)(?:[Ww]hat|[Ww]hoever|[Ww]hose?)\b(?![^.;]*\?)",
        "nothing ran; what runs is ended",
    ),
    (r"\b(?:of what|such that|as it does)\b", "half of what it takes"),
)


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """Return line and text of each docstring and comment of a module, or paragraph of a page."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        plain = re.sub(
            r"```.*?```", lambda code: re.sub(r"[^\n]", "", code[0]), text, flags=re.DOTALL
        )
        for found in re.finditer(r"(?:^(?![#|]).*\S.*\n?)+", plain, re.MULTILINE):
            for item in re.split(r"\n *(?:[*-]|\d+\.) ", found[0]):
                yield plain.count("\n", 0, found.start()) + 1, " ".join(item.split()).lstrip("*- ")
        return
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, " ".join(str(node.value.value).split())
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def riddles_in(path: Path) -> Iterator[tuple[int, str, str]]:
    """Return line, text and advice of each riddle; a page may begin with an imperative."""
    rows = [row for row in RIDDLES if path.suffix == ".py" or not row[0].startswith("^")]
    for line, text in prose_of(path):
        yield from ((line, text, advice) for pattern, _, advice in rows if re.search(pattern, text))


def test_prose_is_plain_where_it_was_made_so() -> None:
    pages = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
    found = [
        f"{name_of(path)}:{line}: {advice}: {text[:80]}"
        for path in [*python_files(*CODE), *pages]
        if not name_of(path).startswith(NOT_YET_PLAIN)
        for line, text, advice in riddles_in(path)
    ]
    assert found == []


@pytest.mark.parametrize(("pattern", "example", "advice"), RIDDLES)
def test_a_riddle_is_recognised(tmp_path: Path, pattern: str, example: str, advice: str) -> None:
    module, page = tmp_path / "module.py", tmp_path / "page.md"
    module.write_text(f'"""{example}"""\n')
    page.write_text(f"# Heading\n\n* {example}\n")
    files = [module] if pattern.startswith("^") else [module, page]
    assert all([advice] == [found for *_, found in riddles_in(path)] for path in files)


def test_every_english_text_is_plain() -> None:
    found = [
        f"{code}: {english}"
        for code, (english, _) in SENTENCES.items()
        if not code.startswith("report.")  # a heading may be a question
        and any(re.search(pattern, english) for pattern, _ in RIDDLES_IN_TEXTS)
    ]
    assert found == [], "is not a, has no; use a noun as subject"


@pytest.mark.parametrize(("pattern", "example"), RIDDLES_IN_TEXTS)
def test_a_riddle_in_a_text_is_recognised(pattern: str, example: str) -> None:
    assert re.search(pattern, example)


def literals_of(path: Path) -> Iterator[tuple[int, str]]:
    """Return line and text of each string literal that is not a docstring."""
    prose = {id(node.value) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


def test_no_message_says_that_a_thing_is_no_other() -> None:
    found = [
        f"{name_of(path)}:{line}: {text[:80]}"
        for path in python_files("labharness", "drivers", "simulators")
        for line, text in literals_of(path)
        if re.search(RIDDLES_IN_TEXTS[0][0], text)
    ]
    assert found == [], "is not a, has no"


def test_a_message_is_read_also_where_values_are_put_into_it(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""It is no text."""\n\nraise ValueError(f"{1} is no " f"text: {2}")\n')
    (text,) = (text for _, text in literals_of(path) if re.search(RIDDLES_IN_TEXTS[0][0], text))
    assert text == " is no text: "


OF_THE_SERVICE = re.compile(r"^\s*(?:import|from) (?:starlette|uvicorn|prometheus_client)\b", re.M)


def test_the_service_alone_imports_what_serves_http() -> None:
    known = [
        path
        for path in sorted((ROOT / "labharness").rglob("*.py"))
        if OF_THE_SERVICE.search(path.read_text("utf-8"))
    ]
    rooms = {path.parent.name for path in known}
    assert rooms == {"service", "testing"}, "and a model of tests"


LOCAL_SOCKETS = re.compile(r"AF_UNIX|unix_server|unix_connection|SO_PEERCRED|\.sock\b[\"']")


def test_one_module_alone_knows_how_this_system_has_local_sockets() -> None:
    known = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "labharness").rglob("*.py"))
        if LOCAL_SOCKETS.search(path.read_text("utf-8"))
    ]
    assert known == ["labharness/instruments/link/local.py"]
