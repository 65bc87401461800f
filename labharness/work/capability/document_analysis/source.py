"""Gets the document of a task: from the task itself, a file, an artifact of a run, or a server."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from labharness.core.errors import LabError
from labharness.core.files.allowed import allowed_file, path_of
from labharness.core.files.named import open_named
from labharness.core.vocabulary.texts import Text
from labharness.work.capability import CannotDo, Surroundings
from labharness.work.capability.document_analysis.fetching import fetch
from labharness.work.capability.document_analysis.settings import (
    DocumentSettings,
    not_listed,
    origin_of,
    origins_of,
)
from labharness.work.capability.stored import artifact_of_caller

SUFFIXES: Final = {
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".pdf": "application/pdf",
}
PDF_MARK: Final = b"%PDF-"


class DocumentRefused(LabError, ValueError, code="document_refused"):
    """A document may not be read, or is not there; the message says why."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document before it is read."""

    data: bytes
    media_type: str


def source_fault(inputs: Mapping[str, Any], settings: DocumentSettings) -> CannotDo | None:
    """Return why the source of a task is never read here; ``None`` where it may be."""
    if ("document" in inputs) == ("document_uri" in inputs):
        return CannotDo("invalid_input", Text("document.one_source"), Text("document.give_one"))
    if "document" in inputs:
        size = len(inputs["document"].encode("utf-8", "surrogatepass"))
        if size > settings.bytes_max:
            why = Text("document.too_large", most=settings.bytes_max)
            return CannotDo("invalid_input", why, Text("document.shorten"))
        return None
    uri = inputs["document_uri"]
    scheme = urlsplit(uri).scheme if uri.isprintable() else ""
    if scheme == "hcp":
        return None
    if scheme == "file":
        path = path_of(uri)
        if path is not None and any(path.is_relative_to(each) for each in _lexical(settings)):
            return None
        return CannotDo("forbidden", Text("document.no_folder"), Text("document.other_source"))
    if scheme == "https":
        origin = origin_of(uri)
        if origin is not None and any(True for _ in origins_of(settings, origin)):
            return None
        asked = "" if origin is None else f"https://{origin[0]}"
        # not forbidden, because the lab fetches from there for no caller at all
        return CannotDo("invalid_input", not_listed(asked, settings), Text("document.other_source"))
    return CannotDo("invalid_input", Text("document.scheme"), Text("document.other_source"))


def _lexical(settings: DocumentSettings) -> tuple[Path, ...]:
    """Return the absolute folders; which folder a relative one is, only the reader knows."""
    absolute = tuple(Path(os.path.normpath(each)) for each in settings.folders)
    return tuple(each if each.is_absolute() else Path("/") for each in absolute)


def document_of(inputs: Mapping[str, Any], around: Surroundings) -> Document:
    """Return the document of a task; it may wait for a disk or a server.

    Raises:
        DocumentRefused: It may not be read, or it is not there, or too large.
        OriginForbidden: It may not be fetched from there.
        NotFetched: Its server does not give it.
    """
    settings = around.settings
    if not isinstance(settings, DocumentSettings):
        raise DocumentRefused(Text("document.no_folder"))
    if "document" in inputs:
        data = inputs["document"].encode("utf-8", "replace")
        return Document(data, inputs.get("media_type", "text/plain"))
    uri = inputs["document_uri"]
    said = inputs.get("media_type", "")
    scheme = urlsplit(uri).scheme
    if scheme == "https":
        fetched = fetch(uri, settings, around.lab_folder)
        return Document(fetched.data, said or _kind(uri, fetched.data, fetched.media_type))
    if scheme == "file":
        path = _of_file(uri, around, settings)
        name, data = path.name, _bytes_of(path, settings.bytes_max)
    else:
        name, data = _of_run(uri, around, settings.bytes_max)
    return Document(data, said or _kind(name, data, ""))


def _kind(name: str, data: bytes, said: str) -> str:
    """Return the media type: what its bytes, its server or its name say, in this order."""
    if data.startswith(PDF_MARK):
        return "application/pdf"
    if said in SUFFIXES.values() and said != "text/plain":
        return said
    suffix = Path(urlsplit(name).path).suffix.lower()
    return SUFFIXES.get(suffix, said or "application/octet-stream")


def _of_file(uri: str, around: Surroundings, settings: DocumentSettings) -> Path:
    folders = [(around.lab_folder / each).resolve() for each in settings.folders]
    try:
        found = allowed_file(uri, folders)
    except FileNotFoundError:
        raise DocumentRefused(Text("document.not_there")) from None
    if found is None:
        raise DocumentRefused(Text("document.no_folder"))  # the same whether it is there or not
    return found


def _bytes_of(path: Path, bytes_max: int) -> bytes:
    try:
        with open_named(path) as file:
            data = file.read(bytes_max + 1)
    except OSError:
        raise DocumentRefused(Text("document.not_there")) from None
    return _bounded(data, bytes_max)


def _bounded(data: bytes, bytes_max: int) -> bytes:
    if len(data) > bytes_max:
        raise DocumentRefused(Text("document.too_large", most=bytes_max))
    return data


def _of_run(uri: str, around: Surroundings, bytes_max: int) -> tuple[str, bytes]:
    found = artifact_of_caller(uri, around, "document-analysis", bytes_max + 1)
    if found is None:
        raise DocumentRefused(Text("document.no_artifact"))
    name, data = found
    return name, _bounded(data, bytes_max)
