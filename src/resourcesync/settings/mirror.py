"""Settings of mirrors: of each pull, the schedule, the place, and the service for all of them."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from resourcesync.settings.network import ALLOW_ORIGIN
from resourcesync.settings.schema import (
    BINDING,
    DURATION,
    FILE,
    FOLDER,
    LIMIT,
    MOMENT,
    SIZE,
    Section,
    Setting,
    whole,
)
from resourcesync.settings.values import Limit

_DAY = 86_400.0
_SEL, _DEL, _VER = Section.SELECTION, Section.DELETION, Section.VERIFICATION
_TRA, _STO, _MAIN = Section.TRANSFER, Section.STORAGE, Section.MAIN
DEFAULT_LIMIT: Final = Limit(percent=10.0)


class PullSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a pull. A filter that is not set is as the mirror remembers it.

    Attributes:
        set_names: Sets of resources to follow, if the Source offers several.
    """

    prune: Annotated[
        bool,
        Setting(
            "Also delete copies that no longer match the filters, into the trash and as far as the "
            "limit of deletions allows. This reads the whole Resource List.",
            _DEL,
            in_file=False,
            is_option=True,
        ),
    ] = False
    lists_only: Annotated[
        bool,
        Setting(
            "Only record what the Source lists; a later pull fetches and deletes.",
            _TRA,
            in_file=False,
            is_option=True,
        ),
    ] = False
    moved: Annotated[
        str,
        Setting(
            "The new address of the Source: all copies stay, and are compared with the lists "
            "there. Check with -n first.",
            _STO,
            metavar="URL",
            in_file=False,
            in_library=False,
            is_option=True,
        ),
    ] = ""
    set_names: Annotated[
        tuple[str, ...],
        Setting(
            "The set of resources, if the Source offers several. Repeat for several: each set "
            "gets its own mirror, in a folder below DEST.",
            _SEL,
            metavar="URI|NAME|NUMBER",
            key="set",
            in_library=False,
            is_option=True,
        ),
    ] = ()
    all_sets: Annotated[
        bool,
        Setting(
            "A mirror for each set, in a folder below DEST; new sets are added later.",
            _SEL,
            in_library=False,
            is_option=True,
        ),
    ] = False
    mode: Annotated[
        Literal["auto", "baseline"],
        Setting(
            "Follow the Change Lists where they reach back (auto), or compare with the whole "
            "Resource List (baseline).",
            shown="auto",
            in_library=False,
            is_option=True,
        ),
    ] = "auto"
    delete: Annotated[
        Literal["auto", "signalled", "absent", "never"],
        Setting(
            "Delete resources that a Change List lists as deleted (signalled), also those that a "
            "newer Resource List no longer lists (absent), or none (never). auto: absent for a "
            "Resource List, signalled for a plain sitemap.",
            shown="auto",
            is_option=True,
        ),
    ] = "auto"
    max_delete: Annotated[
        Limit,
        Setting(
            "Hold all deletions back if there are more. With P%, 25 are always allowed, but never "
            "more than half of the copies if the lists only no longer contain them.",
            _MAIN,
            LIMIT,
            "N|P%",
            shown="10%",
            is_option=True,
        ),
    ] = DEFAULT_LIMIT
    trash: Annotated[
        float,
        Setting(
            "Time that deleted copies stay in the mirror's trash; 0: no trash.",
            _DEL,
            DURATION,
            shown="30d",
        ),
    ] = 30 * _DAY
    verify: Annotated[
        Literal["strict", "lenient"],
        Setting(
            "Refuse bytes that do not match the list (strict), or store and mark them (lenient): "
            "a copy that does not match the list is never in sync (exit 3).",
            _VER,
            shown="strict",
        ),
    ] = "strict"
    dumps: Annotated[
        Literal["auto", "never", "always"],
        Setting(
            "Use packages of the Source's dumps where they cost less than single requests (auto), "
            "never, or wherever possible (always).",
            _TRA,
            shown="auto",
        ),
    ] = "auto"
    accept_missing: Annotated[
        bool | None,
        Setting(
            "Listed resources that the Source does not deliver are not failures (404, 410, "
            "robots.txt, a redirect to another site): they are counted as absent or skipped, "
            "exit 0. The mirror remembers it; for a plain sitemap it is the default.",
            _VER,
            is_stored=True,
            is_option=True,
        ),
    ] = None
    recheck: Annotated[
        float | None,
        Setting(
            "Request each page that is known by its date alone again within this time, a few in "
            "each pull: many sites change pages without a new date. 0: never. Default: 7d for a "
            "plain sitemap, 30d for other lists without hashes.",
            _VER,
            DURATION,
        ),
    ] = None
    fail_fast: Annotated[bool, Setting("Stop at the first failure.", _TRA)] = False
    max_duration: Annotated[
        float | None,
        Setting(
            "Stop cleanly after this time, such as 10m (exit 10); the next run continues.",
            _TRA,
            DURATION,
            is_option=True,
        ),
    ] = None
    max_bytes: Annotated[
        int | None,
        Setting(
            "Stop cleanly before more bytes are received, such as 2G (exit 10); the next run "
            "continues. At least one resource is fetched.",
            _TRA,
            SIZE,
        ),
    ] = None
    include: Annotated[
        tuple[str, ...] | UnsetType,
        Setting(
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
        Setting(
            "No resources whose path matches.", metavar="GLOB", is_clearable=True, is_option=True
        ),
    ] = UNSET
    types: Annotated[
        tuple[str, ...] | UnsetType,
        Setting(
            "Only resources of this media type.",
            _SEL,
            metavar="MIME",
            key="type",
            is_clearable=True,
            is_option=True,
        ),
    ] = UNSET
    max_size: Annotated[
        int | UnsetType | None,
        Setting("No resources larger than this, such as 5M.", _SEL, SIZE, is_clearable=True),
    ] = UNSET
    since: Annotated[
        datetime | timedelta | UnsetType | None,
        Setting(
            "Only resources modified since, such as -7d or a date.",
            _SEL,
            MOMENT,
            is_clearable=True,
            is_option=True,
        ),
    ] = UNSET
    links: Annotated[
        tuple[str, ...] | UnsetType,
        Setting(
            "Also resources that selected entries link to by this relation, such as describedby.",
            _SEL,
            metavar="REL",
            key="link",
            is_clearable=True,
        ),
    ] = UNSET
    allow_origins: Annotated[tuple[str, ...] | UnsetType, ALLOW_ORIGIN] = UNSET
    state: Annotated[
        str,
        Setting(
            "The folder for the state of a mirror whose copies go into a store of a plug-in. "
            "Default: a folder of the user.",
            _STO,
            metavar="DIRECTORY",
            in_library=False,
        ),
    ] = ""
    engine: Annotated[
        str | None,
        Setting(
            "Pull with many workers, which reach the folder or store: processes, processes:8, "
            "dask://HOST:PORT, spark://HOST:PORT or spark:local[4].",
            _STO,
            metavar="ADDRESS",
            in_library=False,
        ),
    ] = None
    mapper: Annotated[
        str,
        Setting(
            "The mapping from URIs to paths: tree (the names of the Source), a plug-in, or a rule "
            "such as 'bitstream/{item}/{name} => {item}/{name}'. It cannot be changed later.",
            _STO,
            metavar="NAME|RULE",
            key="map",
        ),
    ] = ""


class ScheduleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The schedule of a mirror that a service keeps in sync."""

    every: Annotated[
        float | None, Setting("Time between two pulls, such as 15m.", _MAIN, DURATION)
    ] = None
    cron: Annotated[
        str | None,
        Setting(
            "The times of pulls as in crontab, such as 5 2 * * * (UTC), or with a time zone:"
            " 5 2 * * * Europe/Vienna.",
            metavar="LINE",
        ),
    ] = None
    push: Annotated[bool, Setting("Pull at once after a Change Notification of the Source.")] = (
        False
    )
    audit_every: Annotated[
        float | None, Setting("Time between two audits, such as 7d.", _MAIN, DURATION)
    ] = None
    audit_method: Annotated[
        Literal["lists", "stat", "hash", "remote"],
        Setting("The method of the audit.", shown="hash"),
    ] = "hash"
    audit_sample: Annotated[
        Limit | None, Setting("The share of files to audit, such as 15%.", _MAIN, LIMIT)
    ] = None
    audit_oldest_first: Annotated[bool, Setting("Audit the files checked longest ago first.")] = (
        False
    )
    on_change: Annotated[
        tuple[str, ...],
        Setting(
            "A program to run after changes, and its arguments: it gets the changes"
            " as lines of JSON on stdin; after exit 0, it does not get the same changes again."
        ),
    ] = ()
    on_change_limit: Annotated[
        float,
        Setting(
            "Time limit of that program; then it and its child processes are ended, and it is run"
            " again later.",
            _MAIN,
            DURATION,
            shown="1h",
        ),
    ] = 3600.0


class FreshnessSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How far a mirror may be behind before a check of the status reports it."""

    max_lag: Annotated[
        float | None,
        Setting("The longest lag that a check of the status accepts.", _MAIN, DURATION),
    ] = None
    max_quiet: Annotated[
        float | None,
        Setting(
            "The longest time without a publication of the Source that it accepts.",
            _MAIN,
            DURATION,
        ),
    ] = None


class MirrorPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The two ends of a configured mirror."""

    source: Annotated[str, Setting("The Source's address.")] = ""
    dest: Annotated[
        str,
        Setting("The mirror's folder; a relative path starts at the folder of the file."),
    ] = ""


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the service, for all mirrors together."""

    parallel: Annotated[
        int,
        Setting("Mirrors that are pulled or audited at a time.", _MAIN, whole(1, 100), shown="4"),
    ] = 4
    jobs: Annotated[
        int,
        Setting(
            "Requests at a time, for all mirrors together.",
            _MAIN,
            whole(1, 1000),
            short="-j",
            shown="64",
        ),
    ] = 64
    grace: Annotated[
        float,
        Setting(
            "Time that running work may take after SIGTERM to stop cleanly.",
            _MAIN,
            DURATION,
            shown="20s",
        ),
    ] = 20.0
    callback: Annotated[
        str,
        Setting(
            "The public address of `listen` for hubs, such as https://HOST/push/. Mirrors with"
            " push = true are subscribed to their Sources' Change Notifications.",
            metavar="URL",
        ),
    ] = ""
    listen: Annotated[
        tuple[str, int],
        Setting(
            "The address that receives notifications; put a proxy with TLS in front.",
            _MAIN,
            BINDING,
            "HOST:PORT",
            shown="127.0.0.1:9465",
        ),
    ] = ("127.0.0.1", 9465)
    admin: Annotated[
        tuple[str, int] | None,
        Setting(
            "The address of pages about the mirrors, /livez, /readyz, /metrics and"
            " /api/status.json; for operators only.",
            _MAIN,
            BINDING,
            "HOST:PORT",
        ),
    ] = None
    operator: Annotated[
        str,
        Setting(
            "Let operators pull now, pause and resume on the pages of `admin`, with the token of"
            " [auth.NAME] in the configuration file (type bearer). Without it, the pages only"
            " read.",
            metavar="NAME",
        ),
    ] = ""
    state: Annotated[
        Path | None,
        Setting(
            "The folder for subscriptions, paused mirrors and requests, instead of the user's own"
            " folder.",
            _MAIN,
            FOLDER,
            "DIR",
        ),
    ] = None


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The log of the commands that read the configuration file."""

    file: Annotated[
        str | None,
        Setting(
            "Append log messages to this file; lines of JSON if its name ends in .json, .jsonl or"
            " .ndjson.",
            form=FILE,
        ),
    ] = None
    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Setting("The least level of the messages.", shown="info"),
    ] = "info"
