"""SHA-256 digests, written ``sha256:<hex>``, over one or several texts."""

import hashlib


def digest_of(data: bytes) -> str:
    """Return the digest of some bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def joined(*parts: bytes) -> bytes:
    """Join parts, each after its length, so that no byte can move from one part to the next."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)
