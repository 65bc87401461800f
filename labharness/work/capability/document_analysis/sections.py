"""Cuts plain text and Markdown into sections, paragraphs and sentences."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

HEADING_CHARACTERS_MAX: Final = 120
"""Longest line that is taken for a heading."""

SENTENCE_CHARACTERS_MAX: Final = 600
"""Longest sentence that is read; a longer run of text is a table, a list or a formula."""

KNOWN: Final = (
    *("abstract", "summary", "introduction", "background", "literature", "related work"),
    *("materials", "materials and methods", "method", "methods", "synthesis", "experiments"),
    *("experimental", "experimental methods", "experimental section"),
    *("results", "results and discussion", "discussion", "conclusion", "conclusions", "outlook"),
    *("acknowledgement", "acknowledgements", "acknowledgment", "acknowledgments", "funding"),
    *("author contributions", "appendix", "supporting information", "references", "bibliography"),
    *("摘要", "引言", "方法", "实验", "实验部分", "结果", "讨论", "结果与讨论", "结论"),
    *("参考文献", "致谢"),
)
"""Headings that papers have, in lower case; such a line is a heading also without a mark."""

_NUMBERED: Final = re.compile(r"(?P<number>\d{1,2}(?:\.\d{1,2}){0,3})\.?\s{1,4}(?P<title>\S.*)")
_MARKED: Final = re.compile(r" {0,3}(?P<marks>#{1,6})\s+(?P<title>.*?)\s*#*\s*")
_UNDERLINE: Final = re.compile(r"\s{0,3}(?:=+|-+)\s*")
_SHORT: Final = frozenset(
    (
        *("fig", "figs", "eq", "eqs", "ref", "refs", "sec", "tab", "no", "dr", "prof", "approx"),
        *("ca", "vs", "al", "e.g", "i.e", "cf", "resp", "st", "wt", "at", "vol", "pp", "inc"),
        "etc",
    )
)
"""Words whose dot ends no sentence."""

_END: Final = re.compile(
    r"(?<=[.!?])[\"')\]’”]?\s+(?=[\"'(\[‘“]?[A-Z0-9\u4e00-\u9fff])|(?<=[。！？])"
)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document.

    Attributes:
        name: Where it stands, for a reader: ``Results, Section 3.2``.
        top: The title of the uppermost heading above it, in lower case, which says its kind.
        text: Its paragraphs, an empty line between two.
    """

    name: str
    top: str
    text: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: its level, from 1, its number, which may be empty, and its title."""

    level: int
    number: str
    title: str


def sections_of_markdown(text: str) -> tuple[Section, ...]:
    """Return the sections of a Markdown document, by its headings."""
    return tuple(_sections(_unfenced(text.splitlines()), marked=True))


def sections_of_text(text: str) -> tuple[Section, ...]:
    """Return the sections of a plain text: numbered lines, and the usual ones of a paper."""
    return tuple(_sections(iter(text.splitlines()), marked=False))


def heading_of(line: str) -> Heading | None:
    """Return the heading that a line by itself looks like, in a paper."""
    said = line.strip().strip("*_").strip().rstrip(":")
    if not said or len(said) > HEADING_CHARACTERS_MAX:
        return None
    if said.lower() in KNOWN:
        return Heading(1, "", said)
    match = _NUMBERED.fullmatch(said)
    if match is None or match["title"][-1] in ".,;!?" or not match["title"][0].isupper():
        return None
    if len(match["title"].split()) > 12 or not re.search(
        r"[A-Za-z\u4e00-\u9fff]{3}", match["title"]
    ):
        return None
    number = match["number"]
    return Heading(number.count(".") + 1, number, match["title"])


def _unfenced(lines: list[str]) -> Iterator[str]:
    """Leave out blocks of code: what stands there is no sentence."""
    fenced = False
    for line in lines:
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            yield line


def _sections(lines: Iterator[str], *, marked: bool) -> Iterator[Section]:
    path: list[Heading] = []
    kept: list[str] = []
    for line in lines:
        if marked and kept and kept[-1].strip() and _UNDERLINE.fullmatch(line):
            found: Heading | None = titled(1 if "=" in line else 2, kept.pop().strip())
        elif marked and (match := _MARKED.fullmatch(line)):
            found = titled(len(match["marks"]), match["title"])
        else:
            found = heading_of(line)
        if found is None:
            kept.append(line)
            continue
        yield from _section(path, kept)
        path = below(path, found)
        kept = []
    yield from _section(path, kept)


def titled(level: int, title: str) -> Heading:
    """Return a heading that is marked as one, with the number that its title begins with."""
    said = title.strip("*_ ")[:HEADING_CHARACTERS_MAX]
    match = _NUMBERED.fullmatch(said)
    if match is None:
        return Heading(level, "", said)
    return Heading(level, match["number"], match["title"])


def below(path: list[Heading], heading: Heading) -> list[Heading]:
    """Return the headings above a heading, of those before it, and itself."""
    return [each for each in path if each.level < heading.level] + [heading]


def _section(path: list[Heading], lines: list[str]) -> Iterator[Section]:
    text = "\n".join(lines).strip()
    if text:
        yield Section(name_of(path), top_of(path), text)


def top_of(path: list[Heading]) -> str:
    """Return the heading that says what kind of section it is: the title of a paper says none."""
    for each in path:
        if each.title.lower() in KNOWN:
            return each.title.lower()
    return path[-1].title.lower() if path else ""


def name_of(path: list[Heading]) -> str:
    """Return where the text below these headings stands, for a reader."""
    if not path:
        return ""
    last = path[-1]
    above = [each for each in path[:-1] if each.title.lower() in KNOWN or each.number]
    if last.number and above:
        return f"{above[0].title}, Section {last.number}"
    if last.number:
        return f"{last.title}, Section {last.number}"
    return f"{above[0].title}: {last.title}" if above else last.title


def sentences(text: str) -> Iterator[str]:
    """Return the sentences of a text; what is longer than a sentence can be is left out."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*•]|\d+[.)])\s)", text):
        said = " ".join(re.sub(r"^\s*[-*•>|]+\s*", "", paragraph).split())
        held = ""
        for part in _END.split(said):
            held = f"{held} {part}".strip() if held else part
            if _is_open(held):
                continue
            if held and len(held) <= SENTENCE_CHARACTERS_MAX:
                yield held
            held = ""
        if held and len(held) <= SENTENCE_CHARACTERS_MAX:
            yield held


def _is_open(text: str) -> bool:
    """Return whether the dot at the end of a text belongs to an abbreviation or an initial."""
    if not text.endswith("."):
        return False
    word = text[:-1].rpartition(" ")[2].lstrip("(['\"").lower()
    return word in _SHORT or (len(word) == 1 and word.isalpha())
