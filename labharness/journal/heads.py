"""Signed heads of chains, kept outside the folders of runs: they show that a tail was cut."""

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from labharness.core.clock import Chance
from labharness.core.files.durable import sync_folder, write_durably
from labharness.core.files.signing_key import signed_by
from labharness.journal.chain import Head, VerifyReport, canonical
from labharness.journal.reading import header_bytes, verify_file

LOG = logging.getLogger(__name__)

HEADS_NAME: Final = "heads"
"""Folder of the heads in a lab's state directory."""

HEAD_EVERY_S: Final = 60.0
"""Longest world time (s) between two kept heads."""

VIRTUAL_EVERY_S: Final = 600.0
"""The same in virtual time, as lab time (s); it takes some 0.4 s of the world's."""

RUNS_MAX: Final = 10_000
"""Most runs whose heads one folder keeps (some 600 bytes each); the oldest give way."""

HEAD_BYTES_MAX: Final = 4_096
"""Longest file that is read as a head."""

KEY_BYTES: Final = 32
SIGNED: Final = b"labharness head, version 1\n"
"""Stands before the signed text, so that no signature for anything else is one of a head."""


@dataclass(frozen=True, slots=True)
class SignedHead:
    """The newest record of one run's chain at a moment, under the signature of its lab.

    Attributes:
        run: Hash (hex) of the run's header.
        about: Hash (hex) of the header about the process, which the chain itself does not cover.
        seq: Number of the record.
        hash: Its hash (hex).
        at: World time, in virtual runs the stated one.
        ended: Whether the journal was closed with it: nothing may follow.
        key: Public key (hex) of the lab.
        signature: Ed25519 (RFC 8032) over the fields above, in hex.
    """

    run: str
    about: str
    seq: int
    hash: str
    at: str
    ended: bool
    key: str
    signature: str = ""

    @property
    def head(self) -> Head:
        """The record."""
        return Head(self.seq, self.hash)

    def signed_bytes(self) -> bytes:
        """Return the text that is signed."""
        fields = {name: value for name, value in asdict(self).items() if name != "signature"}
        return SIGNED + canonical(fields)

    def holds(self) -> bool:
        """Return whether the signature fits the key that is stated."""
        return signed_by(self.key, self.signature, self.signed_bytes())


class HeadKeeper:
    """Keeps the newest head of one run in a file outside its folder.

    A head that cannot be kept stops nothing: the run is logged about it once, and a check of the
    journal later cannot tell whether its tail is whole.

    Args:
        place: The folder of heads.
        key: The 32 bytes of the lab's private key.
        now: Returns the world time as text.
        every_s: Lab time (s) between two heads.
        synced: Whether each head outlives a power cut; no power can fail in virtual time.

    Attributes:
        place: The folder of heads.
        every_s: Lab time (s) between two heads.
    """

    def __init__(
        self, place: Path, key: bytes, now: Callable[[], str], *, every_s: float, synced: bool
    ) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self.place = place
        self.every_s = every_s
        self._key = Ed25519PrivateKey.from_private_bytes(key)
        self._public = self._key.public_key().public_bytes_raw().hex()
        self._now = now
        self._synced = synced
        self._failed = False

    def keep(self, head: Head, run: bytes, about: bytes, *, ended: bool = False) -> None:
        """Sign a head and put it in the place of the one before.

        Args:
            head: The newest record on the disk.
            run: The run's header, as it is stored.
            about: The header about the process, as it is stored.
            ended: Whether the journal is closed with it.
        """
        names = sha256(run).hexdigest(), sha256(about).hexdigest()
        bare = SignedHead(*names, head.seq, head.hash, self._now(), ended, self._public)
        signed = replace(bare, signature=self._key.sign(bare.signed_bytes()).hex())
        try:
            self._write(
                self.place / f"{names[0][:32]}-{names[1][:32]}.json", canonical(asdict(signed))
            )
        except OSError as why:
            if not self._failed:
                LOG.warning("no head of the journal is kept in %s: %s", self.place, why)
            self._failed = True
        else:
            self._failed = False

    def _write(self, path: Path, data: bytes) -> None:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _make_room(path.parent)
        write_durably(path, data, synced=self._synced)


@dataclass(frozen=True, slots=True)
class JournalVerdict:
    """The result of a check of a journal against the heads kept elsewhere.

    Attributes:
        report: Of the chain; `tail_known` only if the newest record is that of a head.
        vouched: The newest head that belongs to this journal, and its file; ``None`` without one.
        about_known: Whether a head covers the facts about the process, and they are unchanged.
        about_changed: Heads of this run are kept, and all with other facts about the process.
    """

    report: VerifyReport
    vouched: tuple[SignedHead, Path] | None
    about_known: bool
    about_changed: bool

    @property
    def ok(self) -> bool:
        """Return whether nothing is known to be changed."""
        return self.report.ok and not self.about_changed


def verify_with_heads(path: Path, places: Iterable[Path], key: str = "") -> JournalVerdict:
    """Check a journal file against the newest of its heads that is found.

    Args:
        path: The journal.
        places: Folders of heads; one that is not there counts as empty.
        key: Public key (hex) of the lab, if it is known; heads of any other do not count.

    Raises:
        JournalFailed: The file cannot be opened, or has no readable header.
    """
    run, about = (sha256(header_bytes(path, part)).hexdigest() for part in ("run", "about"))
    kept = [each for place in places for each in _kept(place, run) if key in ("", each[0].key)]
    own = [each for each in kept if each[0].about == about]
    newest = max(own or kept, key=lambda each: (each[0].at, each[0].seq), default=None)
    # Heads of the same run with another header about it: of a changed header, or of another run
    # that was made from the same seed. Both have the same chain, as far as both go.
    report = verify_file(path, outside=newest[0].head if newest and own else None)
    if own and newest and newest[0].ended and report.ok and report.head.seq > newest[0].seq:
        last, rows = newest[0].head, report.head.seq - newest[0].seq
        why = f"record {last.seq + 1} was added after the journal was closed"
        report = VerifyReport(False, last.seq + 1, why, last, report.tail_known, rows)
    return JournalVerdict(report, newest if own else None, bool(own), bool(kept) and not own)


def head_key(folder: Path) -> bytes:
    """Return the private key of a lab and this account, made at its first use.

    Args:
        folder: The lab's state directory, which exists.

    Raises:
        OSError: The key cannot be read or made.
    """
    path = folder / f"heads.{os.getuid() if hasattr(os, 'getuid') else 0}.key"
    while True:
        try:
            return bytes.fromhex(path.read_text("ascii"))[:KEY_BYTES]
        except FileNotFoundError:
            made = Chance(None).entropy(KEY_BYTES)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(made.hex())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(fresh, path)  # of two processes the first one makes it
        except FileExistsError:
            continue
        finally:
            fresh.unlink()
        sync_folder(folder)


def _kept(place: Path, run: str) -> Iterator[tuple[SignedHead, Path]]:
    """Return the heads of a run whose signature holds; other files are passed over."""
    for path in sorted(place.glob(f"{run[:32]}-*.json")):
        try:
            with path.open("rb") as file:
                head = SignedHead(**json.loads(file.read(HEAD_BYTES_MAX)))
            if type(head.seq) is int and type(head.at) is str and head.run == run and head.holds():
                yield head, path
        except (OSError, TypeError, ValueError, RecursionError):
            continue


def _make_room(place: Path) -> None:
    """Remove the oldest heads beyond the bound, with as many again as one run needs."""
    heads = list(place.glob("*.json"))
    if len(heads) < RUNS_MAX:
        return
    for each in sorted(heads, key=lambda path: path.stat().st_mtime)[: len(heads) - RUNS_MAX + 1]:
        each.unlink(missing_ok=True)
