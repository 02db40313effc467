"""Whether a Source has a newer Resource List than the one that a mirror read last.

A Resource List is its documents: a list, or an index and its parts. Each of them is asked for with
a condition, but for the parts that the index proves to be what they were.
"""

import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from resourcesync.destination.cursor import is_later
from resourcesync.destination.resource_lists import ListVersion, list_version
from resourcesync.discovery import DocumentFetcher
from resourcesync.errors import DocumentError, ResourceSyncError, StorageError
from resourcesync.ports.fetcher import CacheValidators

_log = logging.getLogger(__name__)


class NewerListCheck:
    """Asks whether there is a newer Resource List.

    Args:
        documents: Gets documents.
        known: The version that was read last; of one that nobody knows, its address.
        read_at: ``at`` of the Resource List that was read last, microseconds; ``None`` when it
            told none.
        now: The present moment, microseconds.
        believes: Says whether a moment is believed.

    Attributes:
        known: What need not be read any more, once `is_there` said that nothing is newer.
    """

    def __init__(
        self,
        documents: DocumentFetcher,
        known: ListVersion,
        *,
        read_at: int | None,
        now: int,
        believes: Callable[[int], bool],
    ) -> None:
        self.known = known
        self._documents = documents
        self._read_at = read_at
        self._now = now
        self._is_plausible = believes

    def check(self) -> bool:
        """Return whether the list, or a part of it, is another one and of no earlier moment.

        A part that cannot be had or used now says nothing.

        Raises:
            SourceError: The list or its index could not be had.
            DocumentError: It cannot be used.
        """
        return self._check_head() or self._check_parts()

    def _check_head(self) -> bool:
        known = self.known
        is_known = known.parts is not None
        fetched = self._documents.get(
            known.uri,
            etag=known.etag if is_known else "",
            last_modified=known.last_modified if is_known else "",
        )
        if fetched is None:
            return False
        with fetched:
            head = list_version(fetched)
        at = self._known_moment(known)
        if head.digest != known.digest and self._is_later(head, at):
            return head.at is None or self._is_plausible(head.at)
        if head.parts is None and not is_known:  # an index whose parts nobody knows
            return head.at is None or at is None or head.at >= at
        parts = known.parts if head.parts is None else ()
        self.known = replace(head, at=at, parts=parts)  # it need not be sent again
        return False

    def _check_parts(self) -> bool:
        if not self.known.parts:
            return False
        parts = {it.uri: it for it in self.known.parts}
        unknown: set[str] = set()

        def pass_over(uri: str, error: ResourceSyncError) -> None:
            if isinstance(error, StorageError):
                raise error
            _log.info("asking whether a part of a list is newer: %s", error)
            unknown.add(uri)

        versions = {it.uri: CacheValidators(it.etag, it.last_modified) for it in parts.values()}
        with closing(self._documents.fetch_changed(versions, pass_over)) as others:
            for fetched in others:
                known = parts[fetched.uri]
                try:
                    with fetched:
                        part = list_version(fetched)
                except DocumentError as error:
                    pass_over(fetched.uri, error)
                    continue
                at = self._known_moment(known)
                if part.digest == known.digest or not self._is_later(part, at):
                    parts[part.uri] = replace(part, at=known.at, over=known.over)
                elif part.at is None or self._is_plausible(part.at):
                    return True
                else:
                    unknown.add(part.uri)
        left = (it for it in parts.values() if it.uri in unknown or not self._depends_on_index(it))
        self.known = replace(self.known, parts=tuple(left))
        return False

    def _depends_on_index(self, part: ListVersion) -> bool:
        """Whether a part that was asked for just now can change only together with its index."""
        return part.over is not None and part.over <= self._now

    def _known_moment(self, known: ListVersion) -> int | None:
        return self._read_at if known.at is None else known.at

    @staticmethod
    def _is_later(other: ListVersion, at: int | None) -> bool:
        return other.at is None or at is None or is_later(other.at, at)
