"""Ids, random streams and entropy: the only source of chance.

A stream is named by a path under one seed. Adding a stream therefore does not shift the others.
"""

import random
import secrets
import uuid


class Chance:
    """A tree of random streams.

    Args:
        seed: The root; two runs with the same seed draw the same. ``None`` takes entropy from the
            operating system: ids and tokens of a real lab.
    """

    def __init__(self, seed: int | None) -> None:
        self.seed = seed
        self._ids = None if seed is None else self.stream("ids")
        self._entropy = None if seed is None else self.stream("entropy")

    def stream(self, path: str) -> random.Random:
        """Return the random stream named ``path``."""
        if self.seed is None:
            return random.Random(secrets.token_bytes(32))
        return random.Random(f"{self.seed}/{path}")

    def uuid4(self) -> str:
        """Return a fresh UUID version 4."""
        if self._ids is None:
            return str(uuid.uuid4())
        return str(uuid.UUID(int=self._ids.getrandbits(128), version=4))

    def entropy(self, count: int) -> bytes:
        """Return ``count`` bytes for secrets; from the seed in a seeded run."""
        return (
            secrets.token_bytes(count) if self._entropy is None else self._entropy.randbytes(count)
        )
