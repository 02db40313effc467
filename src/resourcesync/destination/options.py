"""Dependencies of a Destination, and the options of one pull, each described where it is used."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, Literal, Protocol

import msgspec
from msgspec import UNSET, UnsetType, structs

from resourcesync.model import settings
from resourcesync.model.timestamps import resolve_moment
from resourcesync.ports import CancelToken, Clock, Copies, Fetcher, Reporter

if TYPE_CHECKING:
    from resourcesync.destination.planner import ReviewedDecision
    from resourcesync.destination.reports import Mode
    from resourcesync.destination.scope_and_filters import Filters
    from resourcesync.mirror_state.database import SqliteMirrorState
    from resourcesync.ports import StoredParts
    from resourcesync.ports.patches import PatchFormat

Deletion = Literal["auto", "signalled", "absent", "never"]
PullMode = Literal["auto", "baseline"]
"""What an audit compares: the state; also size and time; also bytes; or also what is served."""
DumpPolicy = Literal["auto", "never", "always"]
"""Use of dumps: where they are cheaper, not at all, or wherever they help."""
Review = Callable[["Mode", Callable[[], Iterator["ReviewedDecision"]], int], None]
"""Review of the decisions of a pull before anything is changed; an exception ends the pull.

Called with the mode of the pull, a function that yields the decisions in URI order at each call,
and the number of up-to-date copies. For these, and for a resource that is not due, nothing is done:
the decisions leave them out.
"""

_DAY: Final = 86_400.0
_DEL, _VER, _SEL = (
    settings.Section.DELETION,
    settings.Section.VERIFICATION,
    settings.Section.SELECTION,
)
_TRA, _STO, _MAIN = settings.Section.TRANSFER, settings.Section.STORAGE, settings.Section.MAIN
DEFAULT_LIMIT: Final = settings.Limit(percent=10.0)


class StoredOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that a mirror remembers until they are given again, besides its filters."""

    delete: Deletion | None = None
    accept_missing: bool | None = None


class PullOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one pull. Filters and ``stored`` that are not set are as the mirror remembers.

    Attributes:
        dry_run: Read and plan, change nothing.
        review: Receives the decisions before any of them is executed.
        filters: All filters; ``None``: those of the last pull. Those that are set replace them.
        stored: The other options to remember, likewise.
        set_name: Set to follow, of several: its URI, name or number; empty: the one followed so
            far, or the only one.
        own_algorithm: Digest recorded of every copy.
    """

    prune: Annotated[
        bool,
        settings.Setting(
            "Also delete copies that no longer match the filters, into the trash and as far as the "
            "limit of deletions allows. This reads the whole Resource List.",
            _DEL,
            in_file=False,
            is_option=True,
        ),
    ] = False
    lists_only: Annotated[
        bool,
        settings.Setting(
            "Only record what the Source lists; a later pull fetches and deletes.",
            _TRA,
            in_file=False,
            is_option=True,
        ),
    ] = False
    moved: Annotated[
        str,
        settings.Setting(
            "The new address of the Source: all copies stay, and are compared with the lists "
            "there. Check with -n first.",
            _STO,
            metavar="URL",
            in_file=False,
            in_library=False,
            is_option=True,
        ),
    ] = ""
    mode: Annotated[
        PullMode,
        settings.Setting(
            "Follow the Change Lists where they reach back (auto), or compare with the whole "
            "Resource List (baseline).",
            shown="auto",
            in_library=False,
            is_option=True,
        ),
    ] = "auto"
    delete: Annotated[
        Deletion | None,
        settings.Setting(
            "Delete resources that a Change List lists as deleted (signalled), also those that a "
            "newer Resource List no longer lists (absent), or none (never). auto: absent for a "
            "Resource List, signalled for a plain sitemap. The mirror remembers it.",
            shown="auto",
            is_option=True,
        ),
    ] = None
    max_delete: Annotated[
        settings.Limit,
        settings.Setting(
            "Hold all deletions back if there are more. With P%, 25 are always allowed, but never "
            "more than half of the copies if the lists only no longer contain them.",
            _MAIN,
            settings.LIMIT,
            "N|P%",
            shown="10%",
            is_option=True,
        ),
    ] = DEFAULT_LIMIT
    trash: Annotated[
        float,
        settings.Setting(
            "Time that deleted copies stay in the mirror's trash; 0: no trash.",
            _DEL,
            settings.DURATION,
            shown="30d",
        ),
    ] = 30 * _DAY
    verify: Annotated[
        Literal["strict", "lenient"],
        settings.Setting(
            "Refuse bytes that do not match the list (strict), or store and mark them (lenient): "
            "a copy that does not match the list is never in sync (exit 3).",
            _VER,
            shown="strict",
        ),
    ] = "strict"
    dumps: Annotated[
        DumpPolicy,
        settings.Setting(
            "Use packages of the Source's dumps where they cost less than single requests (auto), "
            "never, or wherever possible (always).",
            _TRA,
            shown="auto",
        ),
    ] = "auto"
    accept_missing: Annotated[
        bool | None,
        settings.Setting(
            "Listed resources that the Source does not deliver are not failures (404, 410, "
            "robots.txt, a redirect to another site): they are counted as absent or skipped, "
            "exit 0. The mirror remembers it; for a plain sitemap it is the default.",
            _VER,
            is_stored=True,
            is_option=True,
        ),
    ] = None
    changes_only: Annotated[
        bool,
        settings.Setting(
            "The Source lists changes only: accept that what did not change since the mirror began "
            "is unknown. The mirror remembers it; `status` shows the moment.",
            _VER,
            in_file=False,
            is_option=True,
        ),
    ] = False
    recheck: Annotated[
        float | None,
        settings.Setting(
            "Request each page that is known by its date alone again within this time, a few in "
            "each pull: many sites change pages without a new date. 0: never. Default: 7d for a "
            "plain sitemap, 30d for other lists without hashes.",
            _VER,
            settings.DURATION,
        ),
    ] = None
    fail_fast: Annotated[bool, settings.Setting("Stop at the first failure.", _TRA)] = False
    max_duration: Annotated[
        float | None,
        settings.Setting(
            "Stop cleanly after this time, such as 10m (exit 10); the next run continues.",
            _TRA,
            settings.DURATION,
            is_option=True,
        ),
    ] = None
    max_bytes: Annotated[
        int | None,
        settings.Setting(
            "Stop cleanly before more bytes are received, such as 2G (exit 10); the next run "
            "continues. At least one resource is fetched.",
            _TRA,
            settings.SIZE,
        ),
    ] = None
    include: Annotated[
        tuple[str, ...] | UnsetType,
        settings.Setting(
            "Only resources whose path matches: * stops at /, ** does not; a pattern without a "
            "leading / matches in each folder. A mirror remembers this and each filter below until "
            "it is given again; an empty value ('') removes it.",
            metavar="GLOB",
            is_clearable=True,
            is_option=True,
        ),
    ] = UNSET
    exclude: Annotated[
        tuple[str, ...] | UnsetType,
        settings.Setting(
            "No resources whose path matches.", metavar="GLOB", is_clearable=True, is_option=True
        ),
    ] = UNSET
    types: Annotated[
        tuple[str, ...] | UnsetType,
        settings.Setting(
            "Only resources whose listed media type is this, or that list none.",
            _SEL,
            metavar="MIME",
            key="type",
            is_clearable=True,
            is_option=True,
        ),
    ] = UNSET
    max_size: Annotated[
        int | UnsetType | None,
        settings.Setting(
            "No resources of a larger listed length, such as 5M; those without one are fetched.",
            _SEL,
            settings.SIZE,
            is_clearable=True,
        ),
    ] = UNSET
    since: Annotated[
        datetime | timedelta | UnsetType | None,
        settings.Setting(
            "Only resources modified since, such as -7d or a date.",
            _SEL,
            settings.MOMENT,
            is_clearable=True,
            is_option=True,
        ),
    ] = UNSET
    links: Annotated[
        tuple[str, ...] | UnsetType,
        settings.Setting(
            "Also resources that selected entries link to by this relation, such as describedby.",
            _SEL,
            metavar="REL",
            key="link",
            is_clearable=True,
        ),
    ] = UNSET
    allow_origins: Annotated[tuple[str, ...] | UnsetType, settings.ALLOW_ORIGIN] = UNSET
    mapper: Annotated[
        str,
        settings.Setting(
            "The mapping from URIs to paths: tree (the names of the Source), pages (the same, and "
            "/docs/intro as docs/intro/index.html), or a rule such as "
            "'bitstream/{item}/{name} => {item}/{name}'. It cannot be changed later.",
            _STO,
            metavar="RULE",
            key="map",
        ),
    ] = ""
    dry_run: bool = False
    review: Review | None = None
    filters: "Filters | None" = None
    stored: StoredOptions | None = None
    set_name: str = ""
    own_algorithm: str = "sha-256"

    @property
    def all_filters(self) -> "Filters":
        """The filters of a pull that has begun, or of the last one."""
        from resourcesync.destination.scope_and_filters import Filters  # noqa: PLC0415 - help stays quick

        return self.filters or Filters()

    def with_stored(
        self, known: "Filters | None", stored: StoredOptions | None, now: datetime
    ) -> "PullOptions":
        """Return the options with what the mirror remembers, where nothing else is set."""
        kept = structs.asdict(self.stored or stored or StoredOptions())
        own = {name: getattr(self, name) for name in kept}
        kept |= {name: value for name, value in own.items() if value is not None}
        before = (self if self.filters else structs.replace(self, filters=known)).all_filters
        chosen = {name: getattr(self, name) for name in before.__struct_fields__}
        if isinstance(since := chosen["since"], timedelta):
            chosen["since"] = resolve_moment(since, now)
        given = {name: value for name, value in chosen.items() if value is not UNSET}
        filters = structs.replace(before, **given)
        return structs.replace(self, filters=filters, stored=StoredOptions(**kept), **kept)


class FindingWriter(Protocol):
    """A writer of the findings of one audit, from which a repair reads them."""

    def add(self, fields: Mapping[str, object]) -> None:
        """Write one finding: its kind, URI, path and reason."""

    def set_name(self, audit: str, moment: str) -> None:
        """Set the audit's id and its time, as ``20261121020004``; without it nothing is stored."""


class Dependencies(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies of a Destination.

    ``source`` is the given address (``None``: that of the last pull). ``scratch`` opens an unnamed
    temporary file on the mirror's disk, ``purge`` removes one file of the trash for good,
    ``drop_parts`` the partial downloads that a later run could continue. ``traffic`` returns
    requests sent and bytes received, ``room`` the free bytes, ``certificate_until`` the end of the
    first TLS certificate of the servers of the lists. ``is_expected``: a first pull that fails is
    recorded. ``workers`` fetch the resources of a plan. ``resource_fetcher`` is the network without
    the measurement of clocks. ``stored_parts`` returns the parts of the Resource List read last.
    """

    folder: str
    source: str | None = None
    fetcher: Fetcher
    copies: Copies
    state: "SqliteMirrorState"
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
    patches: "Callable[[], Mapping[str, PatchFormat]]" = dict
    is_expected: bool = False
    workers: Fetcher | None = None
    findings: Callable[[], AbstractContextManager[FindingWriter | None]] = nullcontext
    resource_fetcher: Fetcher | None = None
    stored_parts: "Callable[[], StoredParts | None]" = lambda: None
