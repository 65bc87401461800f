"""Digests as this house writes them: ``sha256:<hex>``, over one text or over several."""

import hashlib

__all__ = ["digest_of", "joined"]


def digest_of(data: bytes) -> str:
    """Return the digest of some bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def joined(*parts: bytes) -> bytes:
    """Join parts, each with its length first, so that no byte can move from one to the next."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)
