"""A world whose Source writes its lists as others do."""

from pathlib import Path
from typing import Any

from resourcesync.destination.reports import RunReport
from resourcesync.model.timestamps import to_microseconds
from tests.support.worlds.loose_source import LooseSource, Style
from tests.support.worlds.world import BASE, World


class LooseWorld(World):
    """A world whose Source writes its lists as others do."""

    def __init__(self, folder: Path, **style: Any) -> None:
        super().__init__(folder)
        self.source = LooseSource(f"{BASE}resourcesync/", Style(**style))

    def publish(self) -> None:  # type: ignore[override]  # this Source has no steps
        self.source.publish(self.moment(), self.originals.contents())
        self.show()

    def snapshot(self) -> None:
        self.source.snapshot(self.moment())
        self.show()

    def rotate(self) -> None:
        self.source.rotate(self.moment())
        self.show()

    def moment(self) -> int:
        self.clock.advance(seconds=60)
        return to_microseconds(self.clock.now())

    def show(self) -> None:
        for name, text in self.source.documents().items():
            self.documents.write(f"resourcesync/{name}", [text.encode()])

    def pull(self, source: str | None = None, **options: Any) -> RunReport:
        return super().pull(f"{BASE}resourcesync/capabilitylist.xml", **options)
