"""A disk that was laid out anew: each file keeps the inode number that it had."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from resourcesync.adapters.mirror import installed_copies as copies
from resourcesync.adapters.mirror import open_folders, staging

Numbers = Mapping[int, int]
"""The inode number that a file had before the power cut, by the one it has now."""


@contextmanager
def numbered(numbers: Numbers) -> Iterator[None]:
    real = open_folders.signature_of

    def signature_of(info: Any) -> str:
        return signature(real(info), numbers)

    modules: tuple[Any, ...] = (staging, copies, open_folders)
    for module in modules:
        module.signature_of = signature_of
    try:
        yield
    finally:
        for module in modules:
            module.signature_of = real


def signature(found: str, numbers: Numbers) -> str:
    stem, _, number = found.rpartition(":")
    return f"{stem}:{numbers.get(int(number), number)}"


def both(now: Numbers, before: Numbers) -> Numbers:
    return {number: before.get(known, known) for number, known in now.items()}
