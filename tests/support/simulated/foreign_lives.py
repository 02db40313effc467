"""Lives of mirrors whose Source writes its lists as foreign software does.

Lists begin again within a second, get shorter, lose deletions, have the newest change first or each
resource once; each list replaces the one before, or is a window of the last changes; only the
Resource List is written again, also while it is read; a cache has an old copy of any list, and an
older replica answers. The Source moves behind TLS or to another host, the mirror is copied, and
pulls are killed. After each pull a mirror that says "in sync" must be so, and no copy may be gone
that the Source has had since it was delivered.
"""

import hashlib
import random
import re
import shutil
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import ResourceSyncError, SourceError, SyncError
from resourcesync.model.settings import Limit
from resourcesync.ports import FetchRequest
from tests.support.simulated.kept import Kept
from tests.support.simulated.manners import Manners, ServerWithManners, manners_of
from tests.support.simulated.movements import DatedAnswers, Life, live
from tests.support.worlds.loose_source import CLOCKS, OFF, LooseSource, Style, without_interval
from tests.support.worlds.network import BASE, Answer, Serve

STEPS: Final = 25
_LAST_PULLS: Final = 4
_TIME: Final = re.compile(r'<lastmod>([^<]*)|datetime="([^"]*)')
_LOC: Final = re.compile(r"<loc>[^<]*</loc>")
_ELSEWHERE: Final = "http://elsewhere.example/"
_NAMES: Final = tuple(f"{number}.html" for number in range(12))
_HOT: Final = "hot.html"
_LISTS: Final = ("changelist.xml", "resourcelist.xml")


def _moved(text: str) -> str:
    count = iter(range(len(text)))
    return _LOC.sub(
        lambda match: match[0] if next(count) % 2 else match[0].replace(BASE, _ELSEWHERE), text
    )


def _time_of(entry: str) -> str:
    found = _TIME.search(entry)
    return "" if found is None else found[1] or found[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    style: Style  # what its entries and lists tell
    newest_first: bool = False  # whether the newest change comes first
    once: bool = False  # whether each resource is listed once, by its last change
    # whether a resource that is gone is not listed any more, nor its deletion
    forgets: bool = False
    live: bool = False  # whether the Resource List is always of this moment
    # whether its server tells versions by `Last-Modified` alone, in whole seconds
    dates: bool = False
    manners: Manners = field(default_factory=Manners)  # how its server answers


def habits_of(luck: random.Random) -> Habits:
    index = luck.random() < 0.3
    forgets = luck.random() < 0.25
    newest_first = luck.random() < 0.25
    manners = manners_of(luck)
    habits = Habits(
        style=Style(
            index=index,
            times=luck.random() < 0.8,
            lastmods=luck.random() < 0.7,
            announces=luck.random() < 0.7,
            keep=luck.choice((0, 1, 3)),
            begins=index or luck.random() < 0.7,
            ahead=luck.choice((0, 0, 0, *CLOCKS)),
        ),
        newest_first=newest_first,
        once=newest_first or luck.random() < 0.25,
        forgets=forgets,
        live=forgets or manners.made or luck.random() < 0.2,
        dates=luck.random() < 0.3,
        manners=manners,
    )
    if index or luck.random() < 0.6:
        return habits
    return replace(habits, style=without_interval(habits.style, luck), newest_first=False)


class ForeignSource(LooseSource):
    def __init__(self, habits: Habits) -> None:
        super().__init__(self._as_refused, **asdict(habits.style))
        self.is_refusing = False
        self._habits = habits
        self._dates = DatedAnswers(self.clock)

    @property
    def open_entries(self) -> list[str]:
        return self.lists.open_list.entries if self.lists.lists else []

    def listed(self, seconds: float, *, begin_again: bool = False, snapshot: bool = False) -> None:
        self.publish(after=seconds)
        self._as_it_does()
        if snapshot or begin_again or self._habits.live:
            self.snapshot(after=0)
        if begin_again and not self._habits.style.is_without_interval:
            self.rotate(after=0)
        self.show()

    def as_served(self) -> dict[str, bytes]:
        uris = [BASE + name for name in self.documents.names()]
        return self.contents() | {uri: LooseSource.honest(self, uri).body for uri in uris}

    def honest(self, uri: str) -> Answer:
        answer = super().honest(uri)
        return self._dates.dated(uri, answer) if self._habits.dates else answer

    def _as_it_does(self) -> None:
        entries = self.open_entries
        if self._habits.forgets:
            here = {f"<loc>{uri}</loc>" for uri in self.contents()}
            entries[:] = [entry for entry in entries if any(loc in entry for loc in here)]
        if self._habits.once:
            last = {entry[: entry.index("</loc>")]: entry for entry in entries}
            entries[:] = [
                entry for entry in entries if last[entry[: entry.index("</loc>")]] is entry
            ]
        if self._habits.newest_first:
            entries.sort(key=_time_of, reverse=True)

    def _as_refused(self, name: str, text: str) -> str:
        return _moved(text) if name == "resourcelist.xml" and self.is_refusing else text


class ForeignLife(Life):
    source: ForeignSource

    def __init__(self, folder: Path, habits: Habits, luck: random.Random) -> None:
        self.habits = habits
        source = ForeignSource(habits)
        fair = replace(habits.manners, cut=0)
        self.server = ServerWithManners(fair, source.clock, luck, ahead=habits.style.ahead)
        super().__init__(folder, source, source.entry.removeprefix(BASE), luck)
        self.kept = Kept(self.world.home)
        self.cached: dict[str, bytes] = {}
        for name in (*_NAMES[:8], _HOT):
            self.source.put(name, f"first {name}")
        self.list_changes(60)
        self.pull_checked()
        self.server.manners = habits.manners

    def route(self, request: FetchRequest, serve: Serve) -> Answer | Exception:
        return self.moving.route(request, lambda asked: self.server.route(asked, serve))

    def list_changes(
        self, seconds: float, *, begin_again: bool = False, snapshot: bool = False
    ) -> None:
        self.source.listed(seconds, begin_again=begin_again, snapshot=snapshot)
        self.kept.listed(self.source.contents())

    def change_some(self) -> None:
        for name in self.luck.sample(_NAMES, self.luck.choice((1, 1, 2, 4))):
            if self.luck.random() < 0.3:
                self.source.remove(name)
            else:
                self.source.put(name, f"{self.luck.random()}")
        if self.luck.random() < 0.5:
            self.source.put(_HOT, f"{self.luck.random()}")

    def do_usual(self) -> None:
        self.change_some()
        self.list_changes(self.luck.choice((0.3, 5, 60, 4_000)))

    def do_begin_again(self) -> None:
        gap = self.luck.choice((0.01, 0.1, 0.3, 0.9, 1.5))
        self.source.put(_HOT, f"{self.luck.random()}")
        self.list_changes(60)
        self.pull_checked()
        self.change_some()
        self.list_changes(gap, begin_again=True)
        if self.luck.random() < 0.7:
            self.source.put(_HOT, f"{self.luck.random()}")
            self.list_changes(gap)

    def do_only_resource_list(self) -> None:
        told = list(self.source.open_entries)
        self.change_some()
        self.list_changes(self.luck.choice((0.3, 60)), snapshot=True)
        self.source.open_entries[:] = told
        self.source.show()

    def do_get_shorter(self) -> None:
        """The list loses its oldest or newest changes, and the Resource List is written again."""
        if self.habits.manners.replica and not self.habits.style.times:
            return
        self.change_some()
        self.list_changes(60, snapshot=True)
        entries = self.source.open_entries
        place = self.luck.randrange(len(entries) + 1)
        del entries[slice(place) if self.luck.random() < 0.5 else slice(place, None)]
        self.source.show()

    def do_name_another_host(self) -> None:
        """Half of the Resource List names another host: nothing goes for not being listed."""
        self.source.is_refusing = True
        self.list_changes(60, snapshot=True)
        self.world.clock.advance(hours=1)
        held = self._pull()
        is_read = not self.server.is_lying
        assert not (is_read and held is MirrorState.IN_SYNC), "in sync with what is not understood"
        self.source.is_refusing = False
        self.list_changes(60, snapshot=True)

    def do_save_copy(self) -> None:
        name = f"{BASE}resourcesync/{self.luck.choice(_LISTS)}"
        self.cached = {name: self.source.honest(name).body}

    def do_old_copy(self) -> None:
        for uri, body in self.cached.items():
            self.world.network.answers[uri] = lambda request, body=body: (  # type: ignore[misc]  # bound now
                self.source.honest(request.uri) if request.uncached else Answer(body=body)
            )
        self.pull_checked(honest=False)
        self.world.network.answers.clear()

    def do_replicate(self) -> None:
        """From now on a replica that answers sometimes is as the Source is now."""
        self.server.replica = self.source.as_served()

    def do_rewritten_list(self) -> None:
        """The Resource List is rewritten while a pull reads it, but not while the next one does."""
        self.source.snapshot(after=1)
        if self.pull_checked() is not MirrorState.IN_SYNC:
            return  # a new resource that moves meanwhile is not detected (cursor.md)
        self.server.is_rewriting = True
        self.pull_checked()
        self.server.is_rewriting = False
        self.pull_checked()

    def do_copy_mirror(self) -> None:
        """A copy of the mirror takes its place, as of ``cp -a`` or a restored backup."""
        folder = self.world.folder
        copy = shutil.copytree(folder, folder.with_name("copy"), symlinks=True)
        shutil.rmtree(folder)
        copy.rename(folder)

    def do_wait(self) -> None:
        self.world.clock.advance(hours=self.luck.choice((1, 5, 30)))

    def pull_checked(self, *, honest: bool = True) -> MirrorState | None:
        """Pull, and return the state: a mirror that says in sync is so."""
        self.world.clock.advance(seconds=self.luck.choice((0.001, 2, 600)))
        state = self._pull()
        if honest and not self.server.is_lying and state is MirrorState.IN_SYNC:
            wrong = [uri for uri in self.world.differences() if not self._is_undecidable(uri)]
            assert not wrong, f"called in sync, and it is not: {wrong}"
        return state

    def _is_undecidable(self, uri: str) -> bool:
        """Whether a replica answered as the Resource List says, and no time shows its age."""
        style, file = self.habits.style, self.world.files().get(uri)
        if uri not in self.server.by_replica or style.times or style.lastmods or file is None:
            return False
        listed = self.source.honest(f"{BASE}resourcesync/resourcelist.xml").body.decode()
        return hashlib.sha256(file).hexdigest() in listed

    def _pull(self) -> MirrorState | None:
        self.server.is_lying = False
        self.server.by_replica.clear()
        with self.kept.watched(self.source.contents()):
            try:
                report = self.moving.pull(self.world, max_delete=Limit(number=1_000))
            except ResourceSyncError as error:
                if not (self.server.manners.cut or isinstance(error, SourceError | SyncError)):
                    raise
                self.log.append(f"  pull: {error}")
                return None
        self.log.append(f"  pull: {report.mode}, {report.state}")
        return report.state

    def live(self) -> None:
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
            self.do_replicate,
            *[self.do_rewritten_list] * (bool(self.habits.manners.parts) and not self.habits.live),
            *[self.do_copy_mirror] * ("copied" not in OFF),
            self.move_behind_tls,
            self.move_away,
        )
        self.do_steps(steps, STEPS)
        self.server.manners = replace(self.server.manners, replica=0, cut=0)
        self.world.clock.advance(hours=5)  # no two clocks are further apart
        self.source.put(_HOT, "last")
        begin_again = self.habits.style.begins
        self.list_changes(60, begin_again=begin_again, snapshot=True)
        states: list[MirrorState | None] = []
        while MirrorState.IN_SYNC not in states and len(states) < _LAST_PULLS:
            self.world.clock.advance(hours=1)
            states.append(self._pull())
        style = self.habits.style
        if style.begins or style.times:  # else nothing shows that none is missing, nor their order
            assert states[-1] is MirrorState.IN_SYNC, f"waits in the end: {states}"
            assert self.world.in_sync(), f"is not in step in the end: {self.world.differences()}"


def live_foreign(folder: Path, seed: int) -> None:
    live("foreign", ForeignLife, habits_of, folder, seed)
