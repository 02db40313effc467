"""The options of ``pull`` that say how a mirror is kept: the keys of the configuration file.

The keys of the configuration file that say when ``watch`` does what for a mirror.
"""

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
        help="Which set of resources, where the Source offers several. Given several times: a "
        "mirror for each, in a folder of its own below DEST.",
    ),
    option(
        "--all-sets",
        is_flag=True,
        help="A mirror for each set, in a folder of its own below DEST; new sets join later.",
    ),
)
FILTERS: Final = (
    option(
        "--include",
        multiple=True,
        metavar="GLOB",
        help="Only resources whose path matches: * stops at /, ** does not; one without a / in "
        "front fits in each folder. The globs of publish are others. A mirror remembers this and "
        "each filter below until it is given anew; '' takes it away: --include ''.",
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
        help="Also what chosen entries link to with this relation, such as describedby.",
    ),
)
STORAGE: Final = (
    option(
        "--state",
        metavar="DIRECTORY",
        help="Where the memory of a mirror is kept whose copies go into a store of a plug-in; a "
        "folder of this user's unless given.",
    ),
    option(
        "--engine",
        metavar="ADDRESS",
        help="Have many workers pull into a store they all reach: processes, processes:8, "
        "dask://HOST:PORT, spark://HOST:PORT or spark:local[4]. The rows of the copies are a table "
        "then.",
    ),
    option(
        "--map",
        metavar="NAME|RULE",
        help="What gives each file its path: tree (the names of the Source), a plug-in, or a rule"
        " such as 'bitstream/{item}/{name} => {item}/{name}'. A mirror keeps it; only tree/2"
        " renames the files of one that has the names of older versions, and fetches none again.",
    ),
)
SAFETY: Final = (
    option(
        "--mode",
        type=click.Choice(["auto", "baseline", "incremental"]),
        default="auto",
        show_default=True,
        help="Follow the Change Lists, or compare with the whole Resource List.",
    ),
    option(
        "--delete",
        type=click.Choice(["auto", "signalled", "absent", "never"]),
        default="auto",
        show_default=True,
        help="Delete what a Change List calls deleted (signalled), also what a newer Resource "
        "List lists no more (absent), or nothing. auto: absent for a Resource List, signalled "
        "for a plain sitemap.",
    ),
    options.MAX_DELETE,
    option(
        "--trash",
        type=options.DURATION,
        default="30d",
        show_default=True,
        help="How long deleted copies wait in the mirror's trash; 0 keeps none.",
    ),
    option(
        "--verify",
        type=click.Choice(["strict", "lenient"]),
        default="strict",
        show_default=True,
        help="Refuse bytes that are not what the list says (strict), or store them and mark them "
        "unverified (lenient): a copy that contradicts the list is never in sync (exit 3).",
    ),
    option(
        "--dumps",
        type=click.Choice(["auto", "never", "always"]),
        default="auto",
        show_default=True,
        help="Take packages of the Source's dumps where that costs less than single requests "
        "(auto), never, or wherever they help.",
    ),
    option(
        "--accept-missing/--no-accept-missing",
        default=None,
        help="Take it for no failure that the Source lists what it does not give (404, 410, kept "
        "out by its robots.txt, a redirect to another site): counted as absent or skipped, exit "
        "0. Remembered with the mirror; so it is anyhow for a plain sitemap.",
    ),
    option("--fail-fast", is_flag=True, help="Stop at the first failure."),
    option(
        "--max-duration",
        type=options.DURATION,
        help="End in good order after so long, such as 10m (exit 10); the next run goes on.",
    ),
    option(
        "--max-bytes",
        type=options.SIZE,
        help="End in good order before more is received, such as 2G (exit 10); the next run goes "
        "on. One resource is always fetched.",
    ),
)
NETWORK: Final = (
    option("-j", "--jobs", type=click.IntRange(1, 1000), help="Requests at a time."),
    option("--per-host", type=click.IntRange(1, 1000), help="Most requests at a time to one host."),
    option("--rate", type=options.RATE, help="Requests per second to one host, such as 5/s."),
    option("--bwlimit", type=options.SIZE, help="Bytes per second in all, such as 2M."),
    *options.REQUEST_OPTIONS,
)


RUN_OPTIONS: Final = (
    option(
        "--prune",
        is_flag=True,
        help="Also delete what the filters do not want any more, into the trash and as far as "
        "--max-delete allows. The whole Resource List is read for that.",
    ),
    option(
        "--lists-only",
        is_flag=True,
        help="Remember what the Source lists; fetch and delete nothing. A later pull does.",
    ),
    option(
        "--moved",
        metavar="URL",
        help="The Source is at this address from now on: all copies stay, and are compared with "
        "what it lists there. Look with -n first.",
    ),
    option(
        "--metrics-file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write the run's figures for Prometheus to a file.",
    ),
)
"""Options that are about one run, not about how a mirror is kept."""

PULL_OPTIONS: Final = (SETS, SAFETY, FILTERS, STORAGE, NETWORK)
PULL_KEYS: Final = options.options_of(*PULL_OPTIONS)
"""By their names in the configuration file: the options that can be set there for a mirror."""


_SCHEDULE: Final = (
    option("--every", type=options.DURATION, help="How often the mirror is pulled, such as 15m."),
    option(
        "--cron",
        metavar="LINE",
        help="When it is pulled, as crontab says it, such as 5 2 * * * (UTC), or with a time zone"
        " after it: 5 2 * * * Europe/Vienna.",
    ),
    option(
        "--push", is_flag=True, help="Pull at once when the Source's Change Notifications say so."
    ),
    option("--audit-every", type=options.DURATION, help="How often it is audited, such as 7d."),
    option(
        "--audit-method",
        type=click.Choice(["lists", "stat", "hash", "remote"]),
        default="hash",
        show_default=True,
        help="What the audit compares.",
    ),
    option(
        "--audit-sample", type=options.LIMIT, help="The share of files it looks at, such as 15%."
    ),
    option(
        "--audit-oldest-first", is_flag=True, help="It looks first at those proven longest ago."
    ),
    option(
        "--on-change",
        multiple=True,
        help="The program that is told of changes, and its arguments: it gets the lines of"
        " changes --json on its stdin; what it ends with 0 is not told again.",
    ),
    option(
        "--on-change-limit",
        type=options.DURATION,
        default="1h",
        show_default=True,
        help="How long it may take; then it is ended with all that it began, and told again later.",
    ),
)
WATCH_KEYS: Final = options.options_of(_SCHEDULE)
"""By their names in the tables ``[mirror.NAME]`` and ``[defaults]``."""

PARALLEL: Final = option(
    "--parallel",
    type=click.IntRange(1, 100),
    default=4,
    show_default=True,
    help="How many mirrors are worked on at a time.",
)
JOBS: Final = option(
    "-j",
    "--jobs",
    type=click.IntRange(1, 1000),
    default=64,
    show_default=True,
    help="Requests at a time, of all mirrors together.",
)
GRACE: Final = option(
    "--grace",
    type=options.DURATION,
    default="20s",
    show_default=True,
    help="How long work may go on after SIGTERM, to come to a good end.",
)
CALLBACK: Final = option(
    "--callback",
    metavar="URL",
    help="The address by which hubs reach --listen, such as https://HOST/push/: mirrors with"
    " push = true are subscribed to their Sources' Change Notifications.",
)
LISTEN: Final = option(
    "--listen",
    type=BINDING,
    metavar="HOST:PORT",
    default="127.0.0.1:9465",
    show_default=True,
    help="Where notifications are taken; put a proxy with TLS before it.",
)
ADMIN: Final = option(
    "--admin",
    type=BINDING,
    metavar="HOST:PORT",
    help="Serve pages of the mirrors there, /livez, /readyz, /metrics and /api/status.json;"
    " for operators only.",
)
STATE: Final = option(
    "--state",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Where subscriptions are remembered, instead of the user's own folder.",
)
SERVICE: Final = (PARALLEL, JOBS, GRACE, CALLBACK, LISTEN, ADMIN, STATE)
SERVICE_KEYS: Final = options.options_of(SERVICE)
"""By their names in the table ``[watch]``."""
