"""Documents are read in a process behind limits, and a harmful one costs one plain error."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pypdf.errors import LimitReachedError, PdfReadError

from documents import PAGE, PAPER, bomb, nested, pdf
from labharness.core.clock import steady_s
from labharness.work.capability.document_analysis import supervised
from labharness.work.capability.document_analysis.reading import (
    FILES_MAX,
    HTML_DEPTH_MAX,
    NICE,
    _reason,
    read_document,
    result_of,
)
from labharness.work.capability.document_analysis.settings import DocumentSettings
from labharness.work.capability.document_analysis.supervised import (
    DocumentUnreadable,
    ReaderLost,
    read_apart,
)

LIMITS = DocumentSettings(memory_mb=600, cpu_s=10, wall_s=30)
HANGS = "import signal, time; signal.alarm(60); print('x', flush=True); time.sleep(50)"


def read(data: bytes, media_type: str, limits: DocumentSettings = LIMITS) -> Mapping[str, Any]:
    return asyncio.run(read_apart(data, media_type, limits))


def reading(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another program stand in the reader's place."""
    (tmp_path / "stands_in.py").write_text(script)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(supervised, "READER", "stands_in")


def said(found: Mapping[str, Any]) -> dict[str, str]:
    return {each["statement"]: each["source_section"] for each in found["findings"]}


def test_a_document_is_read_in_its_own_process() -> None:
    found = read(PAPER.encode(), "text/markdown")
    assert "Results, Section 3.2" in said(found).values()
    assert found["growth"]["target_material"] == "MoS2"


def test_the_main_text_of_a_page_is_read_and_its_navigation_is_not() -> None:
    sections = read_document(PAGE.encode(), "text/html")
    text = " ".join(each.text for each in sections)
    assert "Results, Section 3.2" in [each.name for each in sections]
    assert "18.6 cm-1" in text
    assert "home" not in text


def test_a_pdf_has_sections_by_its_letters_and_numbers() -> None:
    lines = [("Growth of layers", 20), ("Abstract", 12), ("A layer was 5 nm thick in all.", 10)]
    lines += [("3 Results", 14), ("3.2 Raman", 12), ("The film reaches 85 % after 10 min.", 10)]
    sections = read_document(pdf(lines), "application/pdf")
    assert [each.name for each in sections] == ["Abstract", "Results, Section 3.2"]
    assert "reaches 85 % after 10 min" in sections[-1].text


def test_a_pdf_without_headings_names_its_pages() -> None:
    lines = [("A layer was 5 nm thick in all of them.", 10)]
    assert [each.name for each in read_document(pdf(lines), "application/pdf")] == ["Page 1"]


@pytest.mark.parametrize(
    ("data", "media_type", "why"),
    [
        (b"\xff\xfe\x00broken", "text/plain", "not_utf8"),
        (b"a\x00b", "text/plain", "not_text"),
        (b"%PDF-1.4 broken", "application/pdf", "damaged"),
        (b"   ", "text/plain", "no_text"),
        (nested(HTML_DEPTH_MAX + 1).encode(), "text/html", "too_deep"),
        (b"5 nm", "image/png", "media_type"),
    ],
)
@pytest.mark.promise(64)
def test_a_document_that_cannot_be_read_is_refused_with_its_reason(
    data: bytes, media_type: str, why: str
) -> None:
    assert result_of(media_type, data) == {"unreadable": why}
    assert f"document.{why}" in supervised.REASONS


@pytest.mark.thorough
@pytest.mark.promise(64)
def test_a_pdf_that_unpacks_to_gigabytes_ends_within_its_limits() -> None:
    begun_s = steady_s()
    with pytest.raises(DocumentUnreadable):
        read(bomb(2_000), "application/pdf")
    assert steady_s() - begun_s < LIMITS.wall_s


@pytest.mark.thorough
@pytest.mark.promise(64)
def test_a_page_that_nests_a_hundred_thousand_deep_ends_within_its_limits() -> None:
    with pytest.raises(DocumentUnreadable, match="too deep"):
        read(nested(100_000).encode(), "text/html")


@pytest.mark.thorough
@pytest.mark.promise(64)
def test_a_text_of_a_hundred_megabytes_is_refused() -> None:
    with pytest.raises(DocumentUnreadable):
        read(b"The film is 5 nm thick. " * 4_200_000, "text/plain")


COMPUTES = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 2))\nwhile True: pass"
KILLED = f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})"


@pytest.mark.promise(64)
@pytest.mark.parametrize(
    ("script", "error", "why"),
    [
        (HANGS, DocumentUnreadable, "more than 1 s"),
        (COMPUTES, DocumentUnreadable, "processor time"),
        (KILLED, ReaderLost, "-9"),
    ],
)
def test_a_reader_that_hangs_computes_for_ever_or_is_killed_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, error: type[Exception], why: str
) -> None:
    reading(script, tmp_path, monkeypatch)
    most = LIMITS if script == COMPUTES else LIMITS.model_copy(update={"wall_s": 1})
    with pytest.raises(error, match=why):
        read(b"5 nm", "text/plain", most.model_copy(update={"cpu_s": 1}))


@pytest.mark.promise(64)
def test_an_answer_without_end_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading("import sys\nwhile True: sys.stdout.write('x' * 65536)", tmp_path, monkeypatch)
    with pytest.raises(DocumentUnreadable, match="bytes"):
        read(b"5 nm", "text/plain")


@pytest.mark.promise(64)
def test_an_abort_kills_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = tmp_path / "pid"
    script = (
        f"import os, pathlib; pathlib.Path({str(name)!r}).write_text(str(os.getpid()))\n{HANGS}"
    )
    reading(script, tmp_path, monkeypatch)

    async def aborted() -> int:
        task = asyncio.ensure_future(read_apart(b"5 nm", "text/plain", LIMITS))
        while not (name.exists() and name.read_text()):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return int(name.read_text())

    with pytest.raises(ProcessLookupError):
        os.kill(asyncio.run(aborted()), 0)


@pytest.mark.promise(64)
def test_the_system_itself_keeps_the_limits() -> None:
    script = (
        "import resource as r\n"
        "from labharness.work.capability.document_analysis import reading\n"
        "reading._confine(reading.DocumentSettings(memory_mb=700, cpu_s=7))\n"
        "print(*(r.getrlimit(each)[0] for each in (r.RLIMIT_AS, r.RLIMIT_CPU, r.RLIMIT_NOFILE)),\n"
        "      r.getrlimit(r.RLIMIT_FSIZE)[0], os.nice(0))"
    )
    run = [sys.executable, "-c", f"import os\n{script}"]
    out = subprocess.run(run, capture_output=True, check=True).stdout
    behind = min(os.nice(0) + NICE, 19)  # it stands behind the guard and the line
    assert [int(each) for each in out.split()] == [700 * 2**20, 7, FILES_MAX, 0, behind]


@pytest.mark.promise(64)
@pytest.mark.parametrize("why", [MemoryError(), RecursionError(), LimitReachedError("of it")])
def test_a_bound_that_the_reader_of_pdf_calls_damage_is_told_as_a_bound(why: Exception) -> None:
    words = {MemoryError: "memory", RecursionError: "too_deep", LimitReachedError: "too_long"}
    worded = PdfReadError("Error reading PDF file.")
    worded.__cause__ = why
    assert _reason(worded) == words[type(why)]
    assert _reason(PdfReadError("Cannot find Root object in pdf")) == "damaged"


def test_a_pdf_that_nests_thousands_deep_is_too_deep_and_not_damaged() -> None:
    deep = b"[" * 3_000 + b"]" * 3_000
    data = pdf([("x", 12)]).replace(b"/MediaBox [", b"/Deep " + deep + b" /MediaBox [", 1)
    assert result_of("application/pdf", data) == {"unreadable": "too_deep"}
