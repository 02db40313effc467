"""Closed Change Lists are asked again once a day: a Source may change what it called closed.

A pull reads a closed list once. What a Source slips into it later would only show when a Resource
List is read; here the digest of what was processed tells.
"""

import logging
from typing import Final

from resourcesync.destination.cursor import DAY, ListPrefix
from resourcesync.destination.memory import SyncState
from resourcesync.destination.pulling import SyncSession
from resourcesync.discovery import DocumentFetcher, FetchedDocument
from resourcesync.errors import DocumentError, SourceError
from resourcesync.model.resources import Change
from resourcesync.model.vocabulary import Capability
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
