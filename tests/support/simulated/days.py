"""Days of a Source in the form of the founding documents, and of a mirror that may miss some."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import ResourceSyncError, SourceError, SyncError
from resourcesync.model.settings import Limit
from tests.support.simulated.kept import Kept
from tests.support.simulated.manners import Manners, ServerWithManners
from tests.support.worlds.daily_source import WEEK, DailySource
from tests.support.worlds.network import Network
from tests.support.worlds.world import World

_MOST: Final = 12
"""Files at most, so that each is changed often."""
_COPIED: Final = 0.3
"""How often a replica is made as the Source is, if there is one."""


class Pulled(NamedTuple):
    day: int  # number of the day; the first is 0
    state: MirrorState | None  # how the mirror called itself; `None`: the pull failed
    is_equal: bool  # its files were those of the Source
    has_new_list: bool  # the Resource List was written since the last pull, on this day


class Days(msgspec.Struct, frozen=True):
    pulled: tuple[Pulled, ...]  # those with a pull to which the Source itself told its lists
    missed: int  # number of the others

    def of(self, state: MirrorState) -> int:
        return sum(day.state is state for day in self.pulled)

    @property
    def lies(self) -> list[int]:
        return [
            day.day for day in self.pulled if day.state is MirrorState.IN_SYNC and not day.is_equal
        ]

    @property
    def late(self) -> list[int]:
        return [
            day.day
            for day in self.pulled
            if day.has_new_list and day.state is not MirrorState.IN_SYNC
        ]


def live_days(
    folder: Path,
    source: DailySource,
    luck: random.Random,
    *,
    days: int = 60,
    missed: float = 0,
    manners: Manners | None = None,
) -> Days:
    manners = manners or Manners()
    server = ServerWithManners(replace(manners, cut=0), source.clock, luck)
    world = World(folder, source, network=Network(server.route))
    kept, pulled = Kept(world.home), list[Pulled]()
    for day in range(days):
        if day:
            _change_some(source, luck, day)
            source.end_day()
            server.manners = manners
            if manners.replica and luck.random() < _COPIED:
                server.replica = source.saved()
            kept.listed(source.contents())
        if day and luck.random() < missed:
            continue
        state = None
        with kept.watched(source.contents()):
            server.is_lying = False
            try:
                state = world.pull(max_delete=Limit(number=1_000)).state
            except ResourceSyncError as error:
                if not (server.manners.cut or isinstance(error, SourceError | SyncError)):
                    raise
        is_equal = world.in_sync()
        if not server.is_lying:  # else nobody can tell
            pulled.append(Pulled(day, state, is_equal, day % WEEK == 0))
    return Days(tuple(pulled), days - len(pulled))


def _change_some(source: DailySource, luck: random.Random, day: int) -> None:
    names = sorted(source.files)
    for name in luck.sample(names, min(len(names), luck.choice((0, 1, 2)))):
        if len(source.files) > 3 and luck.random() < 0.4:
            source.remove(name)
        else:
            source.put(name, f"{name} of day {day}: {luck.random()}")
    name = f"{luck.randrange(_MOST)}.txt"
    source.put(name, f"{name} last of day {day}: {luck.random()}")
