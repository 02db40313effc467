"""Closed Change Lists are asked again once a day: a Source may change what it called closed.

A pull reads a closed list once. What a Source slips into it later would only show when a Resource
List is read; here the digest of what was processed tells.

Whether a Source has a newer Resource List than the one that a mirror read last.

A Resource List is its documents: a list, or an index and its parts. Each of them is asked for with
a condition, but for the parts that the index proves to be what they were.
"""

import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Final

from resourcesync.destination.cursor import DAY, ListPrefix, is_later
from resourcesync.destination.resource_reader import ListVersion, list_version
from resourcesync.destination.session import SyncSession
from resourcesync.destination.sync_state import SyncState
from resourcesync.discovery import DocumentFetcher, FetchedDocument
from resourcesync.errors import DocumentError, ResourceSyncError, SourceError, StorageError
from resourcesync.model.resources import Change
from resourcesync.model.vocabulary import Capability
from resourcesync.ports.fetcher import CacheValidators
from resourcesync.ports.mirror import ProcessedDocument

_log = logging.getLogger(__name__)
_MAX_CLOSED_LISTS: Final = 50
"""Lists that are asked again in a day, the newest ones; each is a small request."""


def find_changed_closed_list(pull: SyncSession) -> str:
    """Return a closed Change List that is not what it was when it was processed; empty for none.

    Asks nobody more often than once a day, and changes nothing but the note of when it asked, and
    that only where none has changed: the caller notes it together with what follows. A list that
    cannot be had or used says nothing.

    Args:
        pull: What the pull works with.
    """
    memory = SyncState(pull.state)
    asked = memory.closed_lists_checked_at
    if Capability.CHANGE_DUMP in pull.listing_dumps:
        return ""  # a dump stands for the lists: its packages are too large to be asked again
    if asked is not None and 0 <= pull.now - asked < DAY:
        return ""
    changed = "" if asked is None else _find_changed(pull)  # what is known was read just now
    if not changed:
        memory.write(closed_asked_at=pull.now)
    return changed


def _find_changed(pull: SyncSession) -> str:
    documents = DocumentFetcher(pull.dependencies.fetcher, pull.dependencies.scratch)
    for seen in pull.state.closed_documents(_MAX_CLOSED_LISTS):
        try:
            fetched = documents.get(seen.uri, etag=seen.etag, last_modified=seen.last_modified)
            if fetched is None:
                continue
            with fetched:
                if _differs(fetched, seen):
                    return seen.uri
        except (SourceError, DocumentError) as error:
            _log.info("asking a closed list again: %s", error)
    return ""


def _differs(fetched: FetchedDocument, seen: ProcessedDocument) -> bool:
    prefix = ListPrefix()
    for entry in fetched.open().entries():
        if isinstance(entry, Change):
            prefix.add(entry)
    return prefix.entries != seen.entries or prefix.hexdigest() != seen.prefix


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
        parts = {part.uri: part for part in self.known.parts}
        unknown: set[str] = set()

        def pass_over(uri: str, error: ResourceSyncError) -> None:
            if isinstance(error, StorageError):
                raise error
            _log.info("asking whether a part of a list is newer: %s", error)
            unknown.add(uri)

        versions = {
            part.uri: CacheValidators(part.etag, part.last_modified) for part in parts.values()
        }
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
        left = (
            part
            for part in parts.values()
            if part.uri in unknown or not self._depends_on_index(part)
        )
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
