"""Settings of mirrors: requests, each pull, schedule, place, and the service for all of them."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from resourcesync.model.settings import (
    ALLOW_ORIGIN,
    BINDING,
    DURATION,
    FILE,
    FOLDER,
    HEADER,
    LIMIT,
    PAIR,
    PROXY,
    AuditMethod,
    Limit,
    RequestSettings,
    Section,
    Setting,
    whole,
)
from resourcesync.settings.schema import check_values

_T, _N = Section.TRANSFER, Section.NETWORK


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Header fields for one origin, never sent to another one.

    Attributes:
        origin: ``scheme://host[:port]``; empty for the Source's own.
        fields: Names and values of header fields.
    """

    origin: str = ""
    fields: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_values(self)

    def __repr__(self) -> str:
        return f"Credentials(origin={self.origin!r})"


class Network(RequestSettings, frozen=True, kw_only=True):
    """Settings for requests to a Source.

    Attributes:
        credentials: Secrets, each for its own origin.
        proxy_auth: User and password for the proxy; they are sent to nothing else.
    """

    headers: Annotated[
        tuple[tuple[str, str], ...],
        Setting("Send a header, only to the Source's own origin.", _N, HEADER, "'K: V'", "header"),
    ] = ()
    allow_origins: Annotated[tuple[str, ...], ALLOW_ORIGIN] = ()
    proxy: Annotated[
        str | None,
        Setting(
            "Use this proxy: http://HOST:PORT, https://… or socks5h://…; direct: no proxy. "
            "Default: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY of the environment.",
            _N,
            PROXY,
            "URL",
        ),
    ] = None
    credentials: tuple[Credentials, ...] = ()
    proxy_auth: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        check_values(self)

    def __repr__(self) -> str:
        """Return a text without secrets."""
        hidden = {"headers", "credentials", "proxy_auth"}
        names = (name for name in self.__struct_fields__ if name not in hidden)
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"Network({values})"


class SecretNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names of secrets in the configuration file."""

    auth: Annotated[
        str,
        Setting(
            "Send the secret of [auth.NAME] in the configuration file, to the Source's own origin.",
            _N,
            metavar="NAME",
            is_option=True,
        ),
    ] = ""
    proxy_auth: Annotated[
        str,
        Setting(
            "Send user and password of [auth.NAME] in the configuration file to the proxy only.",
            _N,
            metavar="NAME",
        ),
    ] = ""


_SEL, _DEL, _VER = Section.SELECTION, Section.DELETION, Section.VERIFICATION
_TRA, _STO, _MAIN = Section.TRANSFER, Section.STORAGE, Section.MAIN


class PlaceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a mirror that are not those of a pull: its sets, its place and its workers."""

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
    audit_method: Annotated[AuditMethod, Setting("The method of the audit.", shown="hash")] = "hash"
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
            "The longest time without a publication of the Source that it accepts.", _MAIN, DURATION
        ),
    ] = None


class MirrorPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The two ends of a configured mirror."""

    source: Annotated[str, Setting("The Source's address.")] = ""
    dest: Annotated[
        str, Setting("The mirror's folder; a relative path starts at the folder of the file.")
    ] = ""


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the service, for all mirrors together."""

    parallel: Annotated[
        int,
        Setting(
            "Mirrors pulled or audited at a time, of one host one.", _MAIN, whole(1, 100), shown="4"
        ),
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
            "Let operators pull now, pause and resume on the pages of `admin`, and release held"
            " deletions, with the token of [auth.NAME] in the configuration file (type bearer)."
            " Without it, the pages only read.",
            metavar="NAME",
        ),
    ] = ""
    state: Annotated[
        Path | None,
        Setting(
            "The folder for subscriptions, instead of the user's own folder.", _MAIN, FOLDER, "DIR"
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


class SystemSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a publication that are not stored with it."""

    path: Annotated[
        str,
        Setting("The tree, or catalogue:FILE; a relative path starts at the folder of the file."),
    ] = ""
    dumps: Annotated[
        Literal["none", "resources", "changes", "all"],
        Setting(
            "Also pack all files into a Resource Dump (resources), the changes since the last run"
            " into a Change Dump (changes), or both (all). Only changed files are packed again; not"
            " in a dry run, nor while publish watches.",
            shown="none",
            is_option=True,
        ),
    ] = "none"
    allow_empty: Annotated[
        bool, Setting("Publish even if there are no files.", _MAIN, is_option=True)
    ] = False
    rescan: Annotated[
        float | None,
        Setting(
            "Time between two complete scans. Default: 4h for a folder that is watched; 7d for"
            " another system, or 4h if it does not report changes.",
            _MAIN,
            DURATION,
        ),
    ] = None
    every: Annotated[
        float,
        Setting(
            "While another system is watched: publish its changes at this interval; default: 1m,"
            " and 1h for OAI-PMH. A database that announces commits is published within about a"
            " second.",
            _MAIN,
            DURATION,
        ),
    ] = 60.0
    state: Annotated[
        Path | None,
        Setting(
            "The folder for the catalogue, if not in DIR, such as one that each build empties. For"
            " a bucket or another system: if not with the documents; needed if these go to a"
            " store.",
            _STO,
            FOLDER,
            is_option=True,
        ),
    ] = None
    values: Annotated[
        tuple[tuple[str, str], ...],
        Setting(
            "For another system: a setting of its adapter, see the list of plug-ins and the"
            " how-tos. env:NAME and file:PATH read the value from there. Repeat for several.",
            _STO,
            PAIR,
            "KEY=VALUE",
            "with",
            is_option=True,
        ),
    ] = ()
