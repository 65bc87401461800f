"""Encryption of confidential runs: each has a key of its own, wrapped by the lab's master key.

All is AES-256-GCM (NIST SP 800-38D) with a random nonce of 96 bits for each text, which that
publication allows for 2**32 texts of one key. The name of a text enters its tag, so that one file
or record cannot stand in the place of another. Without the file of the wrapped key nothing of a run
can be read again.
"""

import hmac
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from zlib import compress

from labharness.core.clock import Chance
from labharness.core.files.data_key import KEY_BYTES, read_data_key
from labharness.core.files.durable import write_durably
from labharness.core.files.named import open_named
from labharness.core.files.signing_key import BadKey
from labharness.core.vocabulary.texts import Text
from labharness.journal.chain import ENCRYPTED, record_bytes
from labharness.journal.layout import JournalFailed

KEY_NAME: Final = "key.json"
"""The wrapped key of a run, in its folder."""

KEY_VARIABLE: Final = "LABHARNESS_DATA_KEY"
"""Names the file of the master key, where it is no longer at the place that a run states."""

MARK: Final = b"labharness encrypted 1\n"
"""Beginning of an encrypted file."""

NONCE_BYTES: Final = 12
AS_IT_IS: Final = 0
"""Level of zlib: what is encrypted has nothing left to pack."""

WRAPPED_BYTES_MAX: Final = 65_536
FILE_BYTES_MAX: Final = 256 * 2**20
"""Longest file of a run that is read whole."""


class KeyMissing(JournalFailed, code="key_missing"):
    """Confidential data cannot be read: their key is not there, is another one, or they changed."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """The key of one run.

    Attributes:
        data_class: Of the run.
        place: The file that holds it, wrapped.
    """

    data_class: str
    place: Path
    _key: bytes = field(repr=False)

    def encrypt(self, what: str, data: bytes) -> bytes:
        """Return a text that only `decrypt` of the same ``what`` reads."""
        return _encrypted(self._key, what, data)

    def decrypt(self, what: str, data: bytes) -> bytes:
        """Return what was encrypted.

        Raises:
            KeyMissing: It is of another key, was something else, or has changed.
        """
        found = _decrypted(self._key, what, data)
        if found is None:
            raise KeyMissing(Text("encrypted.changed", what=what, path=str(self.place.parent)))
        return found

    def file(self, name: str, data: bytes) -> bytes:
        """Return the bytes of an encrypted file; `kept` reads it."""
        return MARK + self.encrypt(f"file {name}", data)

    def read_file(self, name: str, data: bytes) -> bytes:
        """Return what an encrypted file holds; raises as `decrypt`."""
        return self.decrypt(f"file {name}", data.removeprefix(MARK))

    def record(
        self, seq: int, at_s: float, data: bytes, block: bytes | None
    ) -> tuple[bytes, bytes | None]:
        """Return the record that holds another one, and its block as a journal stores it."""
        body = {"data": b64encode(self.encrypt(f"record {seq}", data)).decode()}
        if block is None:
            return record_bytes(seq, at_s, ENCRYPTED, body), None
        hidden = self.encrypt(f"block {seq}", block)
        body["sha256"] = sha256(hidden).hexdigest()
        return record_bytes(seq, at_s, ENCRYPTED, body), compress(hidden, AS_IT_IS)

    def read_record(
        self, seq: int, body: Mapping[str, Any], block: bytes | None
    ) -> tuple[bytes, bytes | None]:
        """Return the record that another one holds, and its block; raises as `decrypt`."""
        try:
            hidden = b64decode(body["data"], validate=True)
        except (KeyError, TypeError, ValueError):
            hidden = b""
        data = self.decrypt(f"record {seq}", hidden)
        return data, None if block is None else self.decrypt(f"block {seq}", block)


def make_run_key(place: Path, master: Path, data_class: str) -> RunKey:
    """Make the key of a run, and keep it wrapped.

    Args:
        place: The file that is to hold it.
        master: The file of the lab's master key.
        data_class: Of the run.

    Raises:
        BadKey: The master key cannot be used.
        OSError: The file cannot be written.
    """
    wrapping = read_data_key(master)
    key = Chance(None).entropy(KEY_BYTES)
    said = {
        "data_class": data_class,
        "master": _id(wrapping),
        "master_file": os.path.abspath(master),
        "wrapped": _encrypted(wrapping, _use(data_class), key).hex(),
    }
    write_durably(place, json.dumps(said, indent=2) + "\n")
    return RunKey(data_class, place, key)


_IN_USE: Final[dict[Path, RunKey]] = {}
"""The keys of the runs that this process carries out, by their files."""


@contextmanager
def in_use(key: RunKey | None) -> Iterator[None]:
    """Keep the key of a run at hand while it is carried out.

    Its files may be lost meanwhile; its own process still reads what it has written, so that a run
    comes to its answer, and its line is watched, without them.
    """
    if key is None:
        yield
        return
    _IN_USE[key.place.absolute()] = key
    try:
        yield
    finally:
        _IN_USE.pop(key.place.absolute(), None)


def key_of(place: Path) -> RunKey | None:
    """Return the key of a run; ``None`` of a run that is not encrypted.

    Args:
        place: The file that holds it.

    Raises:
        KeyMissing: The master key is not there or is another one, or the file was changed.
    """
    if (held := _IN_USE.get(place.absolute())) is not None:
        return held
    said = _stated(place)
    if said is None:
        return None
    master = Path(os.environ.get(KEY_VARIABLE) or said["master_file"])
    try:
        wrapping = read_data_key(master)
    except BadKey as why:
        raise KeyMissing(Text("encrypted.no_key", path=str(place.parent), why=str(why))) from None
    if _id(wrapping) != said["master"]:
        where = str(place.parent)
        raise KeyMissing(Text("encrypted.other_key", path=where, master=str(master)))
    key = _decrypted(wrapping, _use(said["data_class"]), bytes.fromhex(said["wrapped"]))
    if key is None:
        raise KeyMissing(Text("encrypted.changed", what=place.name, path=str(place.parent)))
    return RunKey(said["data_class"], place, key)


def keyed_digest(master: Path, data: bytes) -> str:
    """Return a digest that tells nothing of short data to those without the key (HMAC-SHA256).

    Raises:
        BadKey: The master key cannot be used.
    """
    return hmac.new(read_data_key(master), b"labharness digest\n" + data, sha256).hexdigest()


def stated_class(folder: Path) -> str:
    """Return the data class that an encrypted run states; ``""`` of any other run."""
    try:
        said = _stated(folder / KEY_NAME)
    except KeyMissing:
        return ""
    return "" if said is None else said["data_class"]


def kept(path: Path, most: int = FILE_BYTES_MAX) -> bytes:
    """Return what a file of a run holds, encrypted or not; of a longer one the beginning.

    Args:
        path: A file in a run's folder, or one folder below it.
        most: Bytes that are read at most.

    Raises:
        OSError: It cannot be read.
        KeyMissing: It is encrypted, and its key cannot be had.
    """
    with open_named(path) as file:
        data = file.read(len(MARK))
        data += file.read((FILE_BYTES_MAX if data == MARK else most) - len(data))
    if not data.startswith(MARK):
        return data
    for folder in path.absolute().parents[:2]:
        key = key_of(folder / KEY_NAME)
        if key is not None:
            return key.read_file(path.absolute().relative_to(folder).as_posix(), data)[:most]
    raise KeyMissing(Text("encrypted.destroyed", path=str(path), name=KEY_NAME))


def _stated(place: Path) -> dict[str, str] | None:
    """Return what a file says of its wrapped key; ``None`` where there is no such file."""
    try:
        with open_named(place) as file:
            found = json.loads(file.read(WRAPPED_BYTES_MAX))
        names = ("data_class", "master", "master_file", "wrapped")
        said = {name: str(found[name]) for name in names}
        bytes.fromhex(said["wrapped"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        where = str(place.parent)
        raise KeyMissing(Text("encrypted.changed", what=place.name, path=where)) from None
    return said


def _id(master: bytes) -> str:
    return sha256(b"labharness master key\n" + master).hexdigest()[:16]


def _use(data_class: str) -> str:
    return f"run key {data_class}"


def _encrypted(key: bytes, what: str, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = Chance(None).entropy(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, data, what.encode())


def _decrypted(key: bytes, what: str, data: bytes) -> bytes | None:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = data[:NONCE_BYTES]
    try:
        return AESGCM(key).decrypt(nonce, data[NONCE_BYTES:], what.encode())
    except (InvalidTag, ValueError):  # ValueError: shorter than a nonce
        return None
