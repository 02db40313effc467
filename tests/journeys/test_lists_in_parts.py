"""Resource Lists in parts: one part is written anew, and the index does not show it."""

from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.destination.reports import MirrorState, Mode, RunReport
from resourcesync.destination.sync_state import SyncState
from resourcesync.model.timestamps import format_w3c
from resourcesync.ports import FetchRequest
from tests.support.documents.text import document
from tests.support.documents.written import written
from tests.support.worlds.dump_source import AT, DumpSource, Packed, many, md, zipped
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World

FOLDER = BASE + "resourcesync/"
PARTS = 13


class PartedSource:
    """A Source whose Resource List is an index of parts, each written by a program of its own."""

    entry = LooseSource.entry

    def __init__(self, *, dated: str = "") -> None:
        self.loose = LooseSource()
        self.clock = self.loose.clock
        self.dated = dated
        self.tells_date = True
        self.parts: dict[int, tuple[str, list[str]]] = {}
        for number in range(2 * PARTS):
            self.put(f"{number}.html", f"content of {number}")
        self.loose.publish()
        for part in range(PARTS):
            self.write_part(part)
        self.write_index()

    def put(self, name: str, content: str) -> None:
        self.loose.put(name, content)

    def contents(self) -> dict[str, bytes]:
        return self.loose.contents()

    def write_part(self, part: int, *, after: float = 60) -> None:
        """List anew what belongs to a part; its index stays as it is."""
        self.clock.advance(seconds=after)
        contents = self.contents()
        names = [uri for uri in contents if hash_of(uri) == part]
        entries = [f"<url><loc>{uri}</loc>{self.md(contents[uri])}</url>" for uri in sorted(names)]
        now = format_w3c(self.clock.now())
        self.parts[part] = (now, entries)
        head = f'<rs:md capability="resourcelist" at="{now}"/>'
        self.write(f"part{part}.xml", "urlset", head, entries)

    @staticmethod
    def md(data: bytes) -> str:
        return f'<rs:md length="{len(data)}"/>'

    def write_index(self, *, after: float = 60) -> None:
        self.clock.advance(seconds=after)
        lines = list[str]()
        for part, (moment, _) in self.parts.items():
            lastmod = f"<lastmod>{moment}</lastmod>" if self.dated == "lastmod" else ""
            at = f'<rs:md capability="resourcelist" at="{moment}"/>' if self.dated == "at" else ""
            loc = f"<loc>{FOLDER}part{part}.xml</loc>"
            lines.append(f"<sitemap>{loc}{lastmod}{at}</sitemap>")
        at = min(moment for moment, _ in self.parts.values())
        head = f'<rs:md capability="resourcelist" at="{at}"/>'
        self.write("resourcelist.xml", "sitemapindex", head, lines)

    def write(self, name: str, tag: str, head: str, lines: list[str]) -> None:
        text = written(head, lines, tag)
        self.loose.documents.write(f"resourcesync/{name}", [text.encode()])

    def honest(self, uri: str) -> Answer:
        answer = self.loose.honest(uri)
        if self.tells_date:
            answer.headers["date"] = format_datetime(self.clock.now(), usegmt=True)
        return answer

    def serve(self, request: FetchRequest) -> Answer:
        return self.honest(request.uri)


InParts = World[PartedSource]


def later(world: InParts, **options: Any) -> RunReport:
    """Pull an hour later."""
    world.clock.advance(seconds=3_600)
    return world.pull(**options)


def hash_of(uri: str) -> int:
    return int(uri.removeprefix(BASE).removesuffix(".html")) % PARTS


@pytest.fixture
def world(tmp_path: Path) -> InParts:
    return in_parts(tmp_path)


def in_parts(folder: Path, *, dated: str = "") -> InParts:
    world = World(folder / "mirror", PartedSource(dated=dated))
    assert later(world).state is MirrorState.IN_SYNC
    return world


def test_a_date_of_a_part_proves_nothing_within_its_second(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", PartedSource(dated="lastmod"))
    world.source.write_part(3)
    world.source.write_index(after=0)
    world.pull()
    world.source.put("3.html", "changed, and longer")
    world.source.write_part(3, after=0)
    world.network.answers[FOLDER + "part3.xml"] = Answer(status=503)
    later(world)
    world.network.answers.clear()

    assert later(world).state is MirrorState.IN_SYNC

    assert world.in_sync()
    later(world)
    assert world.fetcher.requests == 3


def test_a_part_of_a_time_to_come_is_read_when_that_is_near(world: InParts) -> None:
    world.source.put("3.html", "changed, and longer")
    now = world.clock.now()
    world.source.write_part(3, after=2 * 86_400)
    world.clock.set(now)

    assert later(world).mode is Mode.UNCHANGED
    world.clock.advance(seconds=86_400)
    later(world)

    assert world.in_sync()


def test_by_a_part_that_is_older_than_its_index_says_no_mirror_is_in_sync(tmp_path: Path) -> None:
    world = in_parts(tmp_path, dated="at")
    old = world.source.honest(FOLDER + "part3.xml").body
    world.source.put(f"{PARTS + PARTS + 3}.html", "created")
    world.source.write_part(3)
    world.source.write_index()
    world.network.answers[FOLDER + "part3.xml"] = Answer(body=old)

    for _ in range(2):
        report = later(world)
        assert (report.state, report.deleted) == (MirrorState.BEHIND, 0)
        assert world.told("warning")[-1]["code"] == "old-part"
        assert not world.audit().in_sync
        with MirrorFolder(world.folder, world.clock) as mirror:
            assert mirror.state is not None
            assert SyncState(mirror.state).cursor.is_baseline_due
    world.network.answers.clear()

    report = later(world)
    assert (report.state, report.mode, report.created) == (MirrorState.IN_SYNC, Mode.BASELINE, 1)
    assert world.in_sync()


def test_one_dump_of_an_index_that_stands_for_the_list_is_asked_for_as_well(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "mirror", DumpSource())
    told = many(20)
    world.source.has_only(told)
    dumps = {"dump0.xml": told[:10], "dump1.xml": told[10:]}

    def write(name: str, at: str) -> None:
        package = Packed(name=f"{name}-{at}.zip", body=zipped(dumps[name], at=at))
        world.source.say(package.name, package.body)
        world.source.say(name, document(package.row(), md=md("resourcedump", at=at)))

    for name in dumps:
        write(name, AT)
    parts = [f"<sitemap><loc>{BASE}{name}</loc></sitemap>" for name in dumps]
    index = document(*parts, root="sitemapindex", md=md("resourcedump", at=AT))
    world.source.offer("resourcedump", index)
    world.source.list_changes([])
    world.pull()
    world.clock.advance(hours=48)
    assert world.pull().mode is Mode.UNCHANGED
    dumps["dump1.xml"] = [told[10].wrong(data=b"another content"), *told[11:]]
    world.source.resources[BASE + told[10].name] = b"another content"
    write("dump1.xml", "2026-01-01T12:00:00Z")

    world.pull()

    assert world.in_sync()
    assert world.pull().mode is Mode.UNCHANGED
