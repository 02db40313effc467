"""Dumps on bad days: killed in the middle, broken off, a full disk; and over real sockets."""

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.app import mirror_opening
from resourcesync.app.mirror_home import Home
from resourcesync.destination.destination import Destination
from resourcesync.destination.options import Dependencies, PullOptions
from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.errors import DiskFullError, StoppedError
from resourcesync.ports import CancelToken
from resourcesync.settings.mirror import Network
from tests.support.commands.run import files_of
from tests.support.crashes.killing import Dying, Fuse, Killed
from tests.support.documents.text import document
from tests.support.documents.written import sha256
from tests.support.servers.hostile_server import CLOSE, HostileServer
from tests.support.sources.scripted_source import cut_at, serve
from tests.support.worlds.dump_source import AT, DumpSource, Packed, Told, many, md, rows, zipped
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World

RESOURCES = 270  # more than one group
PACKAGE = "/d.zip"


@pytest.fixture
def world(tmp_path: Path) -> World[DumpSource]:
    world = World(tmp_path / "mirror", DumpSource())
    told = many(RESOURCES)
    world.source.publish(told)
    world.source.dump(Packed(name="d.zip", body=zipped(told)))
    return world


def here(world: World[DumpSource]) -> set[str]:
    with MirrorFolder(world.folder, world.clock) as mirror:
        assert mirror.state is not None
        return {copy.uri for copy in mirror.state.copies() if copy.length >= 0}


class Slow(Dying):
    """Takes a third of a second for each copy, so that a group has three."""

    def __init__(self, real: Any, fuse: Fuse, world: World[DumpSource]) -> None:
        super().__init__(real, fuse)
        self._world = world

    def stage(self, algorithms: Any, of: str = "") -> Any:
        self._world.clock.advance(seconds=0.34)
        return self._real.stage(algorithms, of)


@pytest.mark.parametrize("how", [0, 1, 2], ids=["before", "after", "within"])
def test_killed_at_any_write_the_next_run_goes_on_and_fetches_nothing_twice(
    tmp_path: Path, how: int
) -> None:
    told = many(12)
    kills = how
    while True:
        world = World(tmp_path / f"mirror{kills}", DumpSource())
        world.source.publish(told)
        world.source.dump(Packed(name="d.zip", body=zipped(told)))
        fuse = Fuse(kills, how=how)
        with world.home.behind(partial(Slow, fuse=fuse, world=world)), suppress(Killed):
            world.pull(dumps="always")
        if not fuse.is_burnt:
            break
        done = here(world)

        report = world.pull(dumps="always")

        assert report.state is MirrorState.IN_SYNC
        assert world.in_sync()
        assert report.created + report.updated == len(told) - len(done)
        assert not any(name.startswith("r/") for name in world.asked())
        assert len(done) < len(told) or "d.zip" not in world.asked()
        assert not list((world.folder / ".resourcesync/quarantine").iterdir())
        kills += 2
    assert kills > 15


def test_a_disk_that_fills_up_in_the_middle_keeps_what_was_complete(
    world: World[DumpSource],
) -> None:
    class Filling(Dying):
        groups = 0

        def install(self, batch: Any) -> Any:
            Filling.groups += bool(batch)
            if Filling.groups > 1:
                return [DiskFullError("no space left") for _ in batch]
            return super().install(batch)

    full = partial(Filling, fuse=Fuse(1000, how=0))
    with world.home.behind(full), pytest.raises(DiskFullError):
        world.pull()
    assert len(here(world)) == 256
    assert not list((world.folder / ".resourcesync/tmp").iterdir())

    report = world.pull()
    assert report.created + report.updated == RESOURCES - 256
    assert world.in_sync()


def test_no_room_for_a_member_ends_the_run_and_leaves_nothing_behind(
    world: World[DumpSource],
) -> None:
    class Full(Dying):
        """Room for so many copies; the next one does not fit."""

        room = 20

        def stage(self, algorithms: Any, of: str = "") -> Any:
            Full.room -= 1
            staged = self._real.stage(algorithms, of)
            return staged if Full.room > 0 else NoRoom(staged)

    class NoRoom:
        def __init__(self, real: Any) -> None:
            self._real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def write(self, chunk: bytes) -> None:
            self._real.write(chunk[:1])
            raise DiskFullError("no space left")

    full = partial(Full, fuse=Fuse(1000, how=0))
    with world.home.behind(full), pytest.raises(DiskFullError):
        world.pull()

    assert len(here(world)) == 18  # the package itself was the first
    assert not list((world.folder / ".resourcesync/tmp").iterdir())
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_pull_that_is_cancelled_ends_before_the_next_member_of_a_package(
    world: World[DumpSource],
) -> None:
    body = world.source.served[f"{BASE}d.zip"].body
    with world.dependencies() as dependencies:

        def cancelling(_: object) -> Answer:
            dependencies.cancel.cancel()
            return Answer(body=body)

        world.network.answers[f"{BASE}d.zip"] = cancelling
        with pytest.raises(StoppedError):
            Destination(dependencies).pull(PullOptions(dumps="always"))
    assert world.files() == {}


class Served:
    """A Source on raw sockets, and a mirror of it."""

    def __init__(self, server: HostileServer, folder: Path, told: list[Told], body: bytes) -> None:
        self.server = server
        self.folder = folder
        self.body = body
        self._told = told
        base = f"{server.origin}/"
        package = Packed(name=PACKAGE[1:], body=body, hash=sha256(body), base=base)
        up = f'<rs:ln rel="up" href="{base}capabilities.xml"/>'
        self._say("/list.xml", document(up, *rows(*told), md=md("resourcelist", at=AT)))
        self._say("/dump.xml", document(up, package.row(), md=md("resourcedump", at=AT)))
        lists = {"list.xml": "resourcelist", "dump.xml": "resourcedump"}
        entries = (
            f'<url><loc>{base}{name}</loc><rs:md capability="{of}"/></url>'
            for name, of in lists.items()
        )
        self._say("/capabilities.xml", document(*entries, md=md("capabilitylist")))
        for item in told:
            self.server.on(f"/{item.name}", serve(item.data))
        self.server.on(PACKAGE, serve(body))

    def _say(self, target: str, body: bytes) -> None:
        self.server.on(target, serve(body))

    def pull(self, before: Callable[[Any], Any] = lambda port: port) -> RunReport:
        self.server.asked.clear()
        uri = f"{self.server.origin}/list.xml"

        def destination_of(equipment: Dependencies) -> Destination:
            return Destination(structs.replace(equipment, copies=before(equipment.copies)))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mirror_opening, "Destination", destination_of)
            with mirror_opening.open_destination(
                Home(self.folder),
                source=uri,
                network=Network(retries=0, timeout=5.0),
                report=lambda event, fields: None,
                cancel=CancelToken(SystemClock()),
            ) as destination:
                return destination.pull(PullOptions())

    def singly(self) -> int:
        return sum(target.startswith("/r/") for target in self.server.targets())

    def ranges(self) -> list[str | None]:
        return [asked.fields.get("range") for asked in self.server.asked if asked.target == PACKAGE]

    def is_here(self) -> bool:
        found = files_of(self.folder).values()
        return sorted(found) == sorted(told.data for told in self._told)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with HostileServer() as server:
        luck = random.Random(7)
        told = [
            Told(name=f"r/{n:04}", data=luck.randbytes(8_000), base=f"{server.origin}/")
            for n in range(400)
        ]
        yield Served(server, tmp_path / "mirror", told, zipped(told))


@pytest.mark.parametrize("is_same", [True, False])
def test_a_package_that_broke_off_is_continued_by_the_next_run_unless_it_is_another_one(
    served: Served, *, is_same: bool
) -> None:
    half = len(served.body) // 2
    before = served.body if is_same else b"x" * len(served.body)
    served.server.on(PACKAGE, cut_at(half, before, '"v1"' if is_same else '"old"', CLOSE))
    for n in range(400):
        served.server.on(f"/r/{n:04}", [b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"])
    assert served.pull().state is MirrorState.BEHIND

    served.server.on(PACKAGE, serve(served.body, '"v1"'))
    report = served.pull()

    assert served.ranges()[0] == f"bytes={half}-"
    assert report.state is MirrorState.IN_SYNC
    assert served.singly() == 0
    assert served.is_here()


@pytest.mark.parametrize("error", [Killed, StoppedError], ids=["killed", "stopped"])
def test_ended_between_two_entries_the_package_is_not_fetched_again(
    served: Served, error: Callable[[str], BaseException]
) -> None:
    class Ends(Dying):
        groups = 0

        def install(self, batch: Any) -> Any:
            Ends.groups += 1
            if Ends.groups > 1:
                raise error("in the middle")
            return super().install(batch)

    with pytest.raises((Killed, StoppedError)):
        served.pull(lambda port: Ends(port, Fuse(1000, how=0)))

    report = served.pull()

    assert report.state is MirrorState.IN_SYNC
    assert 0 < report.created + report.updated < 400
    assert served.ranges() == []
    assert served.singly() == 0
    assert served.is_here()
    assert not list((served.folder / ".resourcesync/tmp").iterdir())
