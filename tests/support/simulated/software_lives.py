"""Lives of mirrors whose Source is WEKO3, Hyrax, DSpace of 2013 or CORE FastSync.

It may move behind TLS or to another host, pulls are killed, and things change within a second.
After each pull a mirror that says "in sync" must be so, and nothing is gone that the Source has.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.errors import SourceError, SyncError
from resourcesync.model.settings import Limit
from tests.support.simulated.movements import Life, live
from tests.support.software.dspace import CAPABILITY_LIST, DSpace, DSpaceOfJuly, DSpaceOfMay
from tests.support.software.fastsync import FastSync, Style
from tests.support.software.hyrax import Hyrax
from tests.support.software.software_source import Software, SoftwareSource
from tests.support.software.weko import Weko
from tests.support.worlds.network import BASE

STEPS: Final = 20
_NAMES: Final = tuple("abcdefgh")
_ALL: Final = Limit(percent=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    name: str
    software: Software  # what writes its documents
    entry: str = ""  # the path of the document that leads to the others
    # whether resources can be asked for; else their bytes are in packages alone
    is_open: bool = True
    # whether its server tells versions by `Last-Modified` alone, in whole seconds
    dates: bool = False


def kind_of(luck: random.Random) -> Kind:
    dates = luck.random() < 0.3
    name = luck.choice(("WEKO3", "Hyrax", "DSpace of May", "DSpace of July", "CORE"))
    match name:
        case "WEKO3":
            ahead = timedelta(hours=luck.choice((0, 9)))
            return Kind(name=name, software=Weko(ahead=ahead), dates=dates)
        case "Hyrax":
            return Kind(name=name, software=Hyrax(), dates=dates)
        case "CORE":
            style = Style(
                between=luck.choice("T "),
                intervals=luck.random() < 0.5,
                zone=luck.choice(("", "Z")),
            )
            core = FastSync(style)
            return Kind(name=name, software=core, entry="capabilitylist.xml", is_open=False)
        case _:
            software = DSpaceOfMay() if name.endswith("May") else DSpaceOfJuly()
            return Kind(name=name, software=software, entry=CAPABILITY_LIST, dates=dates)


class SoftwareLife(Life):
    source: SoftwareSource

    def __init__(self, folder: Path, kind: Kind, luck: random.Random) -> None:
        self.kind = kind
        source = SoftwareSource(
            kind.software, is_open=kind.is_open, entry=kind.entry, dates=kind.dates
        )
        super().__init__(folder, source, kind.entry, luck)
        source.begin(a="1", b="2", c="3")
        self.show()
        self.pull_checked()

    def show(self) -> None:
        self.world.clock.advance(seconds=self.luck.choice((1, 2, 60, 3_600)))
        software, known = self.kind.software, self.source.known
        software.documents(known)
        if isinstance(software, FastSync):
            software.update(known)
        elif isinstance(software, DSpace):
            (software.rebase if self.luck.random() < 0.2 else software.update)(known)

    def do_change(self) -> None:
        for _ in range(self.luck.choice((1, 1, 2, 4))):
            name, contents = self.luck.choice(_NAMES), self.source.contents()
            is_here = f"{BASE}{name}.html" in contents
            is_removed = is_here and len(contents) > 1 and self.luck.random() < 0.3
            self.world.clock.advance(seconds=self.luck.choice((0.1, 0.4, 3, 600)))
            self.source.change_now(name, None if is_removed else f"{self.luck.random()}")
        self.show()

    def do_change_again_at_once(self) -> None:
        name = self.luck.choice(_NAMES)
        self.source.change_now(name, f"{self.luck.random()}")
        self.show()
        self.source.change_now(name, f"{self.luck.random()}")
        self.pull_checked(honest=False)
        self.world.clock.advance(seconds=0.2)
        self.source.change_now(name, f"{self.luck.random()}")
        self.show()

    def do_wait(self) -> None:
        self.world.clock.advance(hours=self.luck.choice((1, 5, 13, 30)))
        self.show()

    def pull_all(self) -> RunReport:
        self.source.write()
        return self.moving.pull(self.world, max_delete=_ALL)

    def pull_checked(self, *, honest: bool = True) -> None:
        self.world.clock.advance(seconds=self.luck.choice((0.001, 0.3, 2, 600)))
        before = self.world.home.files_on_disk().keys()
        try:
            report = self.pull_all()
        except (SourceError, SyncError) as error:
            self.log.append(f"  pull: {error}")
            return
        self.log.append(f"  pull: {report.mode}, {report.state}")
        if not honest:
            return
        there, now = self.source.contents(), self.world.home.files_on_disk().keys()
        lost = [path for path in before - now if BASE + path in there]
        assert not lost, f"lost, though the Source has it: {lost}"
        if report.state is MirrorState.IN_SYNC:
            wrong = self.world.differences()
            assert not wrong, f"called in sync, and it is not: {wrong}"

    def live(self) -> None:
        steps: tuple[Callable[[], None], ...] = (
            *[self.do_change] * 5,
            self.do_change_again_at_once,
            self.do_wait,
            *[self.do_killed_pull] * 2,
        )
        if self.kind.is_open:  # packages cannot be rewritten
            steps += (self.move_behind_tls, self.move_away)
        self.do_steps(steps, STEPS)
        for _ in range(3):
            self.world.clock.advance(hours=25)
            self.show()
            self.pull_checked()
        self.world.clock.advance(hours=2)
        report = self.pull_all()
        is_done = report.state is MirrorState.IN_SYNC or self._is_undecidable(report)
        assert is_done, f"waits in the end: {report}"
        assert self.world.in_sync(), "is not in step in the end"

    def _is_undecidable(self, report: RunReport) -> bool:
        """Whether all that waits was made in the second of the dump, and cannot be asked for."""
        waiting = {failing.uri for failing in report.failures if failing.reason == "401"}
        software, second = self.kind.software, timedelta(seconds=1)
        if not isinstance(software, FastSync) or report.listed.pending != len(waiting):
            return False
        began = software.began.replace(microsecond=0)
        made = {event.uri for event in self.source.known.between(began, began + second)}
        return waiting <= made and report.resources == report.listed.total and not report.faults.gap


def live_software(folder: Path, seed: int) -> None:
    live("software", SoftwareLife, kind_of, folder, seed)
