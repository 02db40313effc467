"""Options of a pull, and the dependencies of a Destination."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol

import msgspec
from msgspec import structs

from resourcesync.destination.mapping.escapes import MapperFactory, load_no_mapper
from resourcesync.destination.planner import DeletionLimit, ReviewedDecision
from resourcesync.destination.reports import Mode
from resourcesync.destination.scope import Filters
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.ports import Clock, Copies, Fetcher, Reporter
from resourcesync.ports.cancellation import CancelToken

if TYPE_CHECKING:
    from resourcesync.ports.patches import PatchFormat

Deletion = Literal["auto", "signalled", "absent", "never"]
PullMode = Literal["auto", "baseline"]
AuditMethod = Literal["lists", "stat", "hash", "remote"]
"""What an audit compares: the state; also size and time; also bytes; or also what is served."""
DumpPolicy = Literal["auto", "never", "always"]
"""Use of dumps: where they are cheaper, not at all, or wherever they help."""
Review = Callable[[Mode, Callable[[], Iterator[ReviewedDecision]], int], None]
"""Review of the decisions of a pull before anything is changed; an exception ends the pull.

Called with the mode of the pull, a function that yields the decisions in URI order at each call,
and the number of up-to-date copies. For these, and for a resource that is not due, nothing is done:
the decisions leave them out.
"""


class PullOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one pull.

    Attributes:
        mode: ``auto`` uses the Change Lists if they reach back to the last state; ``baseline``
            compares with the whole Resource List.
        dry_run: Read and plan, change nothing.
        filters: All filters; ``None`` uses those of the last pull.
        changes: Filters that replace those, by name; the others stay.
        prune: Delete copies that no longer match the filters, too, within ``max_delete``; the whole
            Resource List is read for that.
        set_name: Set to follow, of several: its URI, name or number; empty: the one followed so
            far, or the only one.
        delete: ``signalled``: what a Change List calls deleted; ``absent``: also what a complete,
            newer Resource List no longer lists; ``never``: nothing. ``auto`` is ``absent`` for a
            Resource List and ``signalled`` for a plain sitemap, which promises less.
        max_delete: Limit of deletions in one run.
        trash_days: Days that deleted copies stay in the trash.
        verify: ``strict`` never keeps bytes that are not as listed.
        own_algorithm: Digest recorded of every copy.
        accept_missing: Count what the Source lists and does not serve (404, 410, its robots.txt, a
            redirect to another site) as absent or skipped, not as failed. It is stored; ``None``
            uses the stored value. Without one it is accepted at a plain sitemap.
        fail_fast: Stop at the first failure.
        max_duration: Seconds after which the run ends cleanly; the next one continues.
        max_bytes: Bytes after which no more is fetched; the next run continues.
        lists_only: Store what is listed, fetch and delete nothing; a later pull does.
        review: Receives the decisions before any of them is executed.
        dumps: ``auto``: resources come from packages of the Source's dumps where that costs less
            than single requests; ``never``: no dump is read; ``always``: wherever they help.
        mapper: Mapper of URIs to paths: a name, or a rule ``PATTERN => TEMPLATE``; empty: the
            mirror's.
        moved: The Source's new address, if it moved; its copies stay. Else empty.
        recheck: Seconds within which a copy that no listed hash proves is requested again; 0:
            never; ``None``: 7 days for a plain sitemap, 30 for other lists.
    """

    mode: PullMode = "auto"
    dry_run: bool = False
    filters: Filters | None = None
    changes: Mapping[str, object] = msgspec.field(default_factory=dict)
    prune: bool = False
    set_name: str = ""
    delete: Deletion = "auto"
    max_delete: DeletionLimit = msgspec.field(default_factory=DeletionLimit)
    trash_days: float = 30.0
    verify: Literal["strict", "lenient"] = "strict"
    own_algorithm: str = "sha-256"
    accept_missing: bool | None = None
    fail_fast: bool = False
    max_duration: float | None = None
    max_bytes: int | None = None
    lists_only: bool = False
    review: Review | None = None
    dumps: DumpPolicy = "auto"
    mapper: str = ""
    moved: str = ""
    recheck: float | None = None

    @property
    def all_filters(self) -> Filters:
        """All filters, with those that replace some of them."""
        return structs.replace(self.filters or Filters(), **dict(self.changes))


class FindingWriter(Protocol):
    """A writer of the findings of one audit, from which a repair reads them."""

    def add(self, fields: Mapping[str, object]) -> None:
        """Write one finding: its kind, URI, path and reason."""

    def set_name(self, audit: str, moment: str) -> None:
        """Set the audit's id and its time, as ``20261121020004``; without it nothing is stored."""


class _DiscardedFindings:
    """A writer that stores nothing."""

    def add(self, fields: Mapping[str, object]) -> None:
        """Do nothing."""

    def set_name(self, audit: str, moment: str) -> None:
        """Do nothing."""


@contextmanager
def discard_findings() -> Iterator[FindingWriter]:
    """Open a writer of findings that stores nothing."""
    yield _DiscardedFindings()


class Dependencies(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies of a Destination.

    ``source`` is the given address (``None``: that of the last pull). ``scratch`` opens an unnamed
    temporary file on the mirror's disk, ``purge`` removes one file of the trash for good,
    ``drop_parts`` the partial downloads that a later run could continue. ``traffic`` returns
    requests sent and bytes received, ``room`` the free bytes, ``certificate_until`` the end of the
    first TLS certificate of the servers of the lists. ``is_expected``: a first pull that fails is
    recorded. ``workers`` fetch the resources of a plan. ``resource_fetcher`` is the network without
    the measurement of clocks.
    """

    folder: str
    source: str | None = None
    fetcher: Fetcher
    copies: Copies
    state: SqliteMirrorState
    clock: Clock
    cancel: CancelToken
    report: Reporter
    scratch: Callable[[], BinaryIO]
    check_folder: Callable[[], None]
    purge: Callable[[str], None]
    drop_parts: Callable[[], None] = lambda: None
    is_case_sensitive: bool = True
    traffic: Callable[[], tuple[int, int]] = lambda: (0, 0)
    certificate_until: Callable[[], datetime | None] = lambda: None
    room: Callable[[], int | None] = lambda: None
    patches: "Mapping[str, PatchFormat]" = msgspec.field(default_factory=dict)
    mappers: Callable[[str], MapperFactory] = load_no_mapper
    is_expected: bool = False
    workers: Fetcher | None = None
    findings: Callable[[], AbstractContextManager[FindingWriter]] = discard_findings
    resource_fetcher: Fetcher | None = None
