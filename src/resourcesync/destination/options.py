"""What the operator may choose for a pull, and what the Destination works with."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO, Literal, Protocol

from resourcesync.destination.dump_policy import DumpPolicy
from resourcesync.destination.mappers import MapperFactory, load_no_mapper
from resourcesync.destination.planner import Decision, DeletionLimit
from resourcesync.destination.reports import Mode
from resourcesync.ports import Clock, Copies, Fetcher, Reporter
from resourcesync.ports.mirror import MirrorStateStore
from resourcesync.ports.patches import PatchFormat

Deletion = Literal["auto", "signalled", "absent", "never"]
PullMode = Literal["auto", "baseline", "incremental"]
Review = Callable[[Mode, Callable[[], Iterator[Decision]], int], None]
"""Looks at what a pull decided before anything is changed; what it raises ends the pull.

It is given how the pull will be done, what yields the decisions in URI order as often as it is
called, and how many copies are in step besides those of which the decisions say so.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which of the listed resources are wanted. They are remembered with the mirror.

    Attributes:
        include, exclude: Globs on the URI's path.
        types: Media types.
        max_size: Bytes.
        since: Only resources modified since, UTC.
        allow_origins: Origins that the Source may speak for besides its own.
        links: Relations; what chosen entries link to with one of them is wanted too.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    max_size: int | None = None
    since: datetime | None = None
    allow_origins: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PullOptions:
    """How one pull is done.

    Attributes:
        mode: ``auto`` takes the Change Lists when they reach back to the last state.
        dry_run: Read and plan, change nothing.
        filters: All filters; ``None`` uses those of the last pull.
        changes: Filters that take the place of those, by their names; the others still hold.
        prune: Whether copies that the filters do not want any more are deleted too, as far as
            ``max_delete`` allows; the whole Resource List is read for that.
        set_name: Which set of several: its URI, name or number; empty takes the one followed so
            far, or the only one.
        delete: ``signalled``: what a Change List calls deleted; ``absent``: also what a complete,
            newer Resource List lists no more; ``never``: nothing. ``auto`` is ``absent`` for a
            Resource List and ``signalled`` for a plain sitemap, which promises less.
        max_delete: How many copies one run may delete.
        trash_days: How long deleted copies wait in the trash.
        verify: ``strict`` never keeps bytes that are not what the list says.
        own_algorithm: The digest recorded of every copy.
        accept_missing: Whether what the Source lists and does not give (404, 410, its robots.txt,
            a redirect to another site) is no failure, but counted as absent or skipped. It is
            remembered; ``None`` takes what is. Without any word a plain sitemap's is accepted.
        fail_fast: Stop at the first failure.
        max_duration: Seconds after which the run ends in good order; the next one goes on.
        max_bytes: Bytes after which no more is fetched; the next run goes on.
        lists_only: Remember what is listed, and fetch and delete nothing; a later pull does.
        review: Shown what was decided, before any of it is done.
        dumps: ``auto``: packages of the Source's dumps bring resources where that costs less than
            single requests; ``never``: no dump is read; ``always``: wherever they help.
        mapper: What gives each URI its place: a name, or a rule ``PATTERN => TEMPLATE``; empty
            takes the one of the mirror.
        moved: The Source's address now, where it moved; its copies stay. Empty where it did not.
    """

    mode: PullMode = "auto"
    dry_run: bool = False
    filters: Filters | None = None
    changes: Mapping[str, object] = field(default_factory=dict)
    prune: bool = False
    set_name: str = ""
    delete: Deletion = "auto"
    max_delete: DeletionLimit = field(default_factory=DeletionLimit)
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


class SyncStrategy(Protocol):
    """How a Destination synchronizes, where that is not done here by itself."""

    def baseline(self, pull: Any) -> Any:
        """Return what does baseline synchronization for a pull, as ``Baseline`` does."""
        ...

    def incremental(self, pull: Any, are_others: Callable[[], bool]) -> Any:
        """Return what does incremental synchronization for a pull, as ``Incremental`` does."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What a Destination works with.

    Attributes:
        folder: The mirror, as people name it.
        fetcher: The network.
        copies: The mirror's files.
        state: The mirror's memory.
        clock: Time.
        report: Takes events.
        scratch: Opens a nameless temporary file on the mirror's disk.
        check_folder: Raises when the mirror's folder is not the one we knew.
        purge: Removes one place of the trash for good.
        drop_parts: Removes the parts of resources that a later run could go on from.
        tells_case: Whether the file system of a new mirror takes no two names for one: tells upper
            from lower case, and the Unicode forms of a letter.
        traffic: Returns requests sent and bytes received so far.
        room: Returns how many bytes are free on the mirror's disk; ``None`` when nobody knows.
        lift_deadline: Takes away the deadline that the clock may have.
        patches: The formats of patches that can be applied, by media type.
        mappers: Returns a plug-in that gives URIs their places, by its name.
        is_expected: Whether a first pull that fails is remembered: a mirror is to be here.
        ways: How it synchronizes, where others help; ``None``: by itself.
    """

    folder: str
    fetcher: Fetcher
    copies: Copies
    state: MirrorStateStore
    clock: Clock
    report: Reporter
    scratch: Callable[[], BinaryIO]
    check_folder: Callable[[], None]
    purge: Callable[[str], None]
    drop_parts: Callable[[], None] = lambda: None
    is_case_sensitive: bool = True
    traffic: Callable[[], tuple[int, int]] = lambda: (0, 0)
    room: Callable[[], int | None] = lambda: None
    lift_deadline: Callable[[], None] = lambda: None
    patches: Mapping[str, PatchFormat] = field(default_factory=dict)
    mappers: Callable[[str], MapperFactory] = load_no_mapper
    is_expected: bool = False
    strategy: SyncStrategy | None = None
