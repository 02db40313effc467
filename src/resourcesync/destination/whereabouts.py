"""Whether a Source still offers its lists where a mirror reads them: its Capability List says so.

A list that stays at its old place says for ever that nothing is new. So when it says that, the
Capability List is asked too, which costs one small request.
"""

import logging
from dataclasses import dataclass
from typing import Final

import msgspec

from resourcesync.destination.history import open_lists_of
from resourcesync.destination.memory import SyncState
from resourcesync.destination.pulling import SyncSession
from resourcesync.discovery import DocumentFetcher, SourceLists, offered_by
from resourcesync.errors import DocumentError, SourceError
from resourcesync.model.timestamps import format_w3c

_log = logging.getLogger(__name__)
_HOUR: Final = 3_600_000_000
_NOTE: Final = "capability-list"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProbeRecord:
    """When a Capability List was asked for last, and how it is asked for conditionally."""

    uri: str
    etag: str
    last_modified: str
    at: int


class CapabilityListProbe:
    """Where the Source of one pull offers its lists now.

    Args:
        pull: The pull; what it found must be what the mirror followed before to be asked after.

    Attributes:
        found: What the Source offers now, once `are_others` said so.
    """

    def __init__(self, pull: SyncSession) -> None:
        self._pull = pull
        self._sync_state = SyncState(pull.state)
        self.found: SourceLists | None = None

    def probe(self) -> bool:
        """Whether the Source offers other lists now than those that the pull reads.

        What was found in this very run is not asked after, nor is a Source that has no Capability
        List. One that cannot be had or used says nothing.
        """
        known = self._pull.discovered
        uri = known.capability_list
        if uri is None or known != self._sync_state.discovered or self._is_recent(known):
            return False
        try:
            found = self._read_capability_list(uri, known)
        except (SourceError, DocumentError) as error:
            _log.info("asking where the lists are: %s", error)
            return False
        if found is None or found == known or found.resource_list is None:
            return False
        _log.info("the Source offers other lists than before")
        self.found = found
        return True

    def _is_recent(self, known: SourceLists) -> bool:
        """Whether an index and its open lists were asked less than an hour ago."""
        open_lists = open_lists_of(known.change_list or "", self._pull.state)
        asked = self._last_probe(known.capability_list or "")
        return bool(open_lists) and asked is not None and 0 <= self._pull.now - asked.at < _HOUR

    def _read_capability_list(self, uri: str, known: SourceLists) -> SourceLists | None:
        """Read the Capability List; ``None`` when it did not change."""
        equipment, before = self._pull.dependencies, self._last_probe(uri)
        documents = DocumentFetcher(equipment.fetcher, equipment.scratch)
        fetched = documents.get(
            uri,
            etag=before.etag if before else "",
            last_modified=before.last_modified if before else "",
        )
        if fetched is None:
            assert before is not None, "only a conditional request is answered with 304"
            self._record_probe(before.etag, before.last_modified, uri)
            return None
        with fetched:
            found = offered_by(fetched.open(), known)
        if found == known:  # what is not followed yet is to be read again
            self._record_probe(fetched.etag, fetched.last_modified, uri)
        return found

    def _last_probe(self, uri: str) -> _ProbeRecord | None:
        try:
            asked = msgspec.json.decode(
                self._pull.state.note(_NOTE) or "null", type=_ProbeRecord | None
            )
        except msgspec.MsgspecError:
            return None  # it is only read once more
        return asked if asked is not None and asked.uri == uri else None

    def _record_probe(self, etag: str, last_modified: str, uri: str) -> None:
        if self._pull.options.dry_run:
            return
        asked = _ProbeRecord(uri=uri, etag=etag, last_modified=last_modified, at=self._pull.now)
        self._sync_state.write(capability_list=asked)


def report_source(pull: SyncSession) -> None:
    """Say where the Source's lists are, and how far the mirror knows it."""
    found, as_of = pull.found, pull.sync_state.as_of
    resource_dump, change_dump = found.resource_dump, found.change_dump
    pull.dependencies.report(
        "source",
        {
            "entry": found.entry,
            "spec": found.dialect.phrase_for(None),
            "description": found.description,
            "set": found.capability_list,
            "resource_list": None if found.resource_list == resource_dump else found.resource_list,
            "change_list": None if found.change_list == change_dump else found.change_list,
            "resource_dump": resource_dump,
            "change_dump": change_dump,
            "sitemap": found.is_sitemap,
            "found_by": found.road,
            "as_of": None if as_of is None else format_w3c(as_of),
        },
    )
