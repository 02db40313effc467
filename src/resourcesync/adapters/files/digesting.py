"""Digests of an open file's bytes, all computed while they are read once."""

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from resourcesync.errors import ConfigurationError
from resourcesync.model.digests import ALGORITHMS, Digest

_CHUNK: Final = 262_144
_digest: Final[Callable[[tuple[str, str]], Digest]] = partial(tuple.__new__, Digest)


class Digester:
    """Reads files and computes their digests.

    Args:
        algorithms: Which, the strongest first; at least one.

    Raises:
        ConfigurationError: One of them cannot be published.
    """

    def __init__(self, algorithms: Sequence[str]) -> None:
        self._hashes = tuple((name, _hash_constructor(name)) for name in algorithms or ("",))
        self._first, self._start = self._hashes[0]
        self._is_alone = len(self._hashes) == 1

    def read(self, descriptor: int, size: int) -> tuple[int, tuple[Digest, ...]]:
        """Read a file of ``size`` bytes to its end; return the bytes read and their digests.

        A file that has grown meanwhile is not followed: it is enough to notice that it did.
        """
        chunk = os.read(descriptor, min(size + 1, _CHUNK))
        length = len(chunk)
        if self._is_alone and length >= size:  # nearly every file
            return length, (_digest((self._first, self._start(chunk).hexdigest())),)
        hashes = [(name, new(chunk)) for name, new in self._hashes]
        while chunk and length < size:
            chunk = os.read(descriptor, _CHUNK)
            length += len(chunk)
            for _, running in hashes:
                running.update(chunk)
        return length, tuple([Digest(name, running.hexdigest()) for name, running in hashes])


def _hash_constructor(algorithm: str) -> Callable[[bytes], Any]:
    """Return what starts a running digest; its own type is private to ``hashlib``."""
    if algorithm not in ALGORITHMS:
        raise ConfigurationError(
            f"{algorithm!r} is not a hash algorithm that can be published",
            evidence=(("known", ", ".join(ALGORITHMS)),),
        )
    return partial(getattr(hashlib, algorithm.replace("-", "")), usedforsecurity=False)
