"""The files of a session, each with its checksum."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from labharness.core.files.durable import sync_folder
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import CodedError
from labharness.journal.encryption import KeyMissing, RunKey, kept

INDEX: Final = "index.json"

_FILENAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_SESSION: Final = r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}"
_URI: Final = re.compile(rf"hcp://session-({_SESSION})/artifacts/({_FILENAME})")


class ArtifactRefused(CodedError, ValueError, code="artifact_refused"):
    """A file name that may not be written, or an address without an artifact."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A reference to a file, with the fields of HCP."""

    name: str
    type: str
    uri: str
    size_bytes: int
    checksum: str


class Artifacts:
    """The artifacts of one session in one directory, listed in its ``index.json``.

    Args:
        directory: Directory of the files; made if it is missing.
        session_id: The session they belong to; part of every address.
        key: Encrypts each file and the list of them, which says sizes and checksums as they were
            before.

    Raises:
        ArtifactRefused: The id is not valid, or the directory belongs to another session.
        OSError: The directory cannot be made.
    """

    def __init__(self, directory: Path, session_id: str, key: RunKey | None = None) -> None:
        if not re.fullmatch(_SESSION, session_id):
            raise ArtifactRefused("artifact.session", session_id=session_id)
        self.directory = directory
        self.session_id = session_id
        self._key = key
        directory.mkdir(parents=True, exist_ok=True)
        session, self._artifacts = (
            _read_index(directory) if (directory / INDEX).exists() else (session_id, [])
        )
        if session != session_id:
            raise ArtifactRefused(
                "artifact.other_session", directory=str(directory), session=session
            )

    def put(self, name: str, filename: str, mime: str, data: bytes) -> Artifact:
        """Write a file completely or not at all, and return its reference.

        A file is evidence: it may be put again with the same bytes, never with others.

        Raises:
            ArtifactRefused: The file name is unsafe, or another file has it.
            OSError: The disk refused; the file is not listed.
        """
        if not re.fullmatch(_FILENAME, filename) or filename == INDEX:
            raise ArtifactRefused("artifact.name", filename=filename, index=INDEX)
        artifact = Artifact(
            name=name,
            type=mime,
            uri=f"hcp://session-{self.session_id}/artifacts/{filename}",
            size_bytes=len(data),
            checksum=digest_of(data),
        )
        for known in self._artifacts:
            if known.uri == artifact.uri:
                if known != artifact:
                    raise ArtifactRefused("artifact.exists", uri=known.uri)
                return known
        self._write(filename, data)
        listed = [*self._artifacts, artifact]
        index = {"session_id": self.session_id, "artifacts": [asdict(one) for one in listed]}
        self._write(INDEX, json.dumps(index, indent=2).encode() + b"\n")
        self._artifacts = listed
        return artifact

    def _write(self, filename: str, data: bytes) -> None:
        if self._key is not None:
            data = self._key.file(f"{self.directory.name}/{filename}", data)
        _write_whole(self.directory / filename, data)

    def list(self) -> Sequence[Artifact]:
        """Return the references in the order in which the files were put."""
        return tuple(self._artifacts)


def resolve(uri: str, roots: Iterable[Path]) -> Path:
    """Return the file behind an artifact's address, in the first directory that has it.

    Args:
        uri: ``hcp://session-<id>/artifacts/<file>``; no other form is accepted.
        roots: Artifact directories that may be read; the index of each names its session.

    Raises:
        ArtifactRefused: The address is malformed, unlisted, or leads out of its directory.
        KeyMissing: No directory that can be read has it, and one cannot be.
    """
    return next(_found(uri, roots))[0]


def resolve_all(uri: str, roots: Iterable[Path]) -> dict[Path, str]:
    """Return every file behind an artifact's address, with its checksum.

    Runs of one seed have one session id, so several files may have the address.

    Raises:
        ArtifactRefused: As `resolve`.
        KeyMissing: As `resolve`.
    """
    return dict(_found(uri, roots))


def _found(uri: str, roots: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Return each file behind an address, with its checksum; raise where there is none."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise ArtifactRefused("artifact.address", uri=uri)
    hidden: KeyMissing | None = None
    found = False
    for root in roots:
        if not (root / INDEX).is_file():
            continue
        try:
            session, artifacts = _read_index(root)
        except KeyMissing as why:  # of a confidential run; another one may have it
            hidden = why
            continue
        listed = next((one for one in artifacts if one.uri == uri), None)
        if session != match[1] or listed is None:
            continue
        file = root / match[2]
        # A link planted in the directory would lead anywhere.
        if file.is_symlink() or not file.is_file():
            raise ArtifactRefused("artifact.missing", uri=uri)
        found = True
        yield file, str(listed.checksum)
    if not found:
        raise hidden or ArtifactRefused("artifact.none", uri=uri)


def _read_index(directory: Path) -> tuple[str, list[Artifact]]:
    try:
        index = json.loads(kept(directory / INDEX))
        return str(index["session_id"]), [Artifact(**one) for one in index["artifacts"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactRefused(
            "artifact.unread", path=str(directory / INDEX), error=str(error)
        ) from error


def _write_whole(file: Path, data: bytes) -> None:
    part = file.with_name(f".{file.name}.part")
    with part.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    part.replace(file)
    sync_folder(file.parent)
