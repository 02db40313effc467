"""Lives of mirrors whose Source writes its lists as foreign software does.

Lists begin again within a second, get shorter, lose deletions, have the newest change first or each
resource once; only the Resource List is written again; a cache has an old copy of any list. The
Source moves behind TLS or to another host, and pulls are killed. After each pull a mirror that says
"in sync" must be so.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from email.utils import format_datetime
from functools import partial
from pathlib import Path
from typing import Final

from resourcesync.destination.planner import DeletionLimit
from resourcesync.destination.reports import MirrorState
from resourcesync.errors import SourceError, SyncError
from resourcesync.model.timestamps import to_microseconds
from tests.support.crashes.killing import Dying, Fuse, Killed
from tests.support.worlds.loose_source import LooseSource, Style
from tests.support.worlds.loose_world import LooseWorld
from tests.support.worlds.memory_fetcher import Answer
from tests.support.worlds.moving import MovingLife, live
from tests.support.worlds.world import BASE

STEPS: Final = 25
_FROM: Final = re.compile(r' from="[^"]*"')
_TIME: Final = re.compile(r'<lastmod>([^<]*)|datetime="([^"]*)')
_LOC: Final = re.compile(r"<loc>[^<]*</loc>")
_ELSEWHERE: Final = "http://elsewhere.example/"
_NAMES: Final = tuple(f"{number}.html" for number in range(12))
_HOT: Final = "hot.html"
_LISTS: Final = ("changelist.xml", "resourcelist.xml")


def _moved(text: str) -> str:
    """Return a list every second entry of which is of another host."""
    count = iter(range(len(text)))
    return _LOC.sub(
        lambda match: match[0] if next(count) % 2 else match[0].replace(BASE, _ELSEWHERE), text
    )


def _time_of(entry: str) -> str:
    found = _TIME.search(entry)
    return "" if found is None else found[1] or found[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How a Source writes its lists.

    Attributes:
        style: What its entries and lists tell.
        begins: Whether a Change List says when it begins.
        newest_first: Whether the newest change comes first.
        once: Whether each resource is listed once, by its last change.
        forgets: Whether a resource that is gone is not listed any more, nor its deletion.
        live: Whether the Resource List is always of this moment.
        dates: Whether its server tells versions by ``Last-Modified`` alone, in whole seconds.
    """

    style: Style
    begins: bool = True
    newest_first: bool = False
    once: bool = False
    forgets: bool = False
    live: bool = False
    dates: bool = False


def habits_of(luck: random.Random) -> Habits:
    """Return the habits of one Source."""
    index = luck.random() < 0.3
    forgets = luck.random() < 0.25
    newest_first = luck.random() < 0.25
    return Habits(
        style=Style(
            index=index,
            times=luck.random() < 0.8,
            lastmods=luck.random() < 0.7,
            announces=luck.random() < 0.7,
            keep=luck.choice((0, 1, 3)),
        ),
        begins=index or luck.random() < 0.7,
        newest_first=newest_first,
        once=newest_first or luck.random() < 0.25,
        forgets=forgets,
        live=forgets or luck.random() < 0.2,
        dates=luck.random() < 0.3,
    )


class ForeignLife(MovingLife, LooseWorld):
    """One mirror and its Source.

    Args:
        folder: Where the mirror goes.
        habits: How the Source writes its lists.
        luck: What happens.
    """

    entry = "resourcesync/capabilitylist.xml"

    def __init__(self, folder: Path, habits: Habits, luck: random.Random) -> None:
        super().__init__(folder)
        self.source = LooseSource(f"{BASE}resourcesync/", habits.style)
        self.habits = habits
        self.luck = luck
        self.cached: dict[str, bytes] = {}
        self.written: dict[str, tuple[bytes, str]] = {}
        self.is_refusing = False
        self.log: list[str] = []
        for name in (*_NAMES[:8], _HOT):
            self.put(name, f"first {name}")
        self.listed(60)
        self.pull_checked()

    # --- the Source ---

    def listed(self, seconds: float, *, begin_again: bool = False, snapshot: bool = False) -> None:
        """List what changed, some seconds later."""
        self.clock.advance(seconds=seconds)
        now = to_microseconds(self.clock.now())
        entries = [] if not self.source.lists else self.source.open_list.entries
        before = len(entries)
        self.source.publish(now, self.originals.contents())
        self._as_it_does(before)
        if snapshot or begin_again or self.habits.live:
            self.source.snapshot(now)
        if begin_again:
            self.source.rotate(now)
        self.show()

    def _as_it_does(self, before: int) -> None:
        entries = self.source.open_list.entries
        if self.habits.forgets:
            here = {f"<loc>{uri}</loc>" for uri in self.originals.contents()}
            entries[:] = [entry for entry in entries if any(loc in entry for loc in here)]
        if self.habits.once:
            last = {entry[: entry.index("</loc>")]: entry for entry in entries}
            entries[:] = [
                entry for entry in entries if last[entry[: entry.index("</loc>")]] is entry
            ]
        if self.habits.newest_first:
            entries.sort(key=_time_of, reverse=True)

    def show(self) -> None:
        super().show()
        if not self.habits.begins:
            self._rewrite("changelist.xml", lambda text: _FROM.sub("", text))
        if self.is_refusing:
            self._rewrite("resourcelist.xml", _moved)

    def _rewrite(self, name: str, edit: Callable[[str], str]) -> None:
        document = self.documents.open(f"resourcesync/{name}")
        assert document is not None
        text = edit(document.read().decode())
        self.documents.write(f"resourcesync/{name}", [text.encode()])

    def honest(self, uri: str) -> Answer:
        answer = super().honest(uri)
        if not self.habits.dates or answer.status != 200:
            return answer
        now = format_datetime(self.clock.now().replace(microsecond=0), usegmt=True)
        before = self.written.get(uri)
        if before is None or before[0] != answer.body:
            before = self.written[uri] = (answer.body, now)
        dates = {"etag": "", "last-modified": before[1], "date": now}
        return replace(answer, headers={**answer.headers, **dates})

    # --- what happens ---

    def change_some(self) -> None:
        for name in self.luck.sample(_NAMES, self.luck.choice((1, 1, 2, 4))):
            if self.luck.random() < 0.3:
                self.remove(name)
            else:
                self.put(name, f"{self.luck.random()}")
        if self.luck.random() < 0.5:
            self.put(_HOT, f"{self.luck.random()}")

    def do_usual(self) -> None:
        self.change_some()
        self.listed(self.luck.choice((0.3, 5, 60, 4_000)))

    def do_begin_again(self) -> None:
        """The lists begin again soon after the last change that was read."""
        gap = self.luck.choice((0.01, 0.1, 0.3, 0.9, 1.5))
        self.put(_HOT, f"{self.luck.random()}")
        self.listed(60)
        self.pull_checked()
        self.change_some()
        self.listed(gap, begin_again=True)
        if self.luck.random() < 0.7:
            self.put(_HOT, f"{self.luck.random()}")
            self.listed(gap)

    def do_only_resource_list(self) -> None:
        told = list(self.source.open_list.entries)
        self.change_some()
        self.listed(self.luck.choice((0.3, 60)), snapshot=True)
        self.source.open_list.entries[:] = told
        self.show()

    def do_get_shorter(self) -> None:
        """The list loses its oldest or newest changes, and the Resource List is written again."""
        self.change_some()
        self.listed(60, snapshot=True)
        entries = self.source.open_list.entries
        place = self.luck.randrange(len(entries) + 1)
        del entries[slice(place) if self.luck.random() < 0.5 else slice(place, None)]
        self.show()

    def do_name_another_host(self) -> None:
        """Half of the Resource List names another host: nothing goes for not being listed."""
        self.is_refusing = True
        self.listed(60, snapshot=True)
        before = self.files()
        self.clock.advance(hours=1)
        report = self.pull_from_home(max_delete=DeletionLimit(count=1_000))
        assert report.state is not MirrorState.IN_SYNC, "in sync with a list that is not understood"
        gone = (before.keys() & self.originals.contents().keys()) - self.files().keys()
        assert not gone, f"deleted for not being listed: {gone}"
        self.is_refusing = False
        self.listed(60, snapshot=True)

    def do_save_copy(self) -> None:
        """A cache takes a copy of a list."""
        name = f"{BASE}resourcesync/{self.luck.choice(_LISTS)}"
        self.cached = {name: self.honest(name).body}

    def do_old_copy(self) -> None:
        """The next pull meets the copy of the cache."""
        for uri, body in self.cached.items():
            self.answers[uri] = lambda request, body=body: (  # type: ignore[misc]  # bound now
                self.honest(request.uri) if request.uncached else Answer(body=body)
            )
        self.pull_checked(honest=False)
        self.answers.clear()

    def do_killed_pull(self) -> None:
        self.before = partial(Dying, fuse=Fuse(self.luck.randrange(14), how=self.luck.randrange(3)))
        try:
            self.pull_checked()
        except Killed:
            self.log.append("  killed")
        finally:
            self.before = lambda port: port

    def do_wait(self) -> None:
        self.clock.advance(hours=self.luck.choice((1, 5, 30)))

    # --- the mirror ---

    def pull_checked(self, *, honest: bool = True) -> None:
        """Pull; a mirror that says in sync is so."""
        self.clock.advance(seconds=self.luck.choice((0.001, 2, 600)))
        held = None
        try:
            held = self.pull_from_home(max_delete=DeletionLimit(count=1_000))
        except (SourceError, SyncError) as error:
            self.log.append(f"  pull: {error}")
        if held is not None:
            self.log.append(f"  pull: {held.mode}, {held.state}")
            if honest and held.state is MirrorState.IN_SYNC:
                assert self.in_sync(), f"called in sync, and it is not: {self.differences()}"

    def differences(self) -> list[str]:
        """The resources that are not here as the Source has them."""
        here, there = self.files(), self.originals.contents()
        return sorted(
            name for name in here.keys() | there.keys() if here.get(name) != there.get(name)
        )

    def live(self) -> None:
        """Live to the end; then the Source writes its lists whole, and the mirror is in step."""
        steps = (
            *[self.do_usual] * 4,
            self.do_begin_again,
            self.do_only_resource_list,
            self.do_get_shorter,
            self.do_name_another_host,
            self.do_save_copy,
            self.do_old_copy,
            self.do_wait,
            self.do_killed_pull,
            self.do_move_behind_tls,
            self.do_move_away,
        )
        for _ in range(STEPS):
            step = self.luck.choice(steps)
            self.log.append(step.__name__)
            step()
            if self.luck.random() < 0.7:
                self.pull_checked()
        self.listed(60, begin_again=True)
        self.clock.advance(hours=1)
        self.pull_checked()
        self.clock.advance(hours=1)
        report = self.pull_from_home(max_delete=DeletionLimit(count=1_000))
        assert report.state is MirrorState.IN_SYNC, f"waits in the end: {report}"
        assert self.in_sync(), "is not in step in the end"


def live_foreign(folder: Path, seed: int) -> None:
    """Live the life of a seed, in an empty folder that is made.

    Raises:
        AssertionError: Something did not hold.
    """
    live("foreign", ForeignLife, habits_of, folder, seed)
