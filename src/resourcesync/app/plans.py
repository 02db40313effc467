"""Plans: what a pull would do, as values that can be counted, read and later carried out."""

import hashlib
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Final, Literal, Self, assert_never

import msgspec

from resourcesync.destination.options import PullMode
from resourcesync.destination.planner import (
    Delete,
    Fetch,
    ListedEntry,
    Retain,
    ReviewedDecision,
)
from resourcesync.destination.reports import Mode
from resourcesync.errors import PlanOutdatedError, StorageError

_IN_MEMORY: Final = 1 << 20
_BLOCK: Final = 1 << 16
_COUNTS: Final = ("create", "update", "delete", "keep", "same")

Decide = Callable[[], Iterator[ReviewedDecision]]


class PlannedAction(msgspec.Struct, frozen=True, kw_only=True):
    """The planned action for one resource.

    Attributes:
        action: ``create`` and ``update`` fetch it; ``delete`` moves the copy to the trash; ``keep``
            leaves a copy that the Source no longer lists, or that no longer matches the filters.
        uri: The resource.
        path: Its place in the mirror.
        length: Bytes according to the lists; for the others, bytes of the local copy.
        reason: Reason of a ``delete`` or ``keep``; empty for the others.
    """

    action: Literal["create", "update", "delete", "keep"]
    uri: str
    path: str
    length: int | None = None
    reason: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(PlannedAction).decode


class Plan:
    """The actions that a pull would do now; `Mirror.apply` does exactly these or nothing.

    Iterate over it for its actions, in the order of their URIs and as often as you like: they are
    in a temporary file, so memory does not grow with them. Unchanged resources are only counted.
    Closing the plan (or a ``with`` block) deletes the file; so does the interpreter when nothing
    refers to the plan any more.

    Attributes:
        folder: The mirror that it is for.
        asked: The ``mode`` that was requested.
        mode: The mode of the run.
        same: Unchanged resources.
        create: Resources to fetch that the mirror does not have.
        update: Resources to fetch that the mirror has and that differ, or may differ.
        delete: Copies to delete, as far as the limit on deletions allows.
        keep: Copies that stay though not listed, or no longer matching the filters.
        size: Bytes to fetch, as far as the lists give lengths.
        unsized: Resources to fetch whose length is not in the lists.
    """

    def __init__(self, folder: Path, asked: PullMode) -> None:
        self.folder = folder
        self.asked: PullMode = asked
        self.mode = Mode.UNCHANGED
        self.same = self.create = self.update = self.delete = self.keep = 0
        self.size = self.unsized = 0
        self._digest = b""
        self._end = 0
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed below
        self._close = weakref.finalize(self, self._file.close)

    def record(self, mode: Mode, decide: Decide, same: int = 0) -> None:
        """Store what was decided (``Review``), in place of earlier decisions.

        Raises:
            StorageError: The disk is full, or the temporary file cannot be written.
        """
        try:
            self._file.seek(0)
            self._file.truncate()
            counts, self._digest = _summarise(decide(), same, self._file.write)
            self._end = self._file.tell()
        except OSError as error:
            raise StorageError(f"cannot store the plan: {error.strerror}") from error
        self.same, self.create, self.update = counts["same"], counts["create"], counts["update"]
        self.delete, self.keep = counts["delete"], counts["keep"]
        self.size, self.unsized = counts["size"], counts["unsized"]
        self.mode = mode if self.create or self.update or self.delete else Mode.UNCHANGED

    def check(self, mode: Mode, decide: Decide, same: int = 0) -> None:
        """Check that the same was decided again (``Review``).

        Raises:
            PlanOutdatedError: The decisions differ.
        """
        del mode
        counts, digest = _summarise(decide(), same, None)
        if digest != self._digest:
            planned = {word: getattr(self, word) for word in _COUNTS}
            raise PlanOutdatedError(
                "the Source or the mirror changed since the plan was made",
                evidence=(
                    ("planned", _phrase(planned)),
                    ("now", _phrase(counts)),
                    ("kept", "nothing was changed"),
                ),
                hint="make a new plan, or pull",
            )

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to do."""
        return not (self.create or self.update or self.delete)

    def __iter__(self) -> Iterator[PlannedAction]:
        at = 0
        self._check_open()
        while at < self._end:
            self._check_open()
            try:
                self._file.seek(at)
                lines = self._file.readlines(_BLOCK)
            except OSError as error:
                raise StorageError(f"the plan cannot be read: {error}") from error
            at += sum(map(len, lines))
            yield from map(_decode, lines)

    def _check_open(self) -> None:
        if not self._close.alive:
            raise StorageError(
                "the plan is closed: only its counts are left", hint="iterate before it is closed"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the temporary file; the counts stay, and the plan can still be applied."""
        self._close()

    def __repr__(self) -> str:
        counts = ", ".join(f"{word}={getattr(self, word)}" for word in _COUNTS)
        return f"<Plan {self.mode.value}: {counts}>"


def _phrase(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{word} {counts[word]}" for word in ("create", "update", "delete"))


def _summarise(
    decisions: Iterator[ReviewedDecision], same: int, write: Callable[[bytes], object] | None
) -> tuple[Counter[str], bytes]:
    """Count decisions and digest what they change; write the actions down if requested."""
    counts: Counter[str] = Counter(same=same)
    digest = hashlib.sha256()
    for decision in decisions:
        action, listed = _action(decision)
        counts[action.action] += 1
        if listed is not None:
            counts["size"] += listed.length or 0
            counts["unsized"] += listed.length is None
        line = _encode(action) + b"\n"
        if write is not None:
            write(line)
        if action.action != "keep":
            digest.update(line)
            if listed is not None:
                digest.update(_encode((listed.hash, listed.lastmod)))
    return counts, digest.digest()


def _action(decision: ReviewedDecision) -> tuple[PlannedAction, ListedEntry | None]:
    match decision:
        case Fetch(row):
            word: Literal["create", "update"] = "create" if decision.creates else "update"
            return PlannedAction(action=word, uri=row.loc, path=row.path, length=row.length), row
        case Delete(copy, reason):
            made = PlannedAction(
                action="delete", uri=copy.uri, path=copy.path, length=copy.length, reason=reason
            )
            return made, None
        case Retain(copy, listed):
            reason = "no longer matches the filters" if listed else "no longer listed"
            listed_copy = PlannedAction(
                action="keep", uri=copy.uri, path=copy.path, length=copy.length, reason=reason
            )
            return listed_copy, None
        case unreachable:
            assert_never(unreachable)
