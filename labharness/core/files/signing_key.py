"""A person's signing key (Ed25519, RFC 8032) in a file that a passphrase encrypts."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from labharness.core.vocabulary.texts import CodedError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PASSPHRASE_MIN = 8
"""Characters; NIST SP 800-63B, 5.1.1.1, asks at least as many of a secret that a person chose."""
KEY_FILE_BYTES_MAX = 4096


class BadKey(CodedError, ValueError, code="bad_key", usage=True):
    """A key file cannot be made or used; the message says why."""


def write_secret(path: Path, secret: bytes) -> None:
    """Write a new file that only its account can read, durably; an existing file stays.

    Raises:
        BadKey: The file is there or cannot be written.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
    except OSError as why:
        raise BadKey("key.file", path=str(path), why=why.strerror) from None


def signed_by(public_key: str, signature: str, data: bytes) -> bool:
    """Return whether a signature of some bytes is that of a key; both are hexadecimal digits."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def make_key(path: Path, passphrase: str) -> bytes:
    """Write a new key that only its account can read; return its public half, 32 bytes.

    Raises:
        BadKey: The passphrase is too short, or the file is there or cannot be written.
    """
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if len(passphrase) < PASSPHRASE_MIN:
        raise BadKey("key.short", least=PASSPHRASE_MIN)
    key = Ed25519PrivateKey.generate()
    encrypted = key.private_bytes(
        forms.Encoding.PEM,
        forms.PrivateFormat.PKCS8,
        forms.BestAvailableEncryption(passphrase.encode()),
    )
    write_secret(path, encrypted)
    return key.public_key().public_bytes_raw()


def read_key(path: Path, passphrase: str) -> "Ed25519PrivateKey":
    """Read a key.

    Raises:
        BadKey: The file cannot be read, holds no such key, or has another passphrase.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        with path.open("rb") as file:
            data = file.read(KEY_FILE_BYTES_MAX)
    except OSError as why:
        raise BadKey("key.file", path=str(path), why=why.strerror) from None
    try:
        key = load_pem_private_key(data, passphrase.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadKey("key.wrong", path=str(path)) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadKey("key.kind", path=str(path))
    return key
