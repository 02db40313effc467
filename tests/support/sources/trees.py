"""Trees of files, seen as the originals of a Source."""

from datetime import UTC, datetime
from pathlib import Path

from resourcesync.adapters.files import FileSelection, FileTreeOriginals
from tests.support.in_memory import ManualClock

BASE = "https://museum.example/data/"
LATER = datetime(2100, 1, 1, tzinfo=UTC)


def originals(root: Path, selection: FileSelection | None = None) -> FileTreeOriginals:
    return FileTreeOriginals(root, BASE, clock=ManualClock(LATER), selection=selection)


def put(root: Path, *names: str, content: bytes = b"x") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def published(found: FileTreeOriginals) -> list[str]:
    return [original.uri.removeprefix(BASE) for original in found.scan()]


def reasons(found: FileTreeOriginals) -> dict[str, str]:
    list(found.scan())
    return {omission.name: omission.reason for omission in found.omissions()}
