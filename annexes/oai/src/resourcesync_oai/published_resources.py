"""Resources made of the stored records: metadata and files, linked both ways (§14.5, §14.7)."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from resourcesync.documents import ndjson
from resourcesync.model.digests import Digest, parse_digests
from resourcesync.model.entries import Link, Resource
from resourcesync.model.vocabulary import Relation
from resourcesync.sqlite_file import Connection
from resourcesync_oai.documents.records import parse_datestamp
from resourcesync_oai.metadata_files import uri_of
from resourcesync_oai.options import OaiOptions
from resourcesync_oai.repository_state import RepositoryState, Row
from resourcesync_oai.signposts import decode_links

XML: Final = "application/xml"
REFUSED: Final = frozenset({401, 403, 404, 410})
"""Statuses of a file that is not public."""
_MOST_LINKS: Final = 1_000
"""The most links of one kind; the queries have the same number."""
_METADATA: Final = """
SELECT record.prefix, record.sets, record.path, document.length,
    ltrim(document.sha256, '?'), document.lastmod
FROM record JOIN document ON document.path = record.path
WHERE record.identifier = ? AND NOT record.is_gone AND record.path <> '' ORDER BY record.prefix
"""
_GONE: Final = "SELECT path FROM record WHERE identifier = ? AND is_gone AND path <> ''"
_DESCRIBED: Final = """
SELECT mention.uri, max(mention.media_type) FROM mention JOIN told ON told.uri = mention.uri
WHERE mention.identifier = ? AND told.value <> x'' GROUP BY mention.uri LIMIT 1000
"""
_MENTIONS: Final = """
SELECT mention.length, mention.hash, mention.media_type, mention.is_restricted,
    record.datestamp, record.sets
FROM mention JOIN record USING (identifier, prefix)
WHERE mention.uri = ? AND NOT record.is_gone
ORDER BY mention.hash = '', record.identifier, record.prefix LIMIT 1000
"""
_RESTRICTED: Final = """
SELECT 1 FROM mention JOIN record USING (identifier)
WHERE mention.uri = ? AND record.is_restricted AND NOT record.is_gone LIMIT 1
"""
_DESCRIBING: Final = """
SELECT DISTINCT record.path FROM mention JOIN record USING (identifier)
WHERE mention.uri = ? AND NOT record.is_gone AND record.path <> ''
ORDER BY record.path LIMIT 1000
"""


class PublishedResources:
    """The published resources of a repository."""

    def __init__(
        self,
        memory: RepositoryState,
        choice: OaiOptions,
        *,
        base_uri: str,
        published: Mapping[str, str],
    ) -> None:
        self._memory, self._choice = memory, choice
        self._base_uri, self._published = base_uri, published

    def touch_files(self) -> None:
        """Touch the files of all touched items."""
        with self._memory.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO touched_file SELECT mention.uri"
                " FROM mention JOIN touched_item USING (identifier)"
            )

    def update(self) -> None:
        """Publish all touched items and files again; a killed run is resumed."""
        for batch in self._touched("SELECT uri FROM touched_file LIMIT 500"):
            with self._memory.writing() as connection:
                for uri in batch:
                    self._update_file(connection, uri)
                    connection.execute("DELETE FROM touched_file WHERE uri = ?", (uri,))
        for batch in self._touched("SELECT identifier FROM touched_item LIMIT 500"):
            with self._memory.writing() as connection:
                for identifier in batch:
                    self._update_item(connection, identifier)
                    connection.execute(
                        "DELETE FROM touched_item WHERE identifier = ?", (identifier,)
                    )

    def _touched(self, query: str) -> Iterator[list[str]]:
        while rows := self._memory.rows(query):
            yield [row[0] for row in rows]

    def _update_item(self, connection: Connection, identifier: str) -> None:
        for (path,) in connection.execute(_GONE, (identifier,)).fetchall():
            _store_resource(connection, uri_of(self._base_uri, path), b"")
        rows = connection.execute(_METADATA, (identifier,)).fetchall()
        described = [
            Link(rel=Relation.DESCRIBES, href=uri, media_type=media_type)
            for uri, media_type in connection.execute(_DESCRIBED, (identifier,))
        ]
        for row in rows:
            others = [item[2] for item in rows if item[2] != row[2]]
            resource = self._metadata(row, described, others)
            _store_resource(connection, resource.uri, ndjson.write(resource))

    def _metadata(self, row: Row, described: list[Link], others: list[str]) -> Resource:
        prefix, sets, path, length, sha256, lastmod = row
        namespace = self._published.get(prefix, "")
        return Resource(
            uri=uri_of(self._base_uri, path),
            lastmod=parse_datestamp(lastmod),
            length=length,
            digests=(Digest("sha-256", sha256),),
            media_type=XML,
            changefreq=self._choice.changefreq,
            links=(
                *([Link(rel=Relation.PROFILE, href=namespace)] if namespace else []),
                *described,
                *self._collections(json.loads(sets)),
                *(
                    Link(rel=Relation.ALTERNATE, href=uri_of(self._base_uri, other), media_type=XML)
                    for other in others
                ),
            ),
        )

    def _update_file(self, connection: Connection, uri: str) -> None:
        before = connection.execute("SELECT value FROM told WHERE uri = ?", (uri,)).fetchone()
        known = before[0] if before is not None else b""
        resource = self._file(connection, uri, known)
        value = b"" if resource is None else ndjson.write(resource)
        _store_resource(connection, uri, value)
        if bool(value) != bool(known):  # metadata links to available files
            connection.execute(
                "INSERT OR IGNORE INTO touched_item SELECT identifier FROM mention WHERE uri = ?",
                (uri,),
            )

    def _file(self, connection: Connection, uri: str, known: bytes) -> Resource | None:
        """Return the resource of a file; ``None`` if it is gone, or not public."""
        rows = connection.execute(_MENTIONS, (uri,)).fetchall()
        if not rows or any(row[3] for row in rows):
            return None
        if connection.execute(_RESTRICTED, (uri,)).fetchone() is not None:
            return None
        found = connection.execute(
            "SELECT status, length, media_type, lastmod, links FROM file WHERE uri = ?", (uri,)
        ).fetchone()
        status, length, media_type, lastmod, sent = found or (0, None, "", "", "")
        if status in REFUSED:
            return None
        digests = parse_digests(rows[0][1])
        lengths = [row[0] for row in rows if row[0] is not None]
        sets = {spec for row in rows for spec in json.loads(row[5])}
        made = Resource(
            uri=uri,
            lastmod=parse_datestamp(lastmod or max(row[4] for row in rows)),
            length=lengths[0] if lengths else length,
            digests=digests,
            media_type=next((row[2] for row in rows if row[2]), media_type),
            changefreq=self._choice.changefreq,
            links=(
                *(
                    Link(
                        rel=Relation.DESCRIBED_BY, href=uri_of(self._base_uri, path), media_type=XML
                    )
                    for (path,) in connection.execute(_DESCRIBING, (uri,))
                ),
                *self._collections(sorted(sets)),
                *decode_links(sent),
            ),
        )
        return _with_old_date(made, known)

    def _collections(self, specs: list[str]) -> list[Link]:
        links = [
            Link(rel=Relation.COLLECTION, href=self._choice.collection(spec))
            for spec in specs[:_MOST_LINKS]
        ]
        return list(dict.fromkeys(links))

    def resources(self) -> Iterator[Resource]:
        """Yield all resources, each once."""
        last = ""
        query = "SELECT uri, value FROM told WHERE uri > ? AND value <> x'' ORDER BY uri LIMIT 500"
        while rows := self._memory.rows(query, last):
            for _, value in rows:
                yield _decode_resource(value)
            last = rows[-1][0]

    def changes(self, after: int) -> Iterator[list[tuple[int, str, Resource | None]]]:
        """Yield the changes since, in batches: number, address, and current state."""
        query = "SELECT seq, uri, value FROM told WHERE seq > ? ORDER BY seq LIMIT 500"
        while rows := self._memory.rows(query, after):
            yield [
                (seq, uri, _decode_resource(value) if value else None) for seq, uri, value in rows
            ]
            after = rows[-1][0]


def _store_resource(connection: Connection, uri: str, value: bytes) -> None:
    """Store the published state of an address, if it differs from before."""
    known = connection.execute("SELECT value FROM told WHERE uri = ?", (uri,)).fetchone()
    if known is None and not value:
        return
    if known is None or known[0] != value:
        connection.execute(
            "INSERT OR REPLACE INTO told SELECT ?, 1 + ifnull((SELECT max(seq) FROM told), 0), ?",
            (uri, value),
        )


def _decode_resource(value: bytes) -> Resource:
    found = ndjson.read_line(value, name="what was told")
    assert isinstance(found, Resource), "only resources are written"
    return found


def _with_old_date(resource: Resource, known: bytes) -> Resource:
    """Retain the time of a file whose digests did not change: only its metadata is newer."""
    before = _decode_resource(known) if known and resource.digests else None
    if before is None or before.digests != resource.digests or before.lastmod is None:
        return resource
    return replace(resource, lastmod=before.lastmod)
