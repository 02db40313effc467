"""Freshness checks: of closed Change Lists, once a day, and of the Resource List.

A pull reads a closed list once. If a Source changes it later, the digest of its processed changes
shows it. A Resource List is its documents: a list, or an index and its parts. Each is requested
conditionally, except parts that the index proves to be unchanged.
"""

import logging
from contextlib import closing
from typing import Final

from msgspec import structs

from resourcesync.destination.changes.times import ListPrefix, is_later, is_plausible
from resourcesync.destination.lists.proof import ListVersion
from resourcesync.destination.lists.resource_reader import list_version
from resourcesync.destination.session import SyncSession
from resourcesync.errors import DocumentError, ResourceSyncError, SourceError, StorageError
from resourcesync.model.resources import Change
from resourcesync.model.timestamps import DAY
from resourcesync.model.vocabulary import Capability

_log = logging.getLogger(__name__)
_MAX_CLOSED_LISTS: Final = 50
"""Closed lists checked in a day, the newest ones; each is a small request."""


def find_changed_closed_list(pull: SyncSession) -> str:
    """Return a closed Change List that changed since it was processed; empty if there is none.

    Checks at most once a day, and writes only the time of the check, and that only if nothing
    changed: the caller stores it together with what follows. A list that cannot be fetched or used
    proves nothing.
    """
    checked_at = pull.cursor.closed_lists_checked_at
    if Capability.CHANGE_DUMP in pull.listing_dumps:
        return ""  # packages in place of lists are too large to be requested again
    if checked_at is not None and 0 <= pull.now - checked_at < DAY:
        return ""
    changed = "" if checked_at is None else _find_changed(pull)  # the lists were read just now
    if not changed:
        pull.move(structs.replace(pull.cursor, closed_lists_checked_at=pull.now))
    return changed


def _find_changed(pull: SyncSession) -> str:
    for seen in pull.state.closed_documents(_MAX_CLOSED_LISTS):
        try:
            fetched = pull.documents.get(seen.uri, seen)
            if fetched is None:
                continue
            with fetched:
                prefix = ListPrefix(pull.selection.mirror_uri)
                for entry in fetched.open().entries():
                    if isinstance(entry, Change):
                        prefix.add(entry)
                if prefix.entries != seen.entries or prefix.hexdigest() != seen.prefix:
                    return seen.uri
        except (SourceError, DocumentError) as error:
            _log.info("cannot check a closed list: %s", error)
    return ""


class NewerListCheck:
    """Check for a newer Resource List.

    ``known``: versions that need not be requested again, once `check` found nothing newer.
    """

    def __init__(self, pull: SyncSession, known: ListVersion) -> None:
        self.known = known
        self._pull, self._documents = pull, pull.documents
        # Without a change to continue from, only the list proves the state.
        self._is_only_proof = not any(done.entries for done in pull.cursor.processed)

    def _is_plausible(self, at: int | None) -> bool:
        through, now = self._pull.cursor.checkpoint or 0, self._pull.now
        return at is None or is_plausible(at, through=through, now=now)

    def check(self) -> bool:
        """Return whether the list, or a part of it, changed and is of no earlier moment.

        A part that cannot be fetched or used now proves nothing.
        """
        return self._check_head() or self._check_parts()

    def _check_head(self) -> bool:
        known = self.known
        is_known = known.parts is not None
        fetched = self._documents.get(known.uri, known if is_known else None)
        if fetched is None:
            return False
        with fetched:
            head = list_version(fetched)
        at = self._known_moment(known)
        is_other = head.digest != known.digest
        if is_other and ((self._is_only_proof and known.digest) or self._is_later(head, at)):
            return self._is_plausible(head.at)
        if head.parts is None and not is_known:  # an index with unknown parts
            return head.at is None or at is None or head.at >= at
        parts = known.parts if head.parts is None else ()
        self.known = structs.replace(head, at=at, parts=parts)  # need not be sent again
        return False

    def _check_parts(self) -> bool:
        if not self.known.parts:
            return False
        parts = {part.uri: part for part in self.known.parts}
        unknown: set[str] = set()

        def record_unknown(uri: str, error: ResourceSyncError) -> None:
            if isinstance(error, StorageError):
                raise error
            _log.info("cannot check whether a part of a list is newer: %s", error)
            unknown.add(uri)

        with closing(self._documents.get_all({**parts}, record_unknown)) as changed_parts:
            for fetched in changed_parts:
                known = parts[fetched.uri]
                try:
                    with fetched:
                        part = list_version(fetched)
                except DocumentError as error:
                    record_unknown(fetched.uri, error)
                    continue
                at = self._known_moment(known)
                if part.digest == known.digest or not self._is_later(part, at):
                    parts[part.uri] = structs.replace(part, at=known.at, over=known.over)
                elif self._is_plausible(part.at):
                    return True
                else:
                    unknown.add(part.uri)
        left = (
            part
            for part in parts.values()
            if part.uri in unknown or not self._depends_on_index(part)
        )
        self.known = structs.replace(self.known, parts=tuple(left))
        return False

    def _depends_on_index(self, part: ListVersion) -> bool:
        """True if a part that was just requested can change only together with its index."""
        return part.over is not None and part.over <= self._pull.now

    def _known_moment(self, known: ListVersion) -> int | None:
        return self._pull.cursor.resource_list_at if known.at is None else known.at

    @staticmethod
    def _is_later(other: ListVersion, at: int | None) -> bool:
        return other.at is None or at is None or is_later(other.at, at)
