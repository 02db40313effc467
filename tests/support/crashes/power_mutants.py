"""Ways to write that do not outlive a power cut: whoever looks for such must find these."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

from resourcesync.adapters.mirror import syncing
from resourcesync.adapters.mirror.installed_copies import FileTreeCopies
from resourcesync.adapters.mirror.open_folders import OpenFolders
from resourcesync.destination.sync_state import MOVING, SyncState
from resourcesync.mirror_state.database import SqliteMirrorState

Patch = tuple[object, str, Any]
"""A thing, the name of a part of it, and what stands in its place."""
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def _synced_only(kind: Callable[[int], bool]) -> Iterator[Patch]:
    real = os.fsync

    def fsync(file: int) -> None:
        if kind(os.fstat(file).st_mode):
            real(file)

    yield os, "fsync", fsync


def _commit_first() -> Iterator[Patch]:
    late: list[int] = []
    commit = SqliteMirrorState.commit

    def put_off(self: Any, *_: object) -> None:
        late.extend(os.dup(self._descriptors.get(folder, self._root)) for folder in self._changed)
        self._changed.clear()

    def commit_first(self: Any, step: Any) -> None:
        commit(self, step)
        while late:
            folder = late.pop()
            os.fsync(folder)
            os.close(folder)

    yield OpenFolders, "sync", put_off
    yield SqliteMirrorState, "commit", commit_first


def _together() -> Iterator[Patch]:
    yield syncing, "SLOW_SECONDS", 0.0
    yield syncing, "PROBED", 1
    yield syncing, "WORTH", 2
    yield syncing, "is_trusted", lambda *_, **__: True
    yield syncing, "MAX_WAITING", 1 << 60


def _lying_whole() -> Iterator[Patch]:
    yield from _together()
    yield syncing, "syncer_of", lambda _: lambda: True


def _in_place() -> Iterator[Patch]:
    def write(
        source: Any, place: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
    ) -> None:
        old = os.open(source, os.O_RDONLY, dir_fd=src_dir_fd)
        body = b""
        while chunk := os.read(old, 1 << 20):
            body += chunk
        os.close(old)
        new = os.open(place, _WRITE, 0o644, dir_fd=dst_dir_fd)
        os.write(new, body)
        os.fsync(new)
        os.close(new)
        with suppress(FileNotFoundError):
            os.unlink(source, dir_fd=src_dir_fd)

    yield os, "rename", write
    yield os, "replace", write


def _moved_first() -> Iterator[Patch]:
    late: list[tuple[Any, dict[str, object]]] = []
    write, move = SyncState.write, FileTreeCopies.move

    def put_off(self: Any, **notes: object) -> None:
        if notes.get(MOVING):
            late.append((self, notes))
        else:
            write(self, **notes)

    def move_first(self: Any, batch: Any) -> Any:
        found = move(self, batch)
        while late:
            memory, notes = late.pop()
            write(memory, **notes)
        return found

    yield SyncState, "write", put_off
    yield FileTreeCopies, "move", move_first


MUTANTS: Final[dict[str, tuple[tuple[str, ...], Callable[[], Iterator[Patch]]]]] = {
    "files are not synced": (("pull", "publish"), lambda: _synced_only(stat.S_ISDIR)),
    "folders are not synced": (("pull", "publish"), lambda: _synced_only(stat.S_ISREG)),
    "the commit comes before the names": (("pull", "rename"), _commit_first),
    "copies move before that is written down": (("rename",), _moved_first),
    "a whole file system is not synced": (("pull",), _lying_whole),
    "files are written in place": (("publish", "pull"), _in_place),
}
"""What is done wrong, in which scenes, and how."""


@contextmanager
def mutated(name: str, *, together: bool) -> Iterator[None]:
    """Write in a wrong way while the block runs, or rightly for no name, by groups or not."""
    patches = MUTANTS[name][1]() if name else _together() if together else ()
    with ExitStack() as undo:
        for thing, part, other in patches:
            undo.callback(setattr, thing, part, getattr(thing, part))
            setattr(thing, part, other)
        yield
