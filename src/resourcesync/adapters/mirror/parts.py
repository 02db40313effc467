"""Large copies that broke off: kept beside the mirror for the next run, with what they are of.

A part is a temporary file with a note beside it. Whatever else lies there is what a killed run
left, and is removed. Nothing here is synced: after a power cut a part may hold wrong bytes. It is
kept only for what a strong digest of the whole will prove.
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from resourcesync.adapters.mirror.staged import MIN_SAVED_BYTES, is_regular

MAX_PARTS: Final = 64
MAX_PART_BYTES: Final = 16 << 30

PART_NOTE: Final = ".part"
"""The end of the name of the note beside a part."""

_LONGEST_VALIDATOR: Final = 1024
_LARGEST_NOTE: Final = 32 * 1024
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOTE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class SavedPart:
    """A part that a run left.

    Attributes:
        name: Its file in the folder of temporary files.
        validator: What tells the server which body it is the beginning of.
        length: Bytes.
        written: When it was last written, seconds since 1970.
    """

    name: str
    validator: str
    length: int
    written: float


class Parts:
    """The parts in a folder of temporary files, at most 64 of them and 16 GiB.

    Args:
        folder: Descriptor of the folder; it stays the caller's.
    """

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._saved: dict[str, SavedPart] = {}
        self._noted: set[str] = set()

    def clear(self, oldest: float) -> None:
        """Remove all temporary files but the parts that were written since ``oldest``."""
        found: list[tuple[str, SavedPart]] = []
        with os.scandir(self._folder) as entries:
            names = {entry.name for entry in entries}
        for name in names:
            part = self._read(name) if name.endswith(PART_NOTE) else None
            if part is not None and part[1].written >= oldest:
                found.append(part)
        self._saved = self._choose(found)
        good = {part.name for part in self._saved.values()}
        for name in names:
            if name.removesuffix(PART_NOTE) not in good:
                self._unlink(name)
        self._noted = good

    def _choose(self, found: list[tuple[str, SavedPart]]) -> dict[str, SavedPart]:
        """Return the newest parts that there is room for, by what they are of."""
        chosen: dict[str, SavedPart] = {}
        room = MAX_PART_BYTES
        for of, part in sorted(found, key=lambda pair: pair[1].written, reverse=True):
            if of not in chosen and part.length <= room and len(chosen) < MAX_PARTS:
                chosen[of] = part
                room -= part.length
        return chosen

    def _read(self, note: str) -> tuple[str, SavedPart] | None:
        try:
            file = os.open(note, _READ_FLAGS, dir_fd=self._folder)
            try:
                if not is_regular(os.fstat(file)):
                    return None
                text = os.read(file, _LARGEST_NOTE)
            finally:
                os.close(file)
            told = json.loads(text)
            name = note.removesuffix(PART_NOTE)
            info = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
            of, validator = told["of"], told["validator"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        if not (isinstance(of, str) and isinstance(validator, str) and is_regular(info)):
            return None
        if info.st_size < MIN_SAVED_BYTES or not is_validator(validator):
            return None
        return of, SavedPart(name, validator, info.st_size, info.st_mtime)

    def take(self, of: str) -> SavedPart | None:
        """Return the part of something, which is the caller's from now on; ``None`` for none."""
        return self._saved.pop(of, None)

    def note(self, name: str, of: str, validator: str) -> bool:
        """Write down what a temporary file is the beginning of; whether that was done."""
        if len(self._noted) >= MAX_PARTS or not is_validator(validator):
            return False
        text = json.dumps({"of": of, "validator": validator}).encode()
        if len(text) >= _LARGEST_NOTE:
            return False
        try:
            file = os.open(f"{name}{PART_NOTE}", _NOTE_FLAGS, 0o600, dir_fd=self._folder)
            with os.fdopen(file, "wb") as stream:
                stream.write(text)
        except OSError:
            self.forget(name)
            return False  # the copy goes on all the same
        self._noted.add(name)
        return True

    def forget(self, name: str) -> None:
        """Forget what a temporary file is the beginning of."""
        self._noted.discard(name)
        self._unlink(f"{name}{PART_NOTE}")

    def _unlink(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(name, dir_fd=self._folder)


def is_validator(text: str) -> bool:
    """Whether a text can be sent as a validator."""
    return 0 < len(text) <= _LONGEST_VALIDATOR and text.isascii() and text.isprintable()
