"""A pull that moves copies, and its power is cut: clashes of names that come and go."""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.destination.sync_state import MOVING, SyncState
from tests.support.crashes.power_pulling import OWN, Pulling, content, wrong_rows
from tests.support.worlds.world import World

_PAIRS: Final = (
    ("a", "a/b"),
    ("docs/", "docs/index.html"),
    ("v+", "v%2B"),
    ("x/y.txt", "x/y.txt/z"),
    ("deep/a/b", "deep/a/b/c/d"),
)
"""What yields, and what it yields to."""


class Renaming(Pulling):
    def __init__(self, folder: Path, seed: int) -> None:
        luck = random.Random(f"rename {seed}")
        self._where = "mirror"
        self._world = world = World(folder / self._where)
        self._how: dict[str, Any] = luck.choice(
            ({}, {"mode": "baseline"}, {"mode": "baseline", "goes": True})
        )
        goes = self._how.pop("goes", False)
        pairs = luck.sample(_PAIRS, luck.randrange(1, len(_PAIRS) + 1))
        first, later = ([pair[number] for pair in pairs] for number in (0, 1))
        self._fill(luck, ["README", "v1.2/notes.txt", *first])
        if goes:
            self._fill(luck, later)
        world.source.publish()
        world.pull()
        if goes:
            for name in later:
                world.source.remove(name)
            world.source.publish()
            world.pull()
        else:
            self._fill(luck, later)
        self._fill(luck, [name for name in ("README", *first) if luck.random() < 0.3])
        if luck.random() < 0.5:
            world.source.remove("v1.2/notes.txt")
        world.source.publish()
        self._altered: dict[str, bytes | None] = {}
        self._alter(luck)
        self._before = world.home.files_on_disk()
        self._after: dict[str, bytes] = {}
        self._owners = {body: uri for uri, body in world.files().items()}
        self._moment = world.clock.now()
        self._numbers = {}

    def _fill(self, luck: random.Random, names: list[str]) -> None:
        for name in names:
            self._world.source.put(name, f"{name} is here\n".encode() + content(luck, name))

    def _act(self) -> bool:
        is_in_sync = self._heal().state is MirrorState.IN_SYNC
        told = [str(fields["message"]) for fields in self._world.told("warning")]
        return is_in_sync and not any("keeps another name" in message for message in told)

    def _heal(self) -> RunReport:
        return self._world.pull(**self._how)

    def _wrong_files(self, files: Mapping[str, bytes], *, is_done: bool) -> Iterator[str]:
        own = self._world.folder / OWN
        here = set(files.values())
        thrown = {
            path.read_bytes() for name in ("trash", "quarantine") for path in (own / name).glob("*")
        }
        now = self._world.source.originals.contents()
        for path, body in files.items():
            if body not in {*self._before.values(), *self._after.values()}:
                yield f"{path} holds bytes that nobody ever had"
        for path, body in self._before.items():
            newer = None if path in self._altered else now.get(self._owners[body])
            is_ours = path not in self._altered
            if body in here or newer in here:
                continue
            if body not in thrown or (is_ours and newer is not None):
                yield f"what was at {path} is lost"
        if is_done and files != self._after:
            yield "the pull had ended well, and the mirror is not as it was"

    def _wrong_rows(self, state: Any, files: Mapping[str, bytes]) -> Iterator[str]:
        memory = SyncState(state)
        mapping = memory.mapping()
        assert mapping is not None
        if memory.is_note_set(MOVING):  # so a copy is where it was, or where the mapping says
            there = {
                copy.path: mapping.path(copy.uri)
                for copy in state.copies()
                if copy.path not in files and mapping.path(copy.uri) in files
            }
            files = {**files, **{was: files[now] for was, now in there.items()}}
        written = set(self._altered.values())  # it moves with its copy
        altered = {path: body for path, body in files.items() if body in written}
        yield from wrong_rows(state, files, altered)
