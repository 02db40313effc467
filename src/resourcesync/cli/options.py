"""Options that commands share, and the types of their values.

Values of the configuration file, turned into what the options of commands take.

One table of the configuration file: its keys are options of a command.

Which value counts where several say something: nearer ones hide those farther off.
"""

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import click
from click.core import ParameterSource

from resourcesync import config
from resourcesync.cli.output import Job, OutputOptions
from resourcesync.config import files
from resourcesync.config.files import ConfigFile
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
        for decorate in reversed([function for group in groups for function in group]):
            function = decorate(function)
        return function

    return add


def options_of(*groups: tuple[Decorator, ...]) -> dict[str, click.Option]:
    """Return the options of some groups by their names, such as the configuration file has them."""
    command = click.command(with_options(*groups)(_no_command))
    return {
        param.name: param
        for param in command.params
        if isinstance(param, click.Option) and param.name
    }


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


_SECRET_FIELDS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})


def convert_setting(option: click.Option, written: object) -> Any:
    """Return a value as an option takes it; the message of an error goes on after the key.

    Raises:
        ConfigurationError: It is of another kind, or has not the option's form.
    """
    if option.is_flag:
        return _check_type(written, bool, "must be true or false")
    if option.multiple:
        texts = _check_type(written, list, "must be a list of texts")
        written = [_check_type(text, str, "must be a list of texts") for text in texts]
    elif isinstance(option.type, Parsed) and type(written) in {int, float}:
        written = str(written)
    elif isinstance(option.type, click.IntRange):
        _check_type(written, int, "must be a whole number")
    else:
        _check_type(written, str, "must be a text")
    try:
        value = option.type_cast_value(click.Context(click.Command("config")), written)
    except click.BadParameter as error:
        raise ConfigurationError(f"is wrong: {error.message.rstrip('.')}") from None
    if option.name == "header":
        _check_no_secret_header(value)
    return value


def _check_type(value: object, kind: type, reason: str) -> Any:
    if type(value) is not kind:
        raise ConfigurationError(reason)
    return value


def _check_no_secret_header(headers: tuple[tuple[str, str], ...]) -> None:
    for name, _ in headers:
        if name.lower() in _SECRET_FIELDS:
            raise ConfigurationError(
                f"must not hold {name}", hint="write a table [auth.NAME] that says where it is"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value and where it came from.

    Attributes:
        value: As the option of that name takes it.
        written: As it is written in the file or the environment.
        origin: ``file:line``, or the variable's name.
    """

    value: Any
    written: object
    origin: str


def table_mistakes(
    file: ConfigFile, table: tuple[str, ...], keys: Mapping[str, click.Option]
) -> Iterator[ConfigurationError]:
    """Yield what is wrong in a table with these keys."""
    try:
        names = list(file.table(*table))
    except ConfigurationError as error:
        yield error
        return
    for key in names:
        try:
            read_setting(file, table, key, keys)
        except ConfigurationError as error:
            yield error


def read_setting(
    file: ConfigFile, table: tuple[str, ...], key: str, keys: Mapping[str, click.Option]
) -> Setting:
    """Return the value of a key.

    Raises:
        ConfigurationError: There is no such key, or its value is wrong.
    """
    if key not in keys:
        raise file.unknown_key_error(table, key, tuple(keys))
    if key not in file.table(*table):
        raise file.key_error(table, key, "is missing")
    written = file.table(*table)[key]
    try:
        value = convert_setting(keys[key], written)
    except ConfigurationError as error:
        raise file.key_error(table, key, error.message, hint=error.hint) from None
    if key == "ca_file" or (table, key) == (("log",), "file"):
        value = _resolve_file(file, table, key, value)
    return Setting(value=value, written=written, origin=file.location(table, key))


def _resolve_file(file: ConfigFile, table: tuple[str, ...], key: str, value: str) -> str:
    """Return the path of a file, from the folder of the configuration if it is no whole path."""
    if not value or "\0" in value:
        raise file.key_error(table, key, "must be a file")
    try:
        return str(file.path.parent / Path(value).expanduser())
    except RuntimeError:
        raise file.key_error(table, key, "names a user who is not there") from None


_EXPLICIT_SOURCES: Final = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
_CONFLICTS: Final = (frozenset({"set", "all_sets"}), frozenset({"every", "cron"}))


def given_options() -> frozenset[str]:
    """Return the options that the command line or the environment of the running command has."""
    context = click.get_current_context()
    return frozenset(
        param
        for param in context.params
        if context.get_parameter_source(param) in _EXPLICIT_SOURCES
    )


def merge_settings(
    values: Mapping[str, Any], settings: Mapping[str, Setting], given: frozenset[str]
) -> dict[str, Any]:
    """Return the values of a command's options; what is not given comes from the configuration.

    Args:
        values: The options, as click understood them.
        settings: What the configuration says.
        given: Those that the command line or the environment has.
    """
    hidden = given | _hidden_names(given)
    found = {
        name: setting.value
        for name, setting in settings.items()
        if name in values and name not in hidden
    }
    # A file's proxy does not get the secret that another of its tables has for another proxy.
    gone = {"proxy_auth": None} if "proxy" in found and "proxy_auth" not in given else {}
    return {**values, **gone, **found}


def merge_connection(settings: Mapping[str, Setting], way: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of settings, and of the options of ``options.WAY`` that were given."""
    hidden = _hidden_names(way.keys())
    values = {name: setting.value for name, setting in settings.items() if name not in hidden}
    return {**values, **way}


def _hidden_names(names: Collection[str]) -> frozenset[str]:
    """Return what does not count any more, once some settings are given nearer by.

    The secret of one proxy is nothing for another one.
    """
    hidden = frozenset().union(*(rivals for rivals in _CONFLICTS if rivals.intersection(names)))
    return hidden | {"proxy_auth"} if "proxy" in names else hidden


def without_conflicts(
    defaults: Mapping[str, Setting], own: Mapping[str, Setting]
) -> dict[str, Setting]:
    """Return the defaults without those that say the opposite of what the mirror says."""
    hidden = _hidden_names(own.keys())
    return {name: setting for name, setting in defaults.items() if name not in hidden}
