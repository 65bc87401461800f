"""With ``--lang zh`` no line mixes two languages, but for names, values and pasted commands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Said, say
from labharness.core.operations import operations
from rig import EXAMPLE, HERE, ON_SHORT, SHORT_LINE

SIGNED = ("--name", "Ada", "--reason", "x")
SPECTRUM = HERE / "data" / "raman" / "pynxtools_raman_apache2" / "Si-wafer-Raman-Spectrum-1.txt"
OF_OTHERS = {"capabilities list", "envelope show", "example", "hazards list"}
"""Their lines hold values of a lab's tables, or declarations as callers get them."""
FOR_ADMINISTRATORS = {"guard"}
VALUES = ("  防止过热的硬件：", "  验证测试  ")  # before the names of a lab's table

AT_A_LAB = (
    *("down", "status", "policy check", "tasks list", "tasks graph", "tasks events"),
    *("tasks salvage", "jobs list", "lab check", "envelope check", "envelope show", "doctor"),
    *("approvals list", "hold", "resume", "stop", "safe", "alarms list", "alarms test"),
    *("hazards list",),
)
ON_ONE = (
    *("tasks show", "tasks result", "tasks pause", "tasks resume", "tasks cancel"),
    *("tasks archive", "jobs show", "jobs end", "approvals show"),
)
ON_ALARMS = (
    *("alarms shelve", "alarms unshelve", "alarms suppress", "alarms unsuppress"),
    *("alarms remove", "alarms place", "hazards proof"),
)
ARGUMENTS: dict[str, tuple[object, ...]] = {
    **dict.fromkeys(AT_A_LAB, ON_SHORT),
    **dict.fromkeys(
        ("house", "line-owner", "campaign run", "campaign status", "guard"), ("{tmp}/none.toml",)
    ),
    **dict.fromkeys(("submit", "policy explain", "plan"), (EXAMPLE, *ON_SHORT)),
    **dict.fromkeys(
        ("journal access", "journal verify", "journal show", "journal export", "report"), ("{tmp}",)
    ),
    **dict.fromkeys(ON_ONE, ("0", *ON_SHORT)),
    **dict.fromkeys(("drivers", "example", "capabilities list"), ()),
    **dict.fromkeys(("program start", "program hold", "program reset"), ("furnace", *ON_SHORT)),
    **dict.fromkeys(ON_ALARMS, ("x", *SIGNED, *ON_SHORT)),
    "run": ("{tmp}/none.json", *ON_SHORT),
    "up": ("--lab", "{tmp}/none.toml"),
    "serve": ("--broker", "http://broker", *ON_SHORT),
    "broker setup": ("--print", *ON_SHORT),
    "broker check": ("--management", "ftp://broker", *ON_SHORT),
    "retention list": ("--runs", "{tmp}/none", *ON_SHORT),
    "retention apply": ("--runs", "{tmp}", "--name", "李", "--reason", "规定", *ON_SHORT),
    "journal grant": ("{tmp}", "--reader", "王", "--name", "李", "--reason", "规定"),
    "lab key": ("--out", "{tmp}/none/key"),
    "approvals key": ("--name", "李", "--out", "{tmp}/none/key"),
    "result": ("0", "--callee", "lab", "--broker", "http://broker"),
    "abort": ("0", "--callee", "lab", "--broker", "http://broker"),
    "schema": ("dance",),
    "mcp": ("--caller", "李", "--lab", "{tmp}/none.toml"),
    "ask": ("--caller", "李", *ON_SHORT),
    "mcp-cp": ON_SHORT,
    "tasks retry": ("0", "--reason", "why", *ON_SHORT),
    "tasks update": ("0", "--title", "标题", *ON_SHORT),
    "tasks confirm": ("0", "load", *ON_SHORT),
    "tasks link": ("0", "child", "1", *ON_SHORT),
    "tasks unlink": ("0", "child", "1", *ON_SHORT),
    "jobs create": (EXAMPLE, "--every", "sometimes", *ON_SHORT),
    "capabilities show": ("alchemy",),
    "reset": (*SIGNED, *ON_SHORT),
    "arm": (SHORT_LINE,),
    "approvals approve": ("0", *SIGNED, *ON_SHORT),
    "approvals reject": ("0", *SIGNED, *ON_SHORT),
    "read": ("furnace.temperature", *ON_SHORT),
    "set": ("argon.setpoint", "10", "sccm", *ON_SHORT),
    "watch": ("--for", "1", *ON_SHORT),
    "program check": ("furnace", "{tmp}/program.toml", *ON_SHORT),
    "program upload": ("furnace", "{tmp}/program.toml", *ON_SHORT),
    "alarms ack": ("all", *SIGNED, *ON_SHORT),
    "simulate": (SHORT_LINE, "--tcp", "x"),
    "simulated": ("{tmp}", "status"),
    "artifact": ("nonsense",),
    "history": ("--runs", "{tmp}"),
    "compare": ("{tmp}", "{tmp}"),
    "analyse": (SPECTRUM,),
    "calibrate": (SPECTRUM, "--on", "oxide"),
    "chaos": ("--line", SHORT_LINE, "--replay", "x"),
}
PASTED = re.compile(r"labharness( [\w./{}=-]+)+|'[^']*'|\"[^\"]*\"|\S*/\S*")
MIXED = re.compile(r"(?<![\w./-])[A-Za-z]{2,}[ ,;:]+[A-Za-z]{2,}(?![\w.])")
NAMES = re.compile(r"line owner|--speed fast|\b(?:sccm|degC)\b")


def english_in(said: Said) -> list[str]:
    lines = (said.out + said.err).splitlines()
    ours = [line for line in lines if not any(each in line for each in VALUES)]
    return [line for line in ours if MIXED.search(NAMES.sub("", PASTED.sub("…", line)))]


def test_every_command_is_tried() -> None:
    above = {name.rpartition(" ")[0] for name in operations()}
    assert set(ARGUMENTS) == set(operations()) - above


@pytest.mark.parametrize("command", sorted(set(ARGUMENTS) - OF_OTHERS - FOR_ADMINISTRATORS))
def test_no_line_of_a_command_mixes_two_languages(tmp_path: Path, command: str) -> None:
    words = [str(each).replace("{tmp}", str(tmp_path)) for each in ARGUMENTS[command]]
    said = say(*command.split(), *words, "--lang", "zh")
    assert said.out + said.err, "it says something"
    assert english_in(said) == []


def test_each_rule_of_an_envelope_is_told_in_chinese_around_its_names() -> None:
    lines = say("envelope", "show", *ON_SHORT, "--lang", "zh").out.splitlines()
    assert len(lines) > 100
    assert [line for line in lines if not "\u4e00" <= line[0] <= "\u9fff"] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["dance", "--lang=zh"], "labharness：没有 'dance'；可用：example、schema"),
        (["run", "--lang", "zh"], "缺少以下参数：TASK.json"),
        (["run", "t", "--sped", "--lang", "zh"], "没有选项 '--sped'（是否指 --speed？）"),
        (["run", "t", "--lang", "zh", "--seed", "x"], "参数 --seed：'x' 不是至多 18 位的整数"),
        (["run", "t", "--lang", "zh", "--lab"], "参数 --lab：需要一个值"),
        (["run", "t", "--lang", "zh", "--json=1"], "参数 --json：此选项不带值：'1'"),
        (
            ["alarms", "shelve", "x", "--minutes", "1", "--once", "--lang", "zh"],
            "参数 --once：不能与参数 --minutes 同时使用",
        ),
        (["run", "t", "--lang", "zh", "--l", "x"], "选项不明确：--l 可能是 --lab, "),
        (["run", "t", "more", "--lang", "zh"], "'more' 是多余的词"),
    ],
)
def test_a_wrong_word_is_told_in_chinese(words: list[str], told: str) -> None:
    said = say(*words)
    said.is_one_plain_error(told)
    assert english_in(said) == []


def test_a_wrong_language_is_told_in_english() -> None:
    say("run", "t", "--lang", "fr").is_one_plain_error("no 'fr'; there are en, zh")


def test_help_does_not_wait_for_the_texts() -> None:
    code = (
        "import sys, contextlib\nfrom labharness.faces.cli import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "sys.exit('labharness.core.vocabulary.texts' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
