"""A pull whose power is cut: what is done, and what must hold afterwards."""

import hashlib
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.errors import ResourceSyncError
from resourcesync.mirror_state.database import SqliteMirrorState
from tests.support.crashes.crash_states import State
from tests.support.crashes.renumbered import Numbers, both, numbered
from tests.support.worlds.network import BASE as SOURCE
from tests.support.worlds.world import World

OWN: Final = ".resourcesync/"


def content(luck: random.Random, name: str) -> bytes:
    return f"{name} {luck.random()}\n".encode() * luck.choice((0, 1, 1, 3, 90, 300))


class Pulling:
    """A pull: the first one, or one that has files to add, to replace and to delete."""

    def __init__(self, folder: Path, seed: int) -> None:
        luck = random.Random(f"pull {seed}")
        self._where = luck.choice(("mirror", "mirror", "new/place/mirror"))
        self._world = world = World(folder / self._where)
        names = [f"{luck.choice('abc')}/{number}.txt" for number in range(luck.choice((2, 5, 9)))]
        for name in names:
            world.source.put(name, content(luck, name))
        world.source.publish()
        self._before: dict[str, bytes] = {}
        self._altered: dict[str, bytes | None] = {}
        self._is_first = luck.random() < 0.3
        if not self._is_first:
            world.pull()
            self._change(luck, names)
            world.source.publish()
            self._alter(luck)
            self._before = world.home.files_on_disk()
        self._after: dict[str, bytes] = {}
        self._moment = world.clock.now()
        self._numbers: Numbers = {}

    def _change(self, luck: random.Random, names: list[str]) -> None:
        for name in names:
            what = luck.random()
            if what < 0.2:
                self._world.source.remove(name)
            elif what < 0.6:
                self._world.source.put(name, content(luck, name))
        for number in range(luck.randrange(4)):
            name = f"{luck.choice(('a', 'new', 'new/deep'))}/n{number}.txt"
            self._world.source.put(name, content(luck, name))

    def _alter(self, luck: random.Random) -> None:
        now = self._world.source.originals.contents()
        for path, body in sorted(self._world.home.files_on_disk().items()):
            if now.get(SOURCE + path, body) != body and luck.random() < 0.3:
                self._alter_one(path, luck)

    def _alter_one(self, path: str, luck: random.Random) -> None:
        self._altered[path] = other = f"altered {luck.random()}".encode()
        (self._world.folder / path).write_bytes(other)

    def do(self) -> None:
        with numbered(self._numbers):
            assert self._act()
        self._after = self._world.home.files_on_disk()

    def _act(self) -> bool:
        return self._world.pull().state is MirrorState.IN_SYNC

    def _heal(self) -> RunReport:
        return self._world.pull()

    def set_before(self) -> None:
        self._world.clock.set(self._moment)

    def set_after(self) -> None:
        self._world.clock.set(self._moment)

    def attempt(self, folder: Path, numbers: Numbers) -> bool:
        self._world.home.folder = folder / self._where
        self._world.home.before = lambda port: port
        with numbered(both(numbers, self._numbers)):
            return self._act()

    def begin_again(self, numbers: Numbers) -> None:
        """Take note of which file was which: the power was cut, and it is done anew."""
        self._numbers = numbers

    def seen(self, state: State) -> None:
        """Take note of what everybody could see before the power was cut."""

    def wrong(self, folder: Path, numbers: Numbers, *, is_done: bool) -> Iterator[str]:
        self._world.home.folder = folder / self._where
        files = self._world.home.files_on_disk()
        told: list[str] = []
        yield from self._wrong_files(files, is_done=is_done)

        def wake(port: Any) -> Any:
            if isinstance(port, SqliteMirrorState):
                self._world.home.before = lambda port: (
                    port
                )  # later it tells of what was done by then
                told.extend(self._wrong_rows(port, files))
            return port

        self._world.home.before = wake
        try:
            with numbered(both(numbers, self._numbers)):
                report = self._heal()
        except ResourceSyncError as error:
            yield f"the next pull ended with: {error}"
            return
        yield from told
        if report.state is not MirrorState.IN_SYNC:
            yield f"the next pull left the mirror {report.state}"
        if self._world.home.files_on_disk() != self._after:
            yield "the next pull did not make the mirror equal"
        if list((self._world.folder / OWN / "tmp").iterdir()):
            yield "the next pull left temporary files"

    def end(self) -> object:
        return None

    def wrong_for_readers(self, end: object) -> Iterator[str]:
        """Yield what is wrong for who had read until now, when the next run leads to this end."""
        return iter(())

    def _wrong_files(self, files: Mapping[str, bytes], *, is_done: bool) -> Iterator[str]:
        for path, body in files.items():
            if body not in (self._before.get(path), self._after.get(path)):
                yield f"{path} holds bytes that it never had"
        thrown = [
            path.read_bytes()
            for name in ("trash", "quarantine")
            for path in (self._world.folder / OWN / name).glob("*")
        ]
        for path, body in self._before.items():
            is_ours = path not in self._altered  # what is not goes to the quarantine first
            if path not in files and ((is_ours and path in self._after) or body not in thrown):
                yield f"{path} is lost"
            if not is_ours and body != files.get(path) and body not in thrown:
                yield f"what was written here to {path} is lost"
        if is_done and files != self._after:
            yield "the pull had ended well, and the mirror is not as it was"

    def _wrong_rows(self, state: SqliteMirrorState, files: Mapping[str, bytes]) -> Iterator[str]:
        return wrong_rows(state, files, self._altered)


def wrong_rows(
    state: SqliteMirrorState, files: Mapping[str, bytes], altered: Mapping[str, bytes | None]
) -> Iterator[str]:
    for copy in state.copies():
        if copy.is_unknown or copy.is_suspect or not copy.digests:
            continue  # it is not called right
        body = files.get(copy.path)
        if copy.path in altered and body == altered[copy.path]:
            continue
        if body is None:
            yield f"{copy.path} is known and is not there"
        elif f"sha-256:{hashlib.sha256(body).hexdigest()}" not in copy.digests.split():
            yield f"{copy.path} is known with other bytes"
