"""The master key of a lab: 32 bytes in a file that its account alone may read."""

import os
import stat
from pathlib import Path
from typing import Final

from labharness.core.clock import Chance
from labharness.core.files.named import open_named
from labharness.core.files.signing_key import BadKey, write_secret

KEY_BYTES: Final = 32
"""Of AES-256 (FIPS 197)."""

FILE_BYTES_MAX: Final = 128
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def make_data_key(path: Path) -> None:
    """Write a new key that only its account can read; an existing file stays.

    Raises:
        BadKey: The file is there or cannot be written.
    """
    write_secret(path, Chance(None).entropy(KEY_BYTES).hex().encode() + b"\n")


def read_data_key(path: Path) -> bytes:
    """Return a key, 32 bytes.

    Raises:
        BadKey: The file cannot be read, other accounts may read it, or it holds no such key.
    """
    try:
        with open_named(path) as file:
            mode, text = os.fstat(file.fileno()).st_mode, file.read(FILE_BYTES_MAX)
    except OSError as why:
        raise BadKey("key.file", path=str(path), why=why.strerror) from None
    if os.name == "posix" and mode & OTHERS:
        raise BadKey("key.shared", path=str(path), mode=f"{stat.S_IMODE(mode):o}")
    try:
        key = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise BadKey("key.no_data_key", path=str(path))
    return key
