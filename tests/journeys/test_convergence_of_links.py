"""Whatever happens to entries, links and patches, a mirror ends with what is listed and linked."""

import json
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.errors import DiscontinuityError, ResourceSyncError
from resourcesync.model.settings import Limit
from tests.support.crashes.killing import killed
from tests.support.worlds.linked_things import put_patch
from tests.support.worlds.loose_source import LooseSource, link
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World

ENTRIES = [f"entry/{number}" for number in range(5)]
ASIDES = [f"aside/{number}" for number in range(4)]
ALL_MAY_GO = Limit(percent=100)


class Life:
    """A Source that lives by chance, and its mirror."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        self.world = World(folder, LooseSource(index=seed % 2 == 0))
        self.links: dict[str, set[str]] = {}
        self.asides: dict[str, bytes] = {}
        self.versions: dict[str, int] = {}
        for name in ASIDES:
            self.change_aside(name)
        for name in ENTRIES[:3]:
            self.put(name)
        self.world.source.publish()

    def change_aside(self, name: str) -> None:
        self.asides[name] = f"{name} {self.random.random()}".encode()
        self.world.network.answers[BASE + name] = Answer(body=self.asides[name])

    def put(self, name: str) -> None:
        version = self.versions[name] = self.versions.get(name, 0) + 1
        linked = set(self.random.sample([*ASIDES, *ENTRIES[:2]], self.random.randrange(4)))
        self.links[name] = linked
        self.world.source.links.put(name, *(self.described(name) for name in sorted(linked)))
        self.world.source.put(name, json.dumps({"version": version, "pad": "x" * 300}))
        if self.random.random() < 0.5:
            right = version if self.random.random() < 0.8 else 7_777
            patch = [{"op": "replace", "path": "/version", "value": right}]
            put_patch(self.world, name, "application/json-patch+json", json.dumps(patch).encode())

    def described(self, name: str) -> str:
        """Return a link that tells nothing of its target: it may change without a word."""
        return link("describedby", BASE + name)

    def list_aside(self, name: str) -> None:
        del self.asides[name], self.world.network.answers[BASE + name]
        self.put(name)

    def remove(self, name: str) -> None:
        self.links.pop(name, None)
        self.world.source.remove(name)

    def live(self) -> None:
        for _ in range(self.random.randrange(1, 4)):
            name = self.random.choice(ENTRIES)
            if name not in ENTRIES[:2] and self.random.random() < 0.4:
                self.remove(name)
            else:
                self.put(name)
        if self.random.random() < 0.1 and self.asides:
            self.list_aside(self.random.choice(sorted(self.asides)))
        self.world.source.publish()
        if self.random.random() < 0.3:
            self.world.source.snapshot()
        if self.random.random() < 0.3:
            self.world.source.rotate()

    def pull(self, **options: Any) -> Any:
        return self.world.pull(
            filters=Filters(links=("describedby",)), max_delete=ALL_MAY_GO, **options
        )

    def pull_badly(self) -> None:
        writes, how = self.random.randrange(20), self.random.randrange(3)
        with suppress(ResourceSyncError), killed(self.world.home, writes, how=how):
            self.pull()

    def expected(self) -> dict[str, bytes]:
        """What is listed, and what that links to and can be had."""
        found = dict(self.world.source.originals.contents())
        for name in self.links:
            for target in self.links[name]:
                if target in self.asides:
                    found[BASE + target] = self.asides[target]
        return found


@pytest.mark.parametrize("seed", range(24))
def test_a_mirror_ends_with_what_is_listed_and_linked(tmp_path: Path, seed: int) -> None:
    life = Life(tmp_path / "mirror", seed)
    for _ in range(6):
        life.live()
        if life.random.random() < 0.4:
            life.pull_badly()
        if life.random.random() < 0.7:
            try:
                report = life.pull(mode=life.random.choice(["auto", "auto", "baseline"]))
            except DiscontinuityError:
                continue  # the next Resource List makes up for it
            assert (report.listed.absent, report.listed.skipped) == (0, 0)
    life.live()
    life.world.source.snapshot()
    assert life.pull().state is MirrorState.IN_SYNC
    assert life.world.files() == life.expected()
    assert life.world.audit().in_sync
