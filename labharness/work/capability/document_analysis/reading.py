"""Reads a document in a process of its own, and prints its findings as JSON.

A parser of strangers' files may hang, crash, or take all memory. So it runs here, behind limits
that the system keeps. Its parent reads a bounded answer: findings, or why there are none.
"""

import io
import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, Final

from labharness.work.capability.document_analysis.findings import findings, growth_of
from labharness.work.capability.document_analysis.sections import (
    Heading,
    Section,
    below,
    heading_of,
    name_of,
    sections_of_markdown,
    sections_of_text,
    titled,
    top_of,
)
from labharness.work.capability.document_analysis.settings import DocumentSettings

NICE: Final = 10
"""Niceness of a reader: the guard, the line and the house go first."""

FILES_MAX: Final = 32
"""Files that are open at once."""

HTML_DEPTH_MAX: Final = 500
"""Open elements at once; HTML 4 and later have no bound, browsers stop at 512."""

PAGES_MAX: Final = 500
"""Pages of a PDF that are read."""

CHARACTERS_MAX: Final = 5_000_000
"""Characters of text that are searched: a book has a million."""

VOID: Final = frozenset(
    (
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"),
        *("source", "track", "wbr", "p", "li", "td", "tr", "th", "dd", "dt"),
    )
)
"""Elements that need no end, so that they do not nest."""


class _Unreadable(Exception):
    """The document cannot be read; the first argument is the end of one of `supervised.REASONS`."""


def read_document(data: bytes, media_type: str) -> tuple[Section, ...]:
    """Return the sections of a document.

    Raises:
        _Unreadable: It is damaged, encrypted, too deep, too long, or of another kind.
    """
    readers = {
        "text/plain": lambda: sections_of_text(_text(data)),
        "text/markdown": lambda: sections_of_markdown(_text(data)),
        "text/html": lambda: sections_of_markdown(_of_html(_text(data))),
        "application/pdf": lambda: tuple(_of_pdf(data)),
    }
    if media_type not in readers:
        raise _Unreadable("media_type")
    sections = readers[media_type]()
    if not any(each.text.strip() for each in sections):
        raise _Unreadable("no_text")
    return sections


def _text(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _Unreadable("not_utf8") from None
    if len(text) > CHARACTERS_MAX:
        raise _Unreadable("too_long")
    if "\x00" in text:
        raise _Unreadable("not_text")
    return text


# ---- HTML


def _of_html(text: str) -> str:
    """Return the main text of a page as Markdown, without navigation and footers."""
    import trafilatura

    _Depth().feed(text)
    found = trafilatura.extract(
        text,
        output_format="markdown",
        include_comments=False,
        include_tables=True,
        favor_recall=True,
        with_metadata=False,
    )
    if not found:
        raise _Unreadable("no_text")
    for tag in ("<sub>", "</sub>", "<sup>", "</sup>"):
        found = found.replace(tag, "")
    return str(found)


class _Depth(HTMLParser):
    """Refuses a page whose elements nest too deep, before a recursive parser sees it."""

    now = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.now += 1
            if self.now > HTML_DEPTH_MAX:
                raise _Unreadable("too_deep")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            self.now = max(0, self.now - 1)


# ---- PDF

LARGER: Final = 1.12
"""A line is a heading where its letters are that many times as large as most letters."""


@dataclass(slots=True)
class _Line:
    text: str = ""
    size: float = 0.0
    page: int = 0


def _of_pdf(data: bytes) -> Iterator[Section]:
    lines = _pdf_lines(data)
    body = _usual_size(lines)
    page, name, top, kept = 0, "", "", list[str]()
    path: list[Heading] = []
    for line in lines:
        heading = _pdf_heading(line, body)
        if heading is None and not (line.page != page and not path):
            kept.append(line.text)
            continue
        if "".join(kept).strip():
            yield Section(name, top, _unwrapped(kept))
        kept, page = [], line.page
        if heading is None:
            name, kept = f"Page {line.page}", [line.text]
            continue
        path = below(path, heading)
        name, top = name_of(path), top_of(path)
    if "".join(kept).strip():
        yield Section(name, top, _unwrapped(kept))


def _pdf_lines(data: bytes) -> list[_Line]:
    import pypdf
    from pypdf.errors import DependencyError, PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    lines: list[_Line] = []
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise _Unreadable("encrypted")
        if len(reader.pages) > PAGES_MAX:
            raise _Unreadable("too_long")
        characters = 0
        for number, page in enumerate(reader.pages, 1):
            lines += _page_lines(page, number)
            characters += sum(len(each.text) for each in lines[-10_000:])
            if characters > CHARACTERS_MAX:
                raise _Unreadable("too_long")
    except (_Unreadable, MemoryError, RecursionError):
        raise
    except DependencyError:
        raise _Unreadable("encrypted") from None
    except (PyPdfError, ValueError, LookupError, TypeError, AttributeError, OSError) as why:
        raise _Unreadable(_reason(why)) from None
    return lines


def _reason(why: BaseException | None) -> str:
    """Return what went wrong at first: pypdf words a bound that it met as damage."""
    found = "damaged"
    while why is not None:
        if isinstance(why, MemoryError | RecursionError):
            found = "memory" if isinstance(why, MemoryError) else "too_deep"
        elif "limit" in type(why).__name__.lower():
            found = "too_long"
        why = why.__cause__ or why.__context__
    return found


def _page_lines(page: Any, number: int) -> list[_Line]:  # noqa: ANN401 - pypdf's page
    lines = [_Line(page=number)]

    def seen(text: str, cm: Any, tm: Any, font: Any, size: float) -> None:  # noqa: ANN401 - pypdf's
        scale = abs(float(tm[3]) or float(tm[0])) * abs(float(cm[3]) or 1.0)
        for index, part in enumerate(text.split("\n")):
            if index:
                lines.append(_Line(page=number))
            line = lines[-1]
            line.text += part
            if part.strip():
                line.size = max(line.size, float(size or 0.0) * scale)

    page.extract_text(visitor_text=seen)
    return lines


def _usual_size(lines: list[_Line]) -> float:
    counts = Counter[float]()
    for line in lines:
        counts[round(line.size, 1)] += len(line.text)
    return max(counts, key=counts.__getitem__, default=0.0)


def _pdf_heading(line: _Line, body: float) -> Heading | None:
    """Return a heading that stands out by its letters, its number, or as a usual one of a paper."""
    text = " ".join(line.text.split())
    if not text or len(text) > 120:
        return None
    stands_out = body > 0 and line.size >= LARGER * body and text[0].isalpha()
    if stands_out and text[-1] not in ".,;:" and len(text.split()) <= 12:
        return heading_of(text) or titled(1, text)
    return heading_of(text)


def _unwrapped(lines: list[str]) -> str:
    """Return lines of a page as paragraphs: a word that was cut at its hyphen is whole again."""
    out: list[str] = []
    for line in map(str.rstrip, lines):
        if out and out[-1].endswith("-") and line[:1].islower():
            out[-1] = out[-1][:-1] + line
        else:
            out.append(line)
    return "\n".join(out).strip()


# ---- the process


def _confine(limits: DocumentSettings) -> None:
    """Let the system end this process when it takes too much."""
    import resource
    import signal

    bounds = (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_NOFILE, FILES_MAX),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    )
    for name, most in bounds:
        resource.setrlimit(name, (most, most))
    os.nice(NICE)
    # at the first bound comes SIGXCPU, by which its parent knows why; at the second SIGKILL
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 1))
    signal.alarm(limits.wall_s + 1)  # its parent may be gone


def result_of(media_type: str, data: bytes) -> dict[str, Any]:
    """Return what a document states, or under ``unreadable`` why it cannot be read."""
    try:
        sections = read_document(data, media_type)
        found = findings(sections)
    except _Unreadable as why:
        return {"unreadable": str(why)}
    except MemoryError:
        return {"unreadable": "memory"}
    except RecursionError:
        return {"unreadable": "too_deep"}
    except ModuleNotFoundError as why:
        return {"lacking": (why.name or "").partition(".")[0]}
    return {
        "sections": len(sections),
        "findings": [each.to_json() for each in found],
        "growth": growth_of(sections),
    }


def main() -> None:
    """Read a document from standard input; its limits and its media type are the arguments."""
    _confine(DocumentSettings.model_validate_json(sys.argv[1]))
    logging.disable(logging.CRITICAL)
    data = sys.stdin.buffer.read()
    out = json.dumps(result_of(sys.argv[2], data), ensure_ascii=True, allow_nan=False)
    sys.stdout.write(out)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
