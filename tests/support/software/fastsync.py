"""The documents of CORE FastSync: nothing but packages, tar in xz.

Its Change List lists packages of changes; each tells its changes in a manifest. The resources
themselves cannot be asked for at their addresses.
"""

from dataclasses import dataclass
from datetime import datetime
from hashlib import md5
from pathlib import Path

from tests.support.documents.packages import tarball
from tests.support.software.software_source import (
    Event,
    Known,
    SoftwareSource,
    document,
    loc,
    offering,
    points_to,
    software_world,
)
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World

CHANGE_LIST = "changelist.xml"
_TYPE = 'type="application/x-xz"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    between: str = "T"  # what stands between the day and the time of a change
    intervals: bool = True  # whether the Change List tells which interval each package covers
    zone: str = ""  # what stands behind times


class FastSync:
    def __init__(self, style: Style) -> None:
        self._style = style
        self._files: dict[str, bytes] = {}
        self._began: datetime | None = None
        self._last: datetime | None = None
        self.packages: list[str] = []

    @property
    def began(self) -> datetime:
        assert self._began is not None
        return self._began

    def documents(self, known: Known) -> dict[str, bytes]:
        if self._began is None:
            self._began = self._last = known.now
            self.dump(known)
            self._write_change_list(known.now)
        return self._files

    def update(self, known: Known) -> None:
        assert self._last is not None
        start, self._last = self._last, known.now
        since, until = self._time(start), self._time(known.now)
        path = f"exports/changedumps/{since}-to-{until}.tar.xz"
        events = known.between(start, known.now)
        manifest = document(
            f'capability="changedump-manifest" from="{since}" until="{until}"',
            [self._changed(number, event) for number, event in enumerate(events)],
        )
        members = [
            (f"{number}.json", event.data) for number, event in enumerate(events) if event.data
        ]
        self._files[path] = tarball(("manifest.xml", manifest), *members, mode="w:xz")
        about = f'{_TYPE} length="{len(self._files[path])}" at="{until}" completed="{until}"'
        if self._style.intervals:
            about += f' from="{since}" until="{until}"'
        self.packages.append(points_to(path, about))
        self._write_change_list(known.now)

    def _changed(self, number: int, event: Event) -> str:
        moment = self._time(event.time).replace("T", self._style.between)
        about = f'change="{event.change}" datetime="{moment}"'
        if event.data:
            about += f' path="/{number}.json" length="{len(event.data)}"'
        return loc(event.uri, about)

    def _write_change_list(self, now: datetime) -> None:
        assert self._began is not None
        times = f'from="{self._time(self._began)}" until="{self._time(now)}"'
        self._files[CHANGE_LIST] = document(f'capability="changelist" {times}', self.packages)

    def dump(self, known: Known) -> None:
        at = self._time(known.now)
        described = [
            (uri, f"{number}.json", data)
            for number, (uri, data) in enumerate(known.contents.items())
        ]
        manifest = document(
            f'capability="resourcedump-manifest" at="{at}"',
            [
                loc(uri, f'path="/{name}" hash="md5:{_md5(data)}" length="{len(data)}"')
                for uri, name, data in described
            ],
        )
        package = tarball(
            ("manifest.xml", manifest), *((item[1], item[2]) for item in described), mode="w:xz"
        )
        self._files["exports/resync_dump.tar.xz"] = package
        about = f'{_TYPE} length="{len(package)}"'
        self._files |= {
            "resourcedump.xml": document(
                f'capability="resourcedump" at="{at}"',
                [points_to("exports/resync_dump.tar.xz", about)],
            ),
            "capabilitylist.xml": offering(
                'capability="capabilitylist"',
                resourcedump="resourcedump.xml",
                changelist=CHANGE_LIST,
            ),
        }

    def _time(self, moment: datetime) -> str:
        return moment.strftime("%Y-%m-%dT%H:%M:%S") + self._style.zone


def core_world(folder: Path, style: Style) -> World[SoftwareSource]:
    """Return a mirror of CORE, which gives a resource only to who has a key."""
    return software_world(folder, FastSync(style), is_open=False)


def update(world: World[SoftwareSource]) -> None:
    world.clock.advance(hours=1)
    assert isinstance(world.source.software, FastSync)
    world.source.software.update(world.source.known)


def _md5(data: bytes) -> str:
    return md5(data, usedforsecurity=False).hexdigest()


ENTRY = f"{BASE}capabilitylist.xml"
