"""Short lives of Sources whose lists are not ours, with two kinds of times, behind a Resource List.

Some changes have a time of their own, others only that of their resource. One Change List, whose
`from` may move, or one package, or daily lists behind an index stand still for a while, and then
catch up. Nothing fails and nobody lies: who calls itself in sync then must be so.

Two things are not tried, since a mirror takes back what the Resource List has: lists that were read
and grow by a part of what is due, and a package that stands still while its `from` moves.
"""

import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from resourcesync.destination.destination import Destination
from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import MirrorState
from resourcesync.errors import ResourceSyncError
from resourcesync.model.settings import Limit
from resourcesync.model.timestamps import format_w3c
from resourcesync_simulator.temporary_folders import make_folders
from tests.support.worlds.timed_source import CAPABILITIES, TimedSource, deleted, entry, updated
from tests.support.worlds.world import World

_NAMES: Final = "pq"
_OPTIONS: Final = PullOptions(max_delete=Limit(number=len(_NAMES)))
"""Two of two resources may go: no deletion is held."""
_STEPS: Final = 10
_LAST_PULLS: Final = 4
_BEGIN: Final = datetime(2026, 3, 1, tzinfo=UTC)
_DAY: Final = timedelta(days=1)
_WINDOW: Final = timedelta(hours=30)
_TIMES: Final = re.compile(' (?:change|datetime)="[^"]*"')


class _Change(NamedTuple):
    at: datetime
    name: str
    text: str
    """Empty for a deletion."""
    written: str


class DatedLife:
    """A Source and its mirror."""

    def __init__(self, folder: Path, seed: int) -> None:
        luck = self._luck = random.Random(f"dated {seed}")
        self._shape = luck.choice(("changelist", "changedump", "days"))
        self._borrowed = luck.choice((0.0, 0.3, 0.7))
        self._is_ended, self._is_made, self._is_moving = (luck.random() < 0.5 for _ in range(3))
        self._is_moving &= self._shape != "days"
        self._kept = luck.choice((2, 3, 30))
        head = self._shape if self._shape == "changedump" else "changelist"
        self._world = World(folder, TimedSource("resourcelist", head))
        self._changes: list[_Change] = []
        self._listed, self._made = 0, self._now

    @property
    def _now(self) -> datetime:
        return self._world.clock.now()

    def live(self) -> str:
        """Live it; return ``converged``, ``waiting``, or what was wrong."""
        for name in f"{_NAMES}{_NAMES}{_NAMES}":
            self._change(name, timedelta(minutes=15))
        self._write_resource_list()
        with self._world.destination(CAPABILITIES) as mirror:
            is_behind = self._luck.random() < 0.5
            self._listed = self._luck.randrange(len(self._changes))
            self._made = self._changes[self._listed].at - timedelta(seconds=1)
            for _ in range(_STEPS):
                self._write_lists(is_behind=is_behind)
                if self._lies(mirror):
                    return "called in sync and was not"
                is_behind = self._luck.random() < (0.7 if is_behind else 0.4)
                self._go_on()
            return self._end(mirror)

    def _end(self, mirror: Destination) -> str:
        """Catch up, then offer a Resource List, too: a mirror in sync is as its Source."""
        for _ in range(_LAST_PULLS):
            self._write_lists()
            if self._is_in_sync(mirror):
                return "converged" if self._copies() == self._truth() else "silently wrong"
            self._world.clock.advance(seconds=3600)
            self._write_resource_list()
        return "waiting"

    def _is_in_sync(self, mirror: Destination) -> bool:
        try:
            self._report = mirror.pull(_OPTIONS)
        except ResourceSyncError:
            return False
        return self._report.state is MirrorState.IN_SYNC

    def _lies(self, mirror: Destination) -> bool:
        """Pull; return whether that was called in sync, and a copy is older than told."""
        if not self._is_in_sync(mirror) or self._report.as_of is None:
            return False
        right = {name: {text} for name, text in self._truth(self._report.as_of).items()}
        for change in self._changes:
            if change.at > self._report.as_of:
                right.setdefault(change.name, {""}).add(change.text)
        copies = self._copies()
        return any(copies.get(name, "") not in right.get(name, {""}) for name in _NAMES)

    def _truth(self, at: datetime | None = None) -> dict[str, str]:
        """Return the resources at a moment, or now."""
        there = {
            change.name: change.text for change in self._changes if at is None or change.at <= at
        }
        return {name: text for name, text in there.items() if text}

    def _copies(self) -> dict[str, str]:
        return {
            Path(path).name: body.decode()
            for path, body in self._world.home.files_on_disk().items()
        }

    def _go_on(self) -> None:
        """Let some hours pass, with changes in them, and perhaps a Resource List at the end."""
        quarter = timedelta(minutes=15) * self._luck.choice((1, 4, 12, 24))
        for _ in range(self._luck.choice((0, 1, 1, 2, 3))):
            self._change(self._luck.choice(_NAMES), quarter)
        self._world.clock.advance(seconds=quarter.total_seconds())
        if self._luck.random() < 0.4:
            self._write_resource_list()

    def _change(self, name: str, after: timedelta) -> None:
        """Make, change or delete a resource."""
        luck, world = self._luck, self._world
        world.clock.advance(seconds=after.total_seconds())
        at, text = format_w3c(self._now), f"{name}{len(self._changes):03}"
        if name in world.source.served and luck.random() < 0.5:
            del world.source.served[name]
            text, written = "", deleted(name, at)
        elif luck.random() >= self._borrowed:
            before = format_w3c(self._now - timedelta(minutes=luck.choice((1, 600))))
            written = updated(name, text, at, before)
        else:
            values = luck.choice((f' change="updated" datetime="{at}"', ' change="updated"'))
            written = entry(name, text, at, values)
        if text:
            world.source.has(**{name: text})
        self._changes.append(_Change(self._now, name, text, written))

    def _write_resource_list(self) -> None:
        last = {change.name: change for change in self._changes}
        there = (_TIMES.sub("", change.written) for change in last.values() if change.text)
        self._world.source.resource_list(format_w3c(self._now), *there)

    def _write_lists(self, *, is_behind: bool = False) -> None:
        """Write the lists; they may grow up to a deletion while they are behind."""
        if not is_behind:
            self._listed, self._made = len(self._changes), self._now
        else:
            rest = range(self._listed, len(self._changes))
            ends = (number + 1 for number in rest if not self._changes[number].text)
            self._listed = self._luck.choice((self._listed, *ends))
        listed = self._changes[: self._listed]
        if self._shape == "days":
            self._write_days(listed)
            return
        since = self._now - _WINDOW if self._is_moving else _BEGIN
        written = {change.written: change.text for change in listed if change.at >= since}
        begun = format_w3c(since)
        if self._shape == "changelist":
            self._world.source.change_list(*written, interval=begun)
            return
        paths = {
            text: f'<rs:md path="/{text}" ' if text else "<rs:md " for text in written.values()
        }
        marked = (change.replace("<rs:md ", paths[text]) for change, text in written.items())
        self._world.source.change_dump(
            *marked, since=begun, packed={text: text for text in paths if text}
        )

    def _write_days(self, listed: list[_Change]) -> None:
        """Write a list for each day, and their index, from which old ones are dropped."""
        days, index = (self._made - _BEGIN).days, {}
        for day in range(max(0, days + 1 - self._kept), days + 1):
            since, name = _BEGIN + day * _DAY, f"day{day}"
            until = min(since + _DAY, self._made) if self._is_made else since + _DAY
            begun, ended = format_w3c(since), f"{format_w3c(since)} {format_w3c(until)}"
            is_over = self._is_ended and day < days
            changes = (change.written for change in listed if since <= change.at < since + _DAY)
            self._world.source.change_list(
                *changes, interval=ended if self._is_made or is_over else begun, name=name
            )
            index[name] = ended if is_over else begun
        self._world.source.change_index(**index)


def live_dated(seed: int) -> str:
    """Live the life of a seed; return ``converged``, ``waiting``, or what was wrong."""
    with make_folders() as folders:
        return DatedLife(folders.memory / "mirror", seed).live()
