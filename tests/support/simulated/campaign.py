"""A long, hard life of one mirror, step by step, from a list of steps that can be cut down."""

import hashlib
import random
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.errors import ResourceSyncError
from resourcesync.model.settings import Limit
from resourcesync.ports import FetchRequest, Purpose
from resourcesync.source.stored_plan import PublicationStep
from tests.support.crashes.killing import Dying, Fuse, Killed
from tests.support.in_memory import ManualClock
from tests.support.simulated.kept import Kept
from tests.support.simulated.rot import NAMES, Rot, has_exclusions
from tests.support.worlds.folder_home import FolderHome, Workers
from tests.support.worlds.loose_source import LooseSource, Style
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

LIMIT: Final = 3
FOREIGN: Final = "foreign/note.txt"
Move = tuple[str, int]
"""A step of a campaign: what is done, and the seed of everything that it chooses."""
Step = Callable[[random.Random], None]


class Campaign:
    """A life that does every harm to a mirror, and knows what must hold nevertheless."""

    def __init__(
        self,
        folder: Path,
        *,
        style: Style | None,
        max_entries: int,
        workers: Workers | None = None,
        only_caches_lie: bool = False,
    ) -> None:
        source = (
            PublishedSource(max_entries=max_entries)
            if style is None
            else LooseSource(**asdict(style))
        )
        self.world: World[PublishedSource | LooseSource] = World(
            FolderHome(folder, workers), source
        )
        self.style = style
        self.rot = Rot(self.world)
        self.kept = Kept(self.world.home)
        self.versions: dict[str, list[bytes]] = {}
        self.ever: dict[str, set[bytes]] = {}
        self.published: dict[str, bytes] = {}
        self._settled: dict[str, tuple[bytes | None, bytes | None]] = {}
        self._only_caches_lie = only_caches_lie
        self._late = 0
        self._canary = folder.parent / "canary"
        self._canary.mkdir()
        (self._canary / "x.txt").write_text("canary")

    @property
    def source(self) -> PublishedSource | LooseSource:
        return self.world.source

    @property
    def clock(self) -> ManualClock:
        return self.world.clock

    @property
    def folder(self) -> Path:
        return self.world.folder

    def do(self, move: Move, step: Step | None = None) -> None:
        name, seed = move
        step = step or getattr(self, f"do_{name}")
        step(random.Random(seed))
        if not self._has_hashes() and name in ("put", "remove", "clear"):
            self.clock.advance(seconds=2)
            self.publish()  # without a hash nobody can tell bytes that are not listed yet
        self.check()

    def do_put(self, luck: random.Random) -> None:
        name = luck.choice(NAMES)
        old = sorted(self.ever.get(BASE + name, ()))
        again = old and luck.random() < 0.4
        data = luck.choice(old) if again else f"{name} {luck.randrange(10**9)}".encode()
        self.clock.advance(seconds=luck.choice((0, 0.3, 2)) if self._has_hashes() else 2)
        self.source.put(name, data)
        self.ever.setdefault(BASE + name, set()).add(data)

    def do_remove(self, luck: random.Random) -> None:
        self.clock.advance(seconds=luck.choice((0, 1)))
        self.source.remove(luck.choice(NAMES))

    def do_clear(self, luck: random.Random) -> None:
        for name in NAMES:
            if luck.random() < 0.8:
                self.source.remove(name)

    def do_publish(self, luck: random.Random) -> None:
        self.clock.advance(seconds=luck.choice((0.001, 0.4, 3, 600)) if self._has_hashes() else 3)
        self._late = luck.choice((0, 0, 0, 0, 1, 3))
        self.publish()
        self._late = 0

    def do_rotate(self, luck: random.Random) -> None:
        self.clock.advance(seconds=luck.choice((0.001, 0.7, 30)))
        source = self.source
        if not isinstance(source, LooseSource) or (self.style and self.style.is_without_interval):
            return
        source.rotate(after=0)
        if luck.random() < 0.5:
            source.snapshot(after=0)
        self.note_versions()

    def do_snapshot(self, luck: random.Random) -> None:
        self.clock.advance(seconds=luck.choice((0.001, 2)))
        source = self.source
        if isinstance(source, LooseSource):
            source.snapshot(after=0)
        else:
            source.publish(PublicationStep.REBASE)
            self.published = source.contents()
        self.note_versions()

    def do_restart(self, luck: random.Random) -> None:
        source = self.source
        if isinstance(source, PublishedSource):
            source.catalogue = SourceCatalogue()
            for name in list(source.documents.names()):
                if "resourcelist" in name or luck.random() < 0.7:
                    source.documents.delete(name)
        self.do_publish(luck)

    def do_wait(self, luck: random.Random) -> None:
        self.clock.advance(hours=luck.choice((0.5, 1.5, 26)))

    def do_tamper(self, luck: random.Random) -> None:
        name = luck.choice(NAMES)
        path = self.folder / name
        if not self.folder.is_dir() or any(p.is_symlink() for p in path.parents):
            return
        what = luck.choice(("edit", "delete", "link", "folder", "new"))
        if path.is_dir() and not path.is_symlink():
            return
        if what == "new" or path.is_symlink() or path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            self.rot.tampered.add(BASE + name)
            if what == "link":
                path.symlink_to(self._canary / "x.txt")
            elif what in ("edit", "new"):
                path.write_text(f"tampered {luck.random()}")
            elif what == "folder" and luck.random() < 0.3:
                path.mkdir()

    def do_foreign(self, luck: random.Random) -> None:
        (self.folder / "foreign").mkdir(parents=True, exist_ok=True)
        (self.folder / FOREIGN).write_text("not yours")

    def do_rot(self, luck: random.Random) -> None:
        self.rot.forget(luck)

    def do_audit(self, luck: random.Random) -> None:
        self.rot.audit(luck)

    def do_pull(self, luck: random.Random) -> None:
        self.pull_checked(luck)

    def do_baseline(self, luck: random.Random) -> None:
        self.pull_checked(luck, mode="baseline")

    def do_reselect(self, luck: random.Random) -> None:
        self.attempt(luck, filters=Filters(exclude=luck.choice(((), ("h.txt",)))))

    def do_bad_pull(self, luck: random.Random) -> None:
        self._bad_network(luck)
        options = luck.choice(({}, {}, {}, {"mode": "baseline"}, {"fail_fast": True}))
        try:
            self.attempt(luck, **options)
        finally:
            self.world.fetcher.serve = self.world.network.serve

    def do_interrupted_pull(self, luck: random.Random) -> None:
        left = luck.randrange(12)

        def serve(request: FetchRequest) -> Answer | Exception:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return self.world.network.serve(request)

        self.world.fetcher.serve = serve
        try:
            self.attempt(luck, **luck.choice(({}, {}, {"mode": "baseline"})))
        finally:
            self.world.fetcher.serve = self.world.network.serve

    def do_killed_pull(self, luck: random.Random) -> None:
        before = self.source.contents()
        rues = luck.random() < 0.6
        if rues:
            self.change_all(luck, before)
        with self.killed(luck):
            self.attempt(luck, **luck.choice(({}, {}, {"mode": "baseline"})))
        if rues:  # the Source takes everything back that a killed run may have begun with
            for uri in set(self.source.contents()) - set(before):
                self.source.originals.remove(uri)
            for uri, data in before.items():
                self.source.originals.put(uri, data)
            self.clock.advance(seconds=3)
            self.publish()

    def change_all(self, luck: random.Random, before: dict[str, bytes]) -> None:
        for name in luck.sample(NAMES, 5):
            if BASE + name in before and luck.random() < 0.5:
                self.source.remove(name)
            else:
                self.do_put(luck)
        self.clock.advance(seconds=3)
        self.publish()

    def publish(self) -> None:
        source = self.source
        if isinstance(source, LooseSource):
            source.publish(after=0, late=self._late)
        else:
            source.publish()
        self.published = source.contents()
        self.note_versions()

    def note_versions(self) -> None:
        documents = self.source.documents
        self.kept.listed(self.published)
        for name in documents.names():
            opened = documents.open(name)
            assert opened is not None
            body, known = opened.read(), self.versions.setdefault(BASE + name, [])
            if not known or known[-1] != body:
                known.append(body)

    def _has_hashes(self) -> bool:
        return self.style is None or self.style.hashes

    def _bad_network(self, luck: random.Random) -> None:
        rate = luck.choice((0.1, 0.3, 0.6))
        kinds = luck.choice(
            (("old",), ("old", "status"), ("status", "html", "cut"), ("old", "cut", "wrong"))
        )
        lie_once = luck.random() < 0.5

        def serve(request: FetchRequest) -> Answer | Exception:
            honest = self.source.honest(request.uri)
            if self._only_caches_lie and request.uncached:
                return honest
            if luck.random() > rate or (lie_once and request.uncached):
                return honest
            kind = luck.choice(kinds)
            if kind == "status":
                return Answer(status=luck.choice((404, 503, 403, 410, 500)))
            if request.purpose is Purpose.RESOURCE and not self._has_hashes():
                return honest
            return self._lie(luck, kind, request.uri, honest)

        self.world.fetcher.serve = serve

    def _lie(self, luck: random.Random, kind: str, uri: str, honest: Answer) -> Answer:
        if kind == "html":
            return Answer(body=b"<!doctype html><html><body>Sorry</body></html>")
        if kind == "cut":
            return Answer(body=honest.body[: luck.randrange(len(honest.body) + 1)])
        if kind == "wrong":
            return Answer(body=bytes(luck.randbytes(len(honest.body))))
        old = self.versions.get(uri) or sorted(self.ever.get(uri, ())) or [honest.body]
        return Answer(body=luck.choice(old))

    def killed(self, luck: random.Random) -> AbstractContextManager[None]:
        fuse = Fuse(luck.randrange(14), how=luck.randrange(3))
        return self.world.home.behind(partial(Dying, fuse=fuse))

    def attempt(self, luck: random.Random, **options: Any) -> RunReport | None:
        options.setdefault("max_delete", Limit(number=LIMIT))
        has = self.published.keys() & self.source.contents().keys() - self.rot.tampered
        try:
            with self.kept.watched(has):
                report = self.world.pull(**options)
        except (ResourceSyncError, Killed, KeyboardInterrupt):
            return None
        served, asked = self.source.contents(), map(BASE.__add__, self.world.asked_resources())
        self._settled |= {uri: (served.get(uri), self.published.get(uri)) for uri in asked}
        self._check_report(report)
        assert report.deleted <= options["max_delete"].number, (
            "more deletions than one run may make"
        )
        return report

    def pull_checked(self, luck: random.Random, **options: Any) -> None:
        report = self.attempt(luck, **options)
        if options:
            self._forget_mended()
        if report is not None and report.state is MirrorState.IN_SYNC:
            self.assert_in_sync()
            excluded = has_exclusions(self.world) and BASE + "h.txt" in self.published
            assert report.listed.total == len(self.published) - excluded, report

    def assert_in_sync(self) -> None:
        here, there = self._untampered(self.copies()), self._untampered(self.published)
        there |= self._untampered(self._disputed_and_settled())
        if has_exclusions(self.world):
            here.pop(BASE + "h.txt", None)
            there.pop(BASE + "h.txt", None)
        missing = {uri for uri in there if uri not in here}
        extra = {uri for uri in here if uri not in there}
        other = {uri for uri in there if uri in here and here[uri] != there[uri]}
        wrong = f"missing {missing}, extra {extra}, other {other}"
        assert here == there, f"called in sync, but: {wrong}"

    def _disputed_and_settled(self) -> dict[str, bytes]:
        """Return what a pull requested, and the Source served as the Resource List has it.

        A Source that took the listed change back without a word, or will list that, answers so.
        """
        return {
            uri: data
            for uri, (data, listed) in self._settled.items()
            if data and listed == self.published.get(uri, b"") and self._is_baseline(uri, data)
        }

    def _is_baseline(self, uri: str, data: bytes) -> bool:
        if not isinstance(self.source, LooseSource):
            return False
        entries = self.source.lists.documents()["resourcelist.xml"].split("\n")
        digest = hashlib.sha256(data).hexdigest()
        return any(f"<loc>{uri}</loc>" in each and digest in each for each in entries)

    def _untampered(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        return {uri: data for uri, data in files.items() if uri not in self.rot.tampered}

    def copies(self) -> dict[str, bytes]:
        return {BASE + p: d for p, d in self.world.home.files_on_disk().items() if p != FOREIGN}

    def _forget_mended(self) -> None:
        here = self.copies()
        self.rot.tampered = {
            uri
            for uri in self.rot.tampered
            if here.get(uri) != self.published.get(uri)
            or (self.folder / uri.removeprefix(BASE)).is_dir()
            or (self.folder / uri.removeprefix(BASE)).is_symlink()
        }

    def _check_report(self, report: RunReport) -> None:
        broken = report.failed + report.listed.refused + report.held
        if report.state is MirrorState.IN_SYNC:
            assert broken == 0
        assert min(report.failed, report.held, report.deleted) >= 0
        assert (report.listed.absent, report.listed.skipped) == (0, 0), report
        assert (
            min(
                report.listed.unchanged,
                report.listed.applied,
                report.listed.pending,
                report.listed.refused,
            )
            >= 0
        )
        assert report.listed.applied == report.created + report.updated

    def check(self) -> None:
        assert [p.name for p in self._canary.iterdir()] == ["x.txt"]
        assert (self._canary / "x.txt").read_text() == "canary", "a file outside was written"
        assert {p.name for p in self.folder.parent.iterdir()} <= {self.folder.name, "canary"}
        if (self.folder / "foreign").is_dir():
            assert (self.folder / FOREIGN).read_text() == "not yours"
        here = self._untampered(self.copies())
        for uri, data in here.items():
            if uri in self.rot.found and data not in self.ever.get(uri, ()):
                continue
            assert data in self.ever.get(uri, ()), f"{uri} has bytes that it never had"

    def heal(self) -> None:
        self.untamper()
        for _ in range(2):
            self.clock.advance(hours=2.5)
            self.source.put("tick.txt", f"{self.clock.now()}")
            self.ever.setdefault(BASE + "tick.txt", set()).add(f"{self.clock.now()}".encode())
            self.publish()
            self.do_snapshot(random.Random(0))
            self.attempt(random.Random(0), filters=Filters())
        report: RunReport | None = None
        for _ in range(2):
            self.clock.advance(hours=25)
            report = self.attempt(random.Random(0), filters=Filters(), max_delete=Limit(number=99))
        if self.rot.tampered:
            report = self.world.pull(mode="baseline", max_delete=Limit(number=99))
            self.rot.tampered.clear()
        assert report is not None, "the last pull failed"
        self.assert_in_sync()
        assert report.state is MirrorState.IN_SYNC, report

    def untamper(self) -> None:
        for uri in self.rot.tampered:
            path = self.folder / uri.removeprefix(BASE)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.is_symlink() or path.is_file():
                path.unlink()
