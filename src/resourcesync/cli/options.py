"""Options that commands share, and the types of their values."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import click

from resourcesync import config
from resourcesync.cli.job import Job
from resourcesync.cli.output import OutputOptions
from resourcesync.config import files
from resourcesync.errors import ConfigurationError

V = TypeVar("V")
Decorator = Callable[[Callable[..., Job]], Callable[..., Job]]

LOG: Final = "resourcesync.log"
"""Under this name a command's context has what `[log]` of the configuration file says."""

option = functools.partial(click.option, show_envvar=True)
"""``click.option`` whose help names the environment variable."""


class Parsed(click.ParamType[V], Generic[V]):
    """A value with a form of its own, such as a duration.

    Args:
        name: What the value is; shown in help in capitals.
        parse: Turns text into the value; raises ``ConfigurationError``.
    """

    def __init__(self, name: str, parse: Callable[[str], V]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> V:
        """Return the value that the text means.

        Raises:
            click.BadParameter: It means none.
        """
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # a default, converted already
        try:
            return self._parse(value)
        except ConfigurationError as error:
            message = f"{error.message}: {error.hint}" if error.hint else error.message
            self.fail(message, param, ctx)


def or_empty(parse: Callable[[str], V]) -> Callable[[str], V | str]:
    """Return what turns text into a value, and leaves no text as it is: it takes a value away."""
    return lambda text: parse(text) if text else text


DURATION = Parsed("duration", config.parse_duration)
SIZE = Parsed("size", config.parse_size)
RATE = Parsed("rate", config.parse_rate)
MOMENT = Parsed("time", config.parse_moment)
PROXY = Parsed("proxy", config.parse_proxy)
LIMIT = Parsed("limit", config.parse_limit)
HEADER = Parsed("header", config.parse_header)
PAIR = Parsed("pair", config.parse_pair)
BINDING = Parsed("address", config.parse_binding)

CONFIG = option(
    "--config",
    envvar=files.VARIABLE,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The configuration file, instead of the first one that is found.",
)
AUTH = option(
    "--auth",
    metavar="NAME",
    help="Send the secret of [auth.NAME] in the configuration file, to the Source's own origin.",
)
CONTACT = option(
    "--contact",
    metavar="MAIL|URL",
    help="Whom the Source may turn to; sent in From and User-Agent.",
)


ALLOW_ORIGIN = option(
    "--allow-origin",
    multiple=True,
    metavar="URL",
    help="Trust this origin too: be led there, take its resources, and connect to it though its "
    "address is private. A mirror remembers it as it does --include.",
)
CONNECTION = (
    option(
        "--proxy",
        type=PROXY,
        metavar="URL",
        help="Ask by this proxy: http://HOST:PORT, https://… or socks5h://…; direct: by none. "
        "HTTP_PROXY and HTTPS_PROXY are not obeyed.",
    ),
    option(
        "--proxy-auth",
        metavar="NAME",
        help="Send user and password of [auth.NAME] in the configuration file to the proxy, and "
        "to nobody else.",
    ),
    option(
        "--ca-file",
        type=click.Path(),
        metavar="FILE",
        help="Trust the authorities in this file (PEM), in place of the system's.",
    ),
)
"""How any server is reached, by all commands that ask one; `pop_connection` takes them apart."""

REQUEST_OPTIONS = (
    option("--timeout", type=DURATION, help="Longest wait for an answer, such as 30s."),
    option("--retries", type=click.IntRange(0, 100), help="Further tries; 404 gets none."),
    option(
        "--robots",
        type=click.Choice(["obey", "ignore"]),
        default="obey",
        show_default=True,
        help="Whether robots.txt is obeyed.",
    ),
    option(
        "--header",
        type=HEADER,
        multiple=True,
        metavar="'K: V'",
        help="Send a header to the Source's own origin, and to no other.",
    ),
    ALLOW_ORIGIN,
    AUTH,
    CONTACT,
    *CONNECTION,
)
"""How any Source is asked, by the commands that look and those that keep mirrors."""


def pop_connection(values: dict[str, Any]) -> dict[str, Any]:
    """Take the options of ``WAY`` out of a command's values; return those that were given."""
    names = ("proxy", "proxy_auth", "ca_file")
    way = {name: values.pop(name) for name in names if name in values}
    return {name: value for name, value in way.items() if value is not None}


MAX_DELETE = option(
    "--max-delete",
    type=LIMIT,
    metavar="N|P%",
    default="10%",
    show_default=True,
    help="Hold deletions back when there are more; 25 are allowed unless N is given, but never more"
    " than half of what is here that lists only lack.",
)


def with_options(*groups: tuple[Decorator, ...]) -> Decorator:
    """Return what gives a command the options of some groups, in their order."""

    def add(function: Callable[..., Job]) -> Callable[..., Job]:
        for decorate in reversed([it for group in groups for it in group]):
            function = decorate(function)
        return function

    return add


def options_of(*groups: tuple[Decorator, ...]) -> dict[str, click.Option]:
    """Return the options of some groups by their names, such as the configuration file has them."""
    command = click.command(with_options(*groups)(_no_command))
    return {it.name: it for it in command.params if isinstance(it, click.Option) and it.name}


def _no_command(**_values: object) -> Job:
    raise AssertionError("no command, only the bearer of options")


def json_option() -> Decorator:
    """Return the ``--json`` option alone."""
    return option("--json", is_flag=True, help="Write one JSON object per line, and no text.")


_LOG_FILE: Final = option(
    "--log-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append what is noted on the way; never needed to know the outcome.",
)
_LOG_FORMAT: Final = option(
    "--log-format", type=click.Choice(["text", "json"]), help="How; text unless chosen."
)


def _with_log_options(job: Job, *, log_file: Path | None, log_format: Any, **_: Any) -> Job:
    """Return a job with the log that was chosen, or that the configuration file names."""
    known: Mapping[str, Any] = click.get_current_context().meta.get(LOG, {})
    output = replace(
        job.output,
        log_file=log_file or known.get("file"),
        log_format=log_format or known.get("format"),
    )
    return replace(job, output=output)


def output_options(function: Callable[..., Job]) -> Callable[..., Job]:
    """Give a command the options of how it speaks, handed over as ``output``."""

    @json_option()
    @option(
        "-q",
        "--quiet",
        count=True,
        help="Show nothing when all is well; else, on stderr, what failed, why, and what to do."
        " Twice: nothing.",
    )
    @option("-v", "--verbose", count=True, help="Show a line per resource.")
    @option(
        "--progress",
        type=click.Choice(["auto", "bar", "plain", "off"]),
        default="auto",
        show_default=True,
        help="Show a bar, or a line every 30 s; auto: a bar on a terminal.",
    )
    @option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Colour words; NO_COLOR, FORCE_COLOR and TERM=dumb are obeyed.",
    )
    @_LOG_FILE
    @_LOG_FORMAT
    @functools.wraps(function)
    def speaking(**values: Any) -> Job:
        chosen = {name: values.pop(name) for name in OutputOptions.__dataclass_fields__}
        return _with_log_options(function(output=OutputOptions(**chosen), **values), **chosen)

    return speaking
