"""The table ``[capability.document-analysis]`` of a lab file: where documents may come from."""

import re
from collections.abc import Iterator
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from labharness.core.vocabulary.texts import Text
from labharness.work.capability import Settings

_HOST: Final = re.compile(r"(?:\*\.)?[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]")

Origin = tuple[str, int]
"""Host in lower case, and port; a host may begin with ``*.`` in a lab file."""


class DocumentSettings(Settings):
    """The table ``[capability.document-analysis]``.

    Attributes:
        folders: Folders, beside the lab file or absolute, below which a ``file:`` document may lie.
        origins: Origins, such as ``https://example.org``, from which one may be fetched;
            ``https://*.example.org`` stands for every host below it that is not private.
        certificates: A file of certificates (PEM) that is trusted instead of the system's.
        bytes_max: Largest document.
        memory_mb, cpu_s, wall_s: Limits of the process that reads it.
    """

    folders: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    certificates: str = ""
    bytes_max: Annotated[int, Field(gt=0, le=200_000_000)] = 20_000_000
    memory_mb: Annotated[int, Field(ge=256, le=16_384)] = 1_024
    cpu_s: Annotated[int, Field(gt=0, le=600)] = 30
    wall_s: Annotated[int, Field(gt=0, le=600)] = 60

    @field_validator("origins")
    @classmethod
    def _are_origins(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for each in given:
            if origin_of(each) is None or urlsplit(each).path not in ("", "/"):
                raise ValueError(f"{each!r} is not an origin such as https://example.org:8443")
        return given

    @property
    def memory_bytes(self) -> int:
        """The address space of the process that reads a document."""
        return self.memory_mb * 1_024 * 1_024


def origin_of(uri: str) -> Origin | None:
    """Return the origin of an ``https://`` address; ``None`` for any other text."""
    try:
        parts = urlsplit(uri)
        port = parts.port or 443
    except ValueError:
        return None
    host = parts.netloc.rpartition(":")[0] if parts.port is not None else parts.netloc
    host = host.lower().rstrip(".")
    if parts.scheme != "https" or not _HOST.fullmatch(host):  # no user, no other alphabet
        return None
    return host, port


def origins_of(settings: DocumentSettings, wanted: Origin) -> Iterator[bool]:
    """Return, for each origin of a lab file that allows one, whether it names exactly that."""
    for each in settings.origins:
        listed = origin_of(each)
        if listed == wanted:
            yield True
        elif listed is not None and listed[0].startswith("*.") and _is_below(wanted, listed):
            yield False


def not_listed(asked: str, settings: DocumentSettings) -> Text:
    """Return that an origin is none of those that a lab file lists, and which it lists."""
    return Text("fetch.not_listed", origin=asked, listed=", ".join(settings.origins) or "none")


def _is_below(wanted: Origin, listed: Origin) -> bool:
    return listed[1] == wanted[1] and wanted[0].endswith(listed[0][1:])
