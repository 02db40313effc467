"""The options of ``pull`` and ``watch`` that are also keys of the configuration file."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import click

from resourcesync import config
from resourcesync.cli import options
from resourcesync.cli.options import BINDING, option

SETS: Final = (
    option(
        "--set",
        multiple=True,
        metavar="URI|NAME|NUMBER",
        help="The set of resources, if the Source offers several. Repeat for several: each set "
        "gets its own mirror, in a folder below DEST.",
    ),
    option(
        "--all-sets",
        is_flag=True,
        help="A mirror for each set, in a folder below DEST; new sets are added later.",
    ),
)
FILTERS: Final = (
    option(
        "--include",
        multiple=True,
        metavar="GLOB",
        help="Only resources whose path matches: * stops at /, ** does not; a pattern without a "
        "leading / matches in each folder. The globs of publish are different. A mirror remembers "
        "this and each filter below until it is given again; '' removes it: --include ''.",
    ),
    option("--exclude", multiple=True, metavar="GLOB", help="No resources whose path matches."),
    option("--type", multiple=True, metavar="MIME", help="Only resources of this media type."),
    option(
        "--max-size",
        type=options.Parsed("size", options.or_empty(config.parse_size)),
        help="No resources larger than this, such as 5M.",
    ),
    option(
        "--since",
        type=options.Parsed("time", options.or_empty(config.parse_moment)),
        help="Only resources modified since, such as -7d or a date.",
    ),
    option(
        "--link",
        multiple=True,
        metavar="REL",
        help="Also resources that selected entries link to by this relation, such as describedby.",
    ),
)
STORAGE: Final = (
    option(
        "--state",
        metavar="DIRECTORY",
        help="The folder for the state of a mirror whose copies go into a store of a plug-in. "
        "Default: a folder of the user.",
    ),
    option(
        "--engine",
        metavar="ADDRESS",
        help="Pull with many workers into a store that all of them reach: processes, processes:8, "
        "dask://HOST:PORT, spark://HOST:PORT or spark:local[4]. The state of the copies is then a "
        "table of Parquet files.",
    ),
    option(
        "--map",
        metavar="NAME|RULE",
        help="The mapping from URIs to paths: tree (the names of the Source), a plug-in, or a rule"
        " such as 'bitstream/{item}/{name} => {item}/{name}'. It cannot be changed later, except"
        " that tree/2 renames the files of a mirror with the names of older versions, without"
        " fetching.",
    ),
)
SAFETY: Final = (
    option(
        "--mode",
        type=click.Choice(["auto", "baseline", "incremental"]),
        default="auto",
        show_default=True,
        help="Follow the Change Lists (incremental), or compare with the whole Resource List "
        "(baseline).",
    ),
    option(
        "--delete",
        type=click.Choice(["auto", "signalled", "absent", "never"]),
        default="auto",
        show_default=True,
        help="Delete resources that a Change List lists as deleted (signalled), also those that a "
        "newer Resource List no longer lists (absent), or none (never). auto: absent for a "
        "Resource List, signalled for a plain sitemap.",
    ),
    options.MAX_DELETE,
    option(
        "--trash",
        type=options.DURATION,
        default="30d",
        show_default=True,
        help="Time that deleted copies stay in the mirror's trash; 0: no trash.",
    ),
    option(
        "--verify",
        type=click.Choice(["strict", "lenient"]),
        default="strict",
        show_default=True,
        help="Refuse bytes that do not match the list (strict), or store and mark them (lenient): "
        "a copy that does not match the list is never in sync (exit 3).",
    ),
    option(
        "--dumps",
        type=click.Choice(["auto", "never", "always"]),
        default="auto",
        show_default=True,
        help="Use packages of the Source's dumps where they cost less than single requests (auto), "
        "never, or wherever possible (always).",
    ),
    option(
        "--accept-missing/--no-accept-missing",
        default=None,
        help="Listed resources that the Source does not deliver are not failures (404, 410, "
        "robots.txt, a redirect to another site): they are counted as absent or skipped, exit 0. "
        "The mirror remembers it; for a plain sitemap it is the default.",
    ),
    option("--fail-fast", is_flag=True, help="Stop at the first failure."),
    option(
        "--max-duration",
        type=options.DURATION,
        help="Stop cleanly after this time, such as 10m (exit 10); the next run continues.",
    ),
    option(
        "--max-bytes",
        type=options.SIZE,
        help="Stop cleanly before more bytes are received, such as 2G (exit 10); the next run "
        "continues. At least one resource is fetched.",
    ),
)
NETWORK: Final = (
    option("-j", "--jobs", type=click.IntRange(1, 1000), help="Requests at a time."),
    option("--per-host", type=click.IntRange(1, 1000), help="Requests at a time to one host."),
    option("--rate", type=options.RATE, help="Requests per second to one host, such as 5/s."),
    option("--bwlimit", type=options.SIZE, help="Bytes per second in total, such as 2M."),
    *options.REQUEST_OPTIONS,
)


RUN_OPTIONS: Final = (
    option(
        "--prune",
        is_flag=True,
        help="Also delete copies that no longer match the filters, into the trash and within "
        "--max-delete. This reads the whole Resource List.",
    ),
    option(
        "--lists-only",
        is_flag=True,
        help="Only record what the Source lists; a later pull fetches and deletes.",
    ),
    option(
        "--moved",
        metavar="URL",
        help="The new address of the Source: all copies stay, and are compared with the lists "
        "there. Check with -n first.",
    ),
    option(
        "--metrics-file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write the metrics of the run to a file, for Prometheus.",
    ),
)
"""Options of one run, not of a mirror."""

PULL_OPTIONS: Final = (SETS, SAFETY, FILTERS, STORAGE, NETWORK)


_SCHEDULE: Final = (
    option("--every", type=options.DURATION, help="Time between two pulls, such as 15m."),
    option(
        "--cron",
        metavar="LINE",
        help="The times of pulls as in crontab, such as 5 2 * * * (UTC), or with a time zone:"
        " 5 2 * * * Europe/Vienna.",
    ),
    option("--push", is_flag=True, help="Pull at once after a Change Notification of the Source."),
    option("--audit-every", type=options.DURATION, help="Time between two audits, such as 7d."),
    option(
        "--audit-method",
        type=click.Choice(["lists", "stat", "hash", "remote"]),
        default="hash",
        show_default=True,
        help="The method of the audit.",
    ),
    option("--audit-sample", type=options.LIMIT, help="The share of files to audit, such as 15%."),
    option("--audit-oldest-first", is_flag=True, help="Audit the files checked longest ago first."),
    option(
        "--on-change",
        multiple=True,
        help="A program to run after changes, and its arguments: it gets the lines of"
        " changes --json on stdin; after exit 0, it does not get the same changes again.",
    ),
    option(
        "--on-change-limit",
        type=options.DURATION,
        default="1h",
        show_default=True,
        help="Time limit of that program; then it and its child processes are ended, and it is run"
        " again later.",
    ),
)

PARALLEL: Final = option(
    "--parallel",
    type=click.IntRange(1, 100),
    default=4,
    show_default=True,
    help="Mirrors that are pulled or audited at a time.",
)
JOBS: Final = option(
    "-j",
    "--jobs",
    type=click.IntRange(1, 1000),
    default=64,
    show_default=True,
    help="Requests at a time, for all mirrors together.",
)
GRACE: Final = option(
    "--grace",
    type=options.DURATION,
    default="20s",
    show_default=True,
    help="Time that running work may take after SIGTERM to stop cleanly.",
)
CALLBACK: Final = option(
    "--callback",
    metavar="URL",
    help="The public address of --listen for hubs, such as https://HOST/push/. Mirrors with"
    " push = true are subscribed to their Sources' Change Notifications.",
)
LISTEN: Final = option(
    "--listen",
    type=BINDING,
    metavar="HOST:PORT",
    default="127.0.0.1:9465",
    show_default=True,
    help="The address that receives notifications; put a proxy with TLS in front.",
)
ADMIN: Final = option(
    "--admin",
    type=BINDING,
    metavar="HOST:PORT",
    help="The address of pages about the mirrors, /livez, /readyz, /metrics and /api/status.json;"
    " for operators only.",
)
STATE: Final = option(
    "--state",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="The folder for the subscriptions, instead of the user's own folder.",
)
SERVICE: Final = (PARALLEL, JOBS, GRACE, CALLBACK, LISTEN, ADMIN, STATE)


@cache
def pull_keys() -> Mapping[str, click.Option]:
    """Return the options of ``pull`` by their names in the configuration file."""
    return options.options_of(*PULL_OPTIONS)


@cache
def watch_keys() -> Mapping[str, click.Option]:
    """Return the options of a schedule by their names in ``[mirror.NAME]`` and ``[defaults]``."""
    return options.options_of(_SCHEDULE)


@cache
def service_keys() -> Mapping[str, click.Option]:
    """Return the options of the service by their names in the table ``[watch]``."""
    return options.options_of(SERVICE)
