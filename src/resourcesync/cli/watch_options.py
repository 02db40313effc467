"""The keys of the configuration file that say when ``watch`` does what for a mirror."""

from typing import Final

import click

from resourcesync.cli import options
from resourcesync.cli.options import BINDING, option

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
