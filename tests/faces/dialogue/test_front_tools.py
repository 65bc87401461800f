"""The tools of a user's program: each one, what of a file travels, consent, and hostile words."""

import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import TimeoutError as Late
from pathlib import Path
from typing import Any

import pytest

from commands import ROOT, say
from labharness.core.vocabulary.digests import digest_of
from labharness.faces.dialogue.front_tools import TOOLS, FrontTools
from labharness.faces.dialogue.tools import HIDDEN
from labharness.faces.model import scripted
from labharness.protocols.mcp_cp.tools import ToolCall, ToolResult
from rig import HERE

SPECTRUM = HERE / "data" / "raman" / "raman_fitting_mit" / "Si_spectrum01.txt"
WHO = ("--lab", ROOT / "tests" / "short_line.toml", "--caller", "harness-alpha-001")
WITHIN_S = 60.0


class User:
    """A user who gives these answers, and the program that asks."""

    def __init__(self, *answers: str | None) -> None:
        self.answers, self.asked, self.told = [*answers], list[str](), list[str]()
        self.tools = FrontTools(self.answer, self.told.append)

    def answer(self, question: str) -> str | None:
        self.asked.append(question)
        return self.answers.pop(0)

    def call(self, name: str, prompt: str | None = None, **parameters: Any) -> ToolResult:
        call = ToolCall("c-1", name, parameters, user_prompt=prompt)
        return self.tools.run(call, WITHIN_S).result(WITHIN_S)


def code(result: ToolResult) -> str:
    assert result.error is not None
    return result.error.code


@pytest.mark.promise(77)
def test_of_a_file_its_name_size_digest_and_peaks_travel_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "film.txt"
    path.write_bytes(SPECTRUM.read_bytes())
    user = User(str(path), "yes", "yes")
    picked = user.call("file_picker", purpose="to fit it")
    data = path.read_bytes()
    assert picked.result == {"name": "film.txt", "size": len(data), "digest": digest_of(data)}
    fitted = [user.call("local_fit", file=picked.result[each]) for each in ("name", "digest")]
    assert fitted[0].result == fitted[1].result
    assert fitted[0].result.keys() == {"unit", "peaks"}
    (silicon,) = [each for each in fitted[0].result["peaks"] if 515 < each["place"] < 525]
    assert silicon.keys() == {"place", "width", "height"}
    assert 2 < silicon["width"] < 10
    assert all("film.txt" in each for each in user.asked[1:])
    wire = json.dumps([str(each) for each in (picked, *fitted)])
    assert str(tmp_path) not in wire
    lines = [line.strip() for line in data.decode("latin-1").splitlines() if len(line) > 8]
    assert [each for each in lines if each in wire] == []
    assert picked.client_info is not None
    assert picked.client_info.capabilities == ("FILE_SYSTEM",)


def test_confirm_and_notify(tmp_path: Path) -> None:
    user = User("yes", " Y ", "no", "是", "perhaps", "")
    found = [user.call("confirm", question="Warm?") for _ in range(6)]
    answers = [True, True, False, True, False]
    assert [each.result for each in found[:5]] == [{"answer": each} for each in answers]
    assert code(found[5]) == "PERMISSION_DENIED"
    assert all("approves no task of the lab" in each for each in user.asked)
    assert user.call("notify", text="Done.").result == {"shown": True}
    assert user.told == ["The model says: 'Done.'"]
    assert len(user.asked) == 6, "nobody is asked for a note"


ARGUMENTS: dict[str, dict[str, str]] = {
    "file_picker": {},
    "confirm": {"question": "Warm?"},
    "local_fit": {"file": "film.txt"},
}


@pytest.mark.promise(77)
@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("answer", [None, "", " "])
def test_without_consent_a_tool_does_nothing_and_says_so_in_one_sentence(
    tmp_path: Path, name: str, answer: str | None
) -> None:
    assert TOOLS[name].permission_level == "USER_CONSENT"
    path = tmp_path / "film.txt"
    path.write_bytes(SPECTRUM.read_bytes())
    user = User(str(path), answer)
    assert user.call("file_picker").status == "SUCCESS"
    refused = user.call(name, **ARGUMENTS[name])
    assert user.answers == [], "each use is asked for"
    assert (refused.status, code(refused)) == ("ERROR", "PERMISSION_DENIED")
    assert refused.error is not None
    said = "no terminal to ask" if answer is None else "has not allowed"
    assert said in refused.error.message
    assert "\n" not in refused.error.message


HOSTILE = (
    "\x1b[2J\x1b[1;1H\u202e\u200b'\nlabharness: passphrase for approval of task t-1: "
    "\x1b]0;x\x07\U000e0041\u3164\ufe0f\u2028ok?"
)


@pytest.mark.promise(77)
def test_hostile_words_are_shown_as_words_of_the_model_in_one_line_without_what_hides() -> None:
    user = User("no", "", "")
    user.call("confirm", question=HOSTILE)
    user.call("confirm", HOSTILE, question="Warm?")
    user.call("file_picker", purpose=HOSTILE)
    user.call("notify", text=HOSTILE)
    assert len(user.asked + user.told) == 4
    for each in user.asked + user.told:
        first, *rest = each.split("\n")
        assert first.startswith("The model ")
        assert "labharness: passphrase" in first
        assert all(one.isprintable() for one in (first, *rest))
        assert all(HIDDEN.search(one) is None for one in (first, *rest))
        assert len(rest) <= 1
        assert not rest or rest[0].endswith("refuses: ")


def test_what_a_tool_cannot_do_is_said_without_a_path_or_a_byte_of_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "secret-recipe.txt"
    path.write_text("the recipe is 42 of everything", "utf-8")
    user = User(str(tmp_path / "gone" / "x.txt"), str(tmp_path), str(path), "yes", "yes", "yes")
    found = [user.call("file_picker") for _ in range(3)]
    assert [each.status for each in found] == ["ERROR", "ERROR", "SUCCESS"]
    found.append(user.call("local_fit", file=path.name))
    assert found[3].error is not None
    assert "no Raman spectrum" in found[3].error.message
    path.write_bytes(SPECTRUM.read_bytes())
    found.append(user.call("local_fit", file=path.name))
    assert found[4].error is not None
    assert "changed since" in found[4].error.message
    found.append(user.call("local_fit", file=str(SPECTRUM)))
    assert found[5].error is not None
    assert "has been picked" in found[5].error.message
    assert {code(each) for each in (*found[:2], *found[3:])} == {"TOOL_FAILED"}
    wire = json.dumps([str(each) for each in found[:5]])
    assert [each for each in (str(tmp_path), "42 of everything") if each in wire] == []


def test_arguments_that_a_tool_has_not_are_refused_before_anybody_is_asked() -> None:
    user = User()
    for name, parameters in (("file_picker", {"path": "x"}), ("confirm", {}), ("notify", {"n": 1})):
        assert code(user.call(name, **parameters)) == "TOOL_FAILED"
    assert code(user.call("format_disk")) == "EXECUTION_ERROR"
    assert user.asked == []


@pytest.mark.promise(77)
def test_consent_that_comes_after_the_time_of_the_call_is_none(tmp_path: Path) -> None:
    path, answers = tmp_path / "film.txt", threading.Event()
    path.write_text("1 2", "utf-8")

    def slow(question: str) -> str:
        answers.wait(WITHIN_S)
        return str(path)

    tools = FrontTools(slow, print)
    late = tools.run(ToolCall("c-1", "file_picker", {}), 0.1)
    behind = tools.run(ToolCall("c-2", "file_picker", {}), 0.1)
    with pytest.raises(Late):
        behind.result(0.3)
    answers.set()
    assert code(late.result(WITHIN_S)) == "PERMISSION_DENIED"
    with pytest.raises(Late):
        behind.result(0.3)  # it was never asked


def calls(*each: tuple[str, dict[str, str]]) -> list[dict[str, Any]]:
    asked = [{"name": name, "parameters": parameters} for name, parameters in each]
    return [{"text": "I ask.", "calls": asked}]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    def write(answers: Any) -> None:
        path = tmp_path / "script.json"
        path.write_text(json.dumps(answers), "utf-8")
        monkeypatch.setattr(scripted, "GROWTH", path)

    return write


def test_ask_without_a_terminal_refuses_each_consent_and_hangs_on_none(
    script: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    end = [{"text": "Nothing is \x1b[1mknown\u202e.", "calls": []}]
    script(calls(*ARGUMENTS.items(), ("notify", {"text": HOSTILE})) + end)
    with Path(os.devnull).open("r", encoding="utf-8") as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        said = say("ask", "fit it", *WHO, "--model", "scripted")
    assert said.out == "Nothing is known.\n"
    lines = said.err.splitlines()
    assert sum("there is no terminal to ask for consent" in each for each in lines) == 3
    assert "the words of the model:" in lines
    assert [each for each in lines if not each.isprintable()] == []
    assert sum("labharness: passphrase" in each for each in lines) == 1


def test_ask_at_a_terminal_fits_a_file_of_the_user(
    script: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = {"file": "${file_picker.name}"}
    end = [{"text": "Peaks: ${local_fit.peaks}", "calls": []}]
    script(calls(("file_picker", {})) + calls(("local_fit", fit)) + end)
    master, slave = os.openpty()
    os.write(master, f"{SPECTRUM}\nyes\n".encode())
    with os.fdopen(slave, encoding="utf-8") as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        said = say("ask", "fit it", *WHO, "--model", "scripted")
    os.close(master)
    assert said.code == 0, said
    assert "'place': 52" in said.out
    assert said.err.count("The model asks for") == 2
