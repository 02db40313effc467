"""What changed in a mirror, for the next program."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from resourcesync.destination import changelog
from resourcesync.destination.changelog import ChangeLogReader
from resourcesync.errors import ConfigurationError
from resourcesync.model.digests import Digest, parse_digests
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.ports.changes import LoggedChange, MirrorChangeKind
from resourcesync.wiring import mirrors
from resourcesync.wiring.mirrors import OpenChanges

Since = int | datetime
"""A change's ``number``, or an aware moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorChange:
    """One change of a mirror's content.

    Attributes:
        number: Its number; a later change has a greater one. What a consumer is told of the first
            time has the number of the newest change.
        time: When it was done here, UTC.
        kind: What became of the copy.
        uri: The resource.
        path: Its file; gone when it was deleted.
        length: Bytes; of what was deleted, if it was.
        digests: Digests of the bytes now; none when they were deleted.
        previous: Digests of the bytes before; none when there were none, or nobody knows.
    """

    number: int
    time: datetime
    kind: MirrorChangeKind
    uri: str
    path: Path
    length: int
    digests: tuple[Digest, ...]
    previous: tuple[Digest, ...]


def read_changes(
    folder: Path, *, consumer: str | None, since: Since | None, touched: bool, restart: bool
) -> Iterator[MirrorChange]:
    """Yield the changes of a mirror; see ``Mirror.changes``."""
    with mirrors.open_changes(folder) as opened:
        before: int | None
        if consumer is None:
            before = _start(opened, since)
        else:
            before = None if restart else opened.consumers.cursor(consumer)
        anew = "restart=True" if consumer else "without since"
        reader = ChangeLogReader(
            state=opened.state, cursor=before, include_touched=touched, restart_hint=anew
        )
        for row in reader.read_new():
            yield _change(folder, row)
        if consumer is not None and reader.cursor is not None and reader.cursor != before:
            opened.consumers.acknowledge(consumer, reader.cursor)


def _start(opened: OpenChanges, since: Since | None) -> int:
    if since is None:
        return changelog.oldest_cursor(opened.state)
    if not isinstance(since, datetime):
        return since
    if since.tzinfo is None:
        raise ConfigurationError("since has no time zone", hint="since=datetime(…, tzinfo=UTC)")
    return changelog.cursor_at(opened.state, to_microseconds(since))


def _change(folder: Path, row: LoggedChange) -> MirrorChange:
    return MirrorChange(
        number=row.seq,
        time=from_microseconds(row.time),
        kind=MirrorChangeKind(row.kind),
        uri=row.uri,
        path=folder / row.path,
        length=row.length,
        digests=parse_digests(row.digests),
        previous=parse_digests(row.previous),
    )
