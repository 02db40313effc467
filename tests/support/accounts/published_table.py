"""A table that is published again and again, and what its documents say by our own reader."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from resourcesync.adapters.in_memory import ManualClock
from resourcesync.app.publishing.inventories import TableSource, publish_table
from resourcesync.documents import reader
from resourcesync.model.capabilities import Header, Part
from resourcesync.model.digests import format_digests
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import to_microseconds
from resourcesync.source.publication_options import PublicationResult, PublishRequest

BASE = "https://data.example/"
SCHEMA = pa.schema(
    [
        ("uri", pa.string()),
        ("lastmod", pa.int64()),
        ("length", pa.int64()),
        ("hash", pa.string()),
        ("type", pa.string()),
    ]
)
Row = tuple[str, int | None, int | None, str, str]
"""URI, ``lastmod`` in microseconds, length, ``hash``, ``type``."""


def write_table(path: Path, rows: Iterable[Row]) -> None:
    """Write rows in the usual columns; the file looks new whatever the clock says."""
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(item, kind) for item, kind in zip(columns, SCHEMA.types, strict=True)]
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(arrays, schema=SCHEMA), path)
    os.utime(path, ns=(before + 10**9, before + 10**9))


def row_of(resource: Resource) -> Row:
    moment = resource.lastmod
    return (
        resource.uri,
        None if moment is None else to_microseconds(moment),
        resource.length,
        format_digests(resource.digests),
        resource.media_type,
    )


@dataclass
class PublishedTable:
    """One table, its folder, and a clock that stands."""

    root: Path
    clock: ManualClock = field(default_factory=ManualClock)
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def table(self) -> Path:
        return self.root / "table" / "part.parquet"

    @property
    def out(self) -> Path:
        return self.root / "out"

    def tell(self, rows: Iterable[Row]) -> None:
        write_table(self.table, rows)

    def publish(
        self, asked: PublishRequest | None = None, /, **chosen: object
    ) -> PublicationResult:
        source = TableSource(
            address=f"tables:{self.table.parent}",
            values=self.values,
            root=self.out,
            out=self.out,
        )
        return publish_table(
            source, {"url": BASE, **chosen}, clock=self.clock, asked=asked or PublishRequest()
        )

    def files(self) -> dict[str, tuple[bytes, int]]:
        """Return every document, with the time that it was written."""
        folders = (self.out / "resourcesync", self.out / ".well-known")
        found = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
        return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in found}

    def bytes(self) -> dict[str, bytes]:
        return {name: content for name, (content, _) in self.files().items()}

    def listed(self) -> tuple[Header, list[Row]]:
        """Return what the Resource List says: of its index, and of all its parts."""
        header, parts = self._read("resourcelist.xml")
        rows: list[Row] = []
        for part in parts:
            assert isinstance(part, Part)
            inner, entries = self._read(part.uri.rpartition("/")[2])
            assert inner.at == part.at == header.at
            rows += [row_of(entry) for entry in entries if isinstance(entry, Resource)]
        return header, rows

    def changes(self) -> list[Change]:
        """Return all changes, in order; their lists follow each other without a gap."""
        header, parts = self._read("changelist.xml")
        if not header.is_index:
            assert header.until is None
            assert not parts
            return []
        found: list[Change] = []
        last: datetime | None = header.from_
        for part in parts:
            assert isinstance(part, Part)
            inner, entries = self._read(part.uri.rpartition("/")[2])
            assert (inner.from_, inner.until) == (part.from_, part.until)
            assert inner.from_ == last
            last = inner.until
            for entry in entries:
                assert isinstance(entry, Change)
                assert inner.from_ is not None
                assert entry.time is not None
                assert inner.until is not None
                assert inner.from_ < entry.time <= inner.until
                found.append(entry)
        return found

    def followed(self) -> list[Row]:
        """Return what a Destination has in the end: the list, and the changes since."""
        header, rows = self.listed()
        held = {row[0]: row for row in rows}
        assert header.at is not None
        assert len(held) == len(rows)
        for change in self.changes():
            assert change.time is not None
            if change.time <= header.at:
                continue
            assert (change.uri in held) is (change.kind != "created")
            held.pop(change.uri, None)
            if change.kind != "deleted":
                held[change.uri] = row_of(change.resource)
        return [held[uri] for uri in sorted(held)]

    def _read(self, name: str) -> tuple[Header, list[Any]]:
        with (self.out / "resourcesync" / name).open("rb") as stream:
            document = reader.read_stream(stream, uri=name)
            entries = list(document.entries())
        assert not document.refused
        return document.header, entries
