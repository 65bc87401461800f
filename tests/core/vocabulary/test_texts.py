"""Texts are codes: each that is used is in the catalogue, whole in both languages."""

import ast
import copy
import json
import math
import re
import string
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labharness.core import texts
from labharness.core.texts import LANGUAGES
from labharness.core.vocabulary.texts import Text, coded, in_language, revived, words_of
from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.layout import FORMAT
from labharness.journal.reading import read, run_header
from labharness.work.task.commands import REFUSALS
from rig import HERE
from sentences import SENTENCES

WORD = re.compile(r"[A-Za-z]{2}")
NAMES = re.compile(r"constraints\.max_duration")
CODE = HERE.parent / "labharness"
LIMIT = Text(
    "limit.outside", channel="argon.setpoint", asked=600.0, low=0.0, high=490.0, unit="sccm"
)


def used() -> Iterator[tuple[str, str, set[str]]]:
    """Return where a text is made, its code, and the names of its parameters."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in CODE.rglob("*.py")}
    makers = {"Text", "Said", "CodedError"}
    for _ in range(2):  # an error may refine one that refines CodedError
        makers |= {
            node.name
            for tree in trees.values()
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            and any(ast.unparse(base) in makers - {"Text", "Said"} for base in node.bases)
        }
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) in makers and node.args):
                continue
            said, names = node.args[0], {str(each.arg) for each in node.keywords}
            where = f"{path.relative_to(CODE)}:{node.lineno}"
            if isinstance(said, ast.Constant):
                yield where, str(said.value), names


def blanks(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


@pytest.mark.promise(53)
def test_every_code_that_is_used_is_in_the_catalogue_with_the_parameters_that_it_takes() -> None:
    found = list(used())
    assert len(found) > 300
    wrong = [
        f"{where}: {code} {names}"
        for where, code, names in found
        if code not in SENTENCES or names != blanks(SENTENCES[code][0])
    ]
    assert wrong == []


OWN = re.compile(r"^(?:told|report|phase)\.")
RECORDED = re.compile(  # made of a word in a journal, an answer, a prediction or a finding
    r"policy\.[a-z]+_gate|report\.(?:(?:ending|event|key|killed|limit|part|quantity|state|status)\."
    r"|(?:class|claim|film|layers|legend)_)"
)
MISSED = ("job.house_away", "job.still_at_work", "job.queue_full")


def test_every_text_stands_in_a_room_that_says_it() -> None:
    made = ("input.minimum", "input.maximum", *(f"task.{each}" for each in REFUSALS), *MISSED)
    said = {
        room: "".join(
            path.read_text("utf-8") for end in ("py", "j2") for path in room.rglob(f"*.{end}")
        )
        for room in {_room(code) for code in SENTENCES}
    }
    elsewhere = [
        code
        for code in SENTENCES
        if code not in made
        and not RECORDED.match(code)
        and not re.search(rf"[\"']{re.escape(OWN.sub('', code))}[\"']", said[_room(code)])
    ]
    assert elsewhere == []


def _room(code: str) -> Path:
    return CODE.joinpath(*texts.shipped()[code].home.parent.relative_to(CODE).parts[:2])


def test_a_file_is_cut_into_the_tables_that_it_has_as_toml() -> None:
    tables = dict(texts.shipped())
    assert texts.words().items() >= tomllib.loads(tables.pop(texts.WORDS).text).items()
    for file in {table.home for table in tables.values()}:
        whole = tomllib.loads(file.read_text("utf-8"))
        whole.pop(texts.WORDS, None)
        mine = {code: table for code, table in tables.items() if table.home == file}
        assert dict(_flat(whole)) == {
            code: tomllib.loads(table.text) for code, table in mine.items()
        }


def _flat(tables: dict[str, Any], before: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    for name, inside in tables.items():
        fields = {key: each for key, each in inside.items() if isinstance(each, str)}
        if fields:
            yield before + name, fields
        deeper = {key: each for key, each in inside.items() if key not in fields}
        yield from _flat(deeper, f"{before}{name}.")


READERS = {"administrators", "agents", "developers"}
"""Who may be told in English alone, said in the table by ``for``."""


@pytest.mark.promise(53)
def test_both_languages_are_whole() -> None:
    for code, templates in SENTENCES.items():
        table = tomllib.loads(texts.shipped()[code].text)
        if "zh" not in table:
            assert table.keys() == {"en", "for"}, code
            assert table["for"] in READERS, code
            continue
        assert table.keys() == {"en", "zh"}, code
        assert len(templates) == len(LANGUAGES), code
        assert blanks(templates[0]) == blanks(templates[1]), code
        chinese = any("\u4e00" <= each <= "\u9fff" for each in templates[1])
        assert chinese or not WORD.search(NAMES.sub("", _bare(templates[1]))), code
    assert all(texts.words().values())


def _bare(template: str) -> str:
    """Return what a template says beside its parameters."""
    return "".join(text for text, *_ in string.Formatter().parse(template))


READS_CHINESE = (  # headings of tables, sentences of documents, words of an intent or a protocol
    "labharness/analysis/formats/",
    "labharness/protocols/mcp_cp/messages.py",
    "labharness/work/capability/cvd/answer.py",
    "labharness/work/capability/document_analysis/",
    "labharness/work/dialogue/intents.py",
)


def test_what_is_said_in_chinese_stands_in_no_module() -> None:
    drawers = (CODE, *(CODE.parent / each for each in ("drivers", "simulators", "envelopes")))
    files = [path for drawer in drawers for path in drawer.rglob("*.py")]
    speaks = [
        name
        for path in files
        if not (name := path.relative_to(CODE.parent).as_posix()).startswith(READS_CHINESE)
        and re.search("[\u4e00-\u9fff]", path.read_text("utf-8"))
    ]
    assert speaks == [], "write it into texts.toml"


@pytest.mark.promise(53)
def test_a_text_is_its_english_and_keeps_its_code_wherever_it_goes() -> None:
    said = "argon.setpoint: asked 600 sccm, allowed 0 to 490 sccm"
    assert said == LIMIT
    assert json.dumps(LIMIT) == f'"{said}"'
    whole = Text("line.latched", why=LIMIT)
    for one in (copy.deepcopy(whole), str(whole), str(ValueError(whole)), str(str(whole))):
        assert isinstance(one, Text)
        assert (one.code, one.params["why"]) == ("line.latched", LIMIT)
    assert (
        in_language(whole, "zh") == "设备已锁定：argon.setpoint：请求 600 sccm，允许 0 至 490 sccm"
    )
    assert in_language("somebody else's words", "zh") == "somebody else's words"


def test_a_name_that_looks_like_a_word_is_not_translated() -> None:
    said = Text("usage.command", name="'x'", hint="", names=["run", "envelope", "reset"])
    assert in_language(said, "zh") == "没有 'x'；可用：run、envelope、reset"


@pytest.mark.promise(53)
def test_a_journal_holds_codes_and_gives_texts_back(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    several = Text("parts", parts=[LIMIT, Text("line.latched", why="x")])
    endless = Text("energy.up_to", value=math.inf, unit="sccm")
    with SqliteJournal(path) as journal:
        journal.append("event", {"message": several, "endless": endless, "of": [LIMIT]}, 0.0)
    assert run_header(path) == {"format": FORMAT}
    assert coded([LIMIT]) == [{"code": "limit.outside", "with": dict(LIMIT.params)}]
    (record,) = read(path)
    message = record.body["message"]
    assert isinstance(message, Text)
    assert message == several
    assert in_language(message, "zh") == in_language(several, "zh")
    assert in_language(record.body["endless"], "zh") == "至多 inf sccm"
    assert record.body["of"] == [LIMIT]


def test_what_another_version_wrote_is_shown_and_a_later_format_is_not_read(tmp_path: Path) -> None:
    said = revived({"code": "not.yet", "with": {"value": 1}})
    assert said == "not.yet {'value': 1}"
    assert revived({"code": "limit.outside", "with": {}}) == "limit.outside {}"
    for other in ({"code": 1, "with": {}}, {"code": "x"}, {"code": "x", "with": []}):
        assert revived(dict(other)) == other
    path = tmp_path / "run.sqlite"
    with SqliteJournal(path) as journal:
        journal.append("mode", {}, 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labharness.journal.layout.FORMAT", FORMAT - 1)
        with pytest.raises(JournalFailed, match="this version reads up to"):
            list(read(path))


BORDERS = ("lab", "work/desk", "faces/service")
MADE_A_TEXT = re.compile(r"\bstr\((?:asked|answer)(?:\.get\(|\[)")


def test_what_came_from_another_process_is_made_a_text_by_the_codec_alone() -> None:
    sources = [path for each in BORDERS for path in (CODE / each).rglob("*.py")]
    found = [f"{path}" for path in sources if MADE_A_TEXT.search(path.read_text("utf-8"))]
    assert found == []
    assert MADE_A_TEXT.search('why = str(asked.get("reason"))')
    asked = {"reason": {"code": "hcp.aborted", "with": {}}, "by": Text("hcp.aborted")}
    assert words_of(asked, "reason") == words_of(asked, "none") == ""
    assert words_of(asked, "by") is asked["by"]
