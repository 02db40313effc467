"""Documents under the names of resync, read and written by our reader and writer."""

import io
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import IO, Any, BinaryIO, Final, Protocol, cast

from resourcesync.compat.resync.containers import ResourceContainer
from resourcesync.compat.resync.conversion import (
    change_timestamp,
    entry_of,
    link_dict,
    links_of,
    md_of,
    resource_of,
    times_of,
)
from resourcesync.compat.resync.errors import SitemapIndexError, SitemapParseError
from resourcesync.compat.resync.resources import CompatResource, LinkDict, now, to_moment
from resourcesync.documents.reader import Document, read_stream
from resourcesync.documents.writer import kind_of, write
from resourcesync.errors import DocumentError
from resourcesync.model.capabilities import Header, Part, RefusedEntry
from resourcesync.model.vocabulary import Capability, Dialect

LOGGER: Final = logging.getLogger("resync.sitemap")
_DATED: Final = frozenset({Dialect.V1_1})


class Container(Protocol):
    """A list that a document is read into."""

    md: dict[str, Any]
    ln: list[LinkDict]
    lists_all: bool

    def add(self, resource: Any) -> None:
        """Add a resource."""


class Sitemap:
    """``resync.sitemap.Sitemap``: reads and writes one document.

    Args:
        pretty_xml: Has no effect: each entry is on a line of its own.
        spec_version: ``1.0`` writes no ``datetime``; anything else is 1.1.
        add_lastmod: True to write the time of a change as ``lastmod``, too, if it has none.

    Attributes:
        parsed_index: The last document that was read is an index; ``None`` before.
        resources_created: Number of its entries.
    """

    def __init__(
        self, pretty_xml: bool = False, spec_version: str | None = "1.1", add_lastmod: bool = False
    ) -> None:
        self.logger = LOGGER
        self.pretty_xml = pretty_xml
        self.add_lastmod = add_lastmod
        self.parsed_index: bool | None = None
        self.resources_created = 0
        self._dialect = Dialect.V1_0 if spec_version == "1.0" else Dialect.V1_1

    def parse_xml(
        self,
        fh: IO[Any] | None = None,
        *,
        resources: Container | None = None,
        capability: str | None = None,
        sitemapindex: bool | None = None,
    ) -> Any:
        """Read a document; return its list.

        Args:
            fh: The document, as bytes or text; its address is its ``url``.
            resources: The list to add to; ``None`` for a new one.
            capability: The capability that it must have; ``None`` for any.
            sitemapindex: True for an index only, false for a list only, ``None`` for both.

        Raises:
            SitemapIndexError: An index in place of a list, or the reverse.
            SitemapParseError: The document, or one of its entries, cannot be used.
            ValueError: There is no ``fh``.
        """
        if fh is None:
            raise ValueError("there is no document: fh is None")
        if resources is None:
            resources = ResourceContainer()
        uri = str(getattr(fh, "url", ""))
        try:
            document = read_stream(_as_bytes(fh), uri=uri, on_refused=_refuse)
            self._check(document.header, capability, sitemapindex)
            resources.md = self._md(document.header, capability)
            resources.ln += map(link_dict, document.header.links)
            self._add_entries(document, resources)
            resources.lists_all = resources.lists_all and document.lists_all
        except (SitemapIndexError, SitemapParseError):
            raise
        except DocumentError as error:
            raise _parse_error(error) from error
        return resources

    def _check(self, header: Header, capability: str | None, sitemapindex: bool | None) -> None:
        self.parsed_index = header.is_index
        if sitemapindex is not None and header.is_index != sitemapindex:
            kinds = ("sitemapindex", "sitemap") if header.is_index else ("sitemap", "sitemapindex")
            raise SitemapIndexError(f"Got {kinds[0]} when expecting {kinds[1]}")
        found = header.capability
        plain = capability == Capability.RESOURCE_LIST and found is None
        if capability is not None and not plain and (found is None or found != capability):
            said = "no capability specified" if found is None else f"got {found.value}"
            raise SitemapParseError(f"Expected to read a {capability} document, {said}")

    def _md(self, header: Header, capability: str | None) -> dict[str, Any]:
        md: dict[str, Any] = md_of(header)
        if capability is not None and "capability" not in md:
            self.logger.warning("No capability specified in sitemap, assuming resourcelist")
            md["capability"] = capability
        return md

    def _add_entries(self, document: Document, resources: Container) -> None:
        entries = list(document.entries())
        # The version is certain once all entries were read.
        is_dated = document.dialect in _DATED
        for entry in entries:
            resources.add(resource_of(entry, is_dated=is_dated))
        for tolerated in document.tolerated:
            self.logger.warning("%s, line %d: %s", document.uri, tolerated.line, tolerated.reason)
        self.resources_created = len(entries)

    def resources_as_xml(
        self, resources: Iterable[Any], sitemapindex: bool = False, fh: IO[str] | None = None
    ) -> str | None:
        """Write a document to ``fh``, or return it if there is none.

        What the standard demands and the list does not say is added: ``at`` is the moment when the
        list was made, ``from`` the time of its first change. Entries of the document's own
        capability make it an index (§10.2, §12.2).

        Args:
            resources: The resources; its ``md`` and ``ln`` are the header.
            sitemapindex: True for an index.
            fh: A text file.

        Raises:
            ValueError: The document would not be valid.
        """
        entries = list(resources)
        md = getattr(resources, "md", {})
        capability = _capability(md.get("capability"))
        header = Header(
            capability=capability,
            is_index=sitemapindex or _are_parts(entries, capability),
            links=links_of(getattr(resources, "ln", ())),
            **_times(md, capability, entries, getattr(resources, "created_at", None)),
        )
        kind = kind_of(header)
        if kind is Part and capability is not None:
            _only_known_times(entries, capability)
        made = (entry_of(entry, kind, capability) for entry in entries)
        compat = self.add_lastmod and self._dialect is Dialect.V1_1
        xml = b"".join(write(header, made, self._dialect, lastmod_compat=compat)).decode()
        if fh is None:
            return xml
        fh.write(xml)
        return None


def _capability(text: object) -> Capability | None:
    """Return the capability of a list; one that is unknown makes a plain sitemap."""
    try:
        return Capability(str(text))
    except ValueError:
        if text is not None:
            LOGGER.warning("Unknown capability name %r: written as a plain sitemap", text)
        return None


def _are_parts(entries: list[CompatResource], capability: Capability | None) -> bool:
    """True if all entries have the document's own capability: it lists documents of its kind."""
    return (
        bool(entries)
        and capability is not None
        and not capability.is_archive
        and all(entry.capability == capability.value for entry in entries)
    )


def _times(
    md: Mapping[str, Any],
    capability: Capability | None,
    entries: list[CompatResource],
    created_at: float | None,
) -> dict[str, Any]:
    """Return the times of a header, those among them that the standard demands (Appendix A)."""
    told = times_of(md)
    if capability is None:
        return {}
    if capability.is_snapshot:
        made = to_moment(now() if created_at is None else created_at)
        assert made is not None, "only None has no moment"
        told.setdefault("at", made)
        return {name: moment for name, moment in told.items() if name in ("at", "completed")}
    if capability.is_log:
        if "from_" not in told:
            told["from_"] = _first_change(entries, created_at)
        return {name: moment for name, moment in told.items() if name in ("from_", "until")}
    return {}


def _first_change(entries: list[CompatResource], created_at: float | None) -> datetime:
    """Return the time since which a list of changes is surely whole: that of its first one."""
    found = [
        time
        for entry in entries
        for time in (entry.ts_from if entry.change is None else change_timestamp(entry),)
        if time is not None
    ]
    first = to_moment(min(found, default=now() if created_at is None else created_at))
    assert first is not None, "only None has no moment"
    return first


def _only_known_times(entries: list[CompatResource], capability: Capability) -> None:
    """Check that no part has times of another kind of list.

    Raises:
        ValueError: One has.
    """
    listed = capability.archived or capability
    wrong = ("ts_at", "ts_completed") if listed.is_log else ("ts_from", "ts_until")
    for entry in entries:
        if any(getattr(entry, name) is not None for name in wrong):
            raise ValueError(f"the part {entry.uri} has times that its kind of list has not")


def _as_bytes(fh: IO[Any]) -> BinaryIO:
    """Return a document as a stream of bytes; text is encoded first."""
    start = fh.read(0)
    return io.BytesIO(fh.read().encode()) if isinstance(start, str) else cast("BinaryIO", fh)


def _refuse(entry: RefusedEntry) -> None:
    """Refuse a document for one of its entries: callers of resync expect all or nothing.

    Raises:
        SitemapParseError: Always.
    """
    shown = f" ({entry.uri})" if entry.uri else ""
    raise SitemapParseError(f"{entry.reason}{shown}", line=entry.line, code=entry.code)


def _parse_error(error: DocumentError) -> SitemapParseError:
    return SitemapParseError(
        error.message,
        uri=error.uri,
        line=error.line,
        column=error.column,
        evidence=error.evidence,
        hint=error.hint,
        code=error.code,
    )
