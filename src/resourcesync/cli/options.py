"""Options that commands share, their types, and their values in the configuration file.

A value of the command line or the environment overrides the mirror's table, which overrides
``[defaults]``.
"""

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from resourcesync import config
from resourcesync.cli.output import Job, OutputOptions
from resourcesync.cli.remedies import with_command
from resourcesync.config import files
from resourcesync.config.files import ConfigFile
from resourcesync.errors import ConfigurationError

V = TypeVar("V")
Decorator = Callable[[Callable[..., Job]], Callable[..., Job]]

LOG: Final = "resourcesync.log"
"""Name in a command's context of the table `[log]` of the configuration file."""


class Section(Enum):
    """A section of a command's help; they are shown in this order."""

    MAIN = "Options"
    SELECTION = "Selection"
    DELETION = "Deletion"
    VERIFICATION = "Verification"
    DOCUMENTS = "Documents"
    VERSIONS = "Versions"
    TRANSFER = "Transfer"
    STORAGE = "Storage"
    NETWORK = "Network"
    OUTPUT = "Output"


class SectionOption(click.Option):
    """An option in a section of the help.

    Args:
        section: The section.
    """

    def __init__(self, *args: Any, section: Section = Section.MAIN, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose help shows the options in sections, and their variables once."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by their sections, then how they are set in the environment."""
        rows: dict[Section, list[tuple[str, str]]] = {section: [] for section in Section}
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        for param in options:
            record = param.get_help_record(ctx)
            if record is not None:
                rows[getattr(param, "section", Section.OUTPUT)].append(record)
        for section, found in rows.items():
            if found:
                with formatter.section(section.value):
                    formatter.write_dl(found)
        names = [name for param in options for name in param.opts if name.startswith("--")]
        example = max(names, key=lambda name: (name.count("-"), name != "--help"))
        variable = f"{ctx.auto_envvar_prefix}{example.removeprefix('-').replace('-', '_').upper()}"
        formatter.write_paragraph()
        formatter.write_text(
            f"Each option has a variable of the environment: {example} is {variable}."
        )


option = functools.partial(click.option, cls=SectionOption)
"""``click.option`` with a section of the help."""
network_option = functools.partial(option, section=Section.NETWORK)
output_option = functools.partial(option, section=Section.OUTPUT)


class Parsed(click.ParamType[V], Generic[V]):
    """A type of values with a syntax of their own, such as durations.

    Args:
        name: The name of the type; shown in help in capitals.
        parse: Turns text into the value; raises ``ConfigurationError``.
    """

    def __init__(self, name: str, parse: Callable[[str], V]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> V:
        """Return the value of a text.

        Raises:
            click.BadParameter: The text has no such value.
        """
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # a default, converted already
        try:
            return self._parse(value)
        except ConfigurationError as error:
            hint = with_command(error.hint, error.remedy)
            message = f"{error.message}: {hint}" if hint else error.message
            self.fail(message, param, ctx)


def or_empty(parse: Callable[[str], V]) -> Callable[[str], V | str]:
    """Return a parser that leaves the empty text as it is: it removes a remembered value."""
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
    show_envvar=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The configuration file to use.",
)
AUTH = network_option(
    "--auth",
    metavar="NAME",
    help="Send the secret of [auth.NAME] in the configuration file, to the Source's own origin.",
)
CONTACT = network_option(
    "--contact",
    metavar="MAIL|URL",
    help="Contact address for the Source's operator; sent in From and User-Agent.",
)


ALLOW_ORIGIN = network_option(
    "--allow-origin",
    multiple=True,
    metavar="URL",
    help="Trust this origin too: follow links and redirects to it, fetch its resources, and "
    "connect to it even if its address is private. A mirror remembers it, as --include.",
)
CONNECTION = (
    network_option(
        "--proxy",
        type=PROXY,
        metavar="URL",
        help="Use this proxy: http://HOST:PORT, https://… or socks5h://…; direct: no proxy. "
        "Default: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY of the environment.",
    ),
    network_option(
        "--proxy-auth",
        metavar="NAME",
        help="Send user and password of [auth.NAME] in the configuration file to the proxy only.",
    ),
    network_option(
        "--ca-file",
        type=click.Path(),
        metavar="FILE",
        help="Trust the authorities in this file (PEM), instead of the system's.",
    ),
)
"""Connection options of all commands that send requests; see `pop_connection`."""

REQUEST_OPTIONS = (
    network_option("--timeout", type=DURATION, help="Longest wait for a response, such as 30s."),
    network_option(
        "--retries", type=click.IntRange(0, 100), help="Retries of a request; none after 404."
    ),
    network_option(
        "--robots",
        type=click.Choice(["obey", "ignore"]),
        default="obey",
        show_default=True,
        help="Obey or ignore robots.txt.",
    ),
    network_option(
        "--header",
        type=HEADER,
        multiple=True,
        metavar="'K: V'",
        help="Send a header, only to the Source's own origin.",
    ),
    ALLOW_ORIGIN,
    AUTH,
    CONTACT,
    *CONNECTION,
)
"""Options of requests to a Source, for commands that read Sources and for mirrors."""


def pop_connection(values: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of ``CONNECTION`` from a command's values; return those given."""
    names = ("proxy", "proxy_auth", "ca_file")
    way = {name: values.pop(name) for name in names if name in values}
    return {name: value for name, value in way.items() if value is not None}


MAX_DELETE = option(
    "--max-delete",
    type=LIMIT,
    metavar="N|P%",
    default="10%",
    show_default=True,
    help="Hold all deletions back if there are more. With P%, 25 are always allowed, but never more"
    " than half of the copies if the lists only no longer contain them.",
)


def with_options(*groups: tuple[Decorator, ...]) -> Decorator:
    """Return a decorator that gives a command the options of some groups, in their order."""

    def add(function: Callable[..., Job]) -> Callable[..., Job]:
        for decorate in reversed([function for group in groups for function in group]):
            function = decorate(function)
        return function

    return add


def options_of(*groups: tuple[Decorator, ...]) -> dict[str, click.Option]:
    """Return the options of some groups by their names in the configuration file."""
    command = click.command(with_options(*groups)(_no_command))
    return {
        param.name: param
        for param in command.params
        if isinstance(param, click.Option) and param.name
    }


def _no_command(**_values: object) -> Job:
    raise AssertionError("not a command: it only carries options")


def json_option() -> Decorator:
    """Return the ``--json`` option alone."""
    return output_option(
        "--json", is_flag=True, help="Write one JSON object per line, and no text."
    )


_LOG_FILE: Final = output_option(
    "--log-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append log messages to this file; for diagnostics only.",
)
_LOG_FORMAT: Final = output_option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    help="The format of the log; default: text.",
)


def _with_log_options(job: Job, *, log_file: Path | None, log_format: Any, **_: Any) -> Job:
    """Return a job with the log of its options, or of the configuration file."""
    known: Mapping[str, Any] = click.get_current_context().meta.get(LOG, {})
    output = job.output._replace(
        log_file=log_file or known.get("file"),
        log_format=log_format or known.get("format"),
    )
    return job._replace(output=output)


def output_options(function: Callable[..., Job]) -> Callable[..., Job]:
    """Give a command the output options, passed as ``output``."""

    @json_option()
    @output_option(
        "-q",
        "--quiet",
        count=True,
        help="Show nothing on success; on failure show the errors and what to do, on stderr."
        " Twice: show nothing.",
    )
    @output_option("-v", "--verbose", count=True, help="Show a line per resource.")
    @output_option(
        "--progress",
        type=click.Choice(["auto", "bar", "plain", "off"]),
        default="auto",
        show_default=True,
        help="Show a bar, or a line every 30 s (plain); auto: a bar on a terminal.",
    )
    @output_option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Colour words; NO_COLOR, FORCE_COLOR and TERM=dumb are obeyed.",
    )
    @_LOG_FILE
    @_LOG_FORMAT
    @functools.wraps(function)
    def with_output(**values: Any) -> Job:
        chosen = {name: values.pop(name) for name in OutputOptions._fields}
        return _with_log_options(function(output=OutputOptions(**chosen), **values), **chosen)

    return with_output


_SECRET_FIELDS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})


def convert_setting(option: click.Option, written: object) -> Any:
    """Return a value as an option takes it; the message of an error continues the key's name.

    Raises:
        ConfigurationError: It has the wrong type or syntax.
    """
    if option.is_flag:
        return _check_type(written, bool, "must be true or false")
    if option.multiple:
        texts = _check_type(written, list, "must be a list of strings")
        written = [_check_type(text, str, "must be a list of strings") for text in texts]
    elif isinstance(option.type, Parsed) and type(written) in {int, float}:
        written = str(written)
    elif isinstance(option.type, click.IntRange):
        _check_type(written, int, "must be a whole number")
    else:
        _check_type(written, str, "must be a string")
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
                f"must not contain {name}", hint="write a table [auth.NAME] with its place"
            )


class Setting(NamedTuple):
    """One value and its origin.

    Attributes:
        value: The value as the option of that name takes it.
        written: The value as written in the file or the environment.
        origin: ``file:line``, or the variable's name.
    """

    value: Any
    written: object
    origin: str


def table_mistakes(
    file: ConfigFile, table: tuple[str, ...], keys: Mapping[str, click.Option]
) -> Iterator[ConfigurationError]:
    """Yield the mistakes in a table with these keys."""
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
        raise file.key_error(
            table, key, error.message, hint=with_command(error.hint, error.remedy)
        ) from None
    if key == "ca_file" or (table, key) == (("log",), "file"):
        value = _resolve_file(file, table, key, value)
    return Setting(value=value, written=written, origin=file.location(table, key))


def _resolve_file(file: ConfigFile, table: tuple[str, ...], key: str, value: str) -> str:
    """Return the path of a file; a relative path starts at the folder of the configuration."""
    if not value or "\0" in value:
        raise file.key_error(table, key, "must be a file")
    try:
        return str(file.path.parent / Path(value).expanduser())
    except RuntimeError:
        raise file.key_error(table, key, "names a user who does not exist") from None


_EXPLICIT_SOURCES: Final = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
_CONFLICTS: Final = (frozenset({"set", "all_sets"}), frozenset({"every", "cron"}))


def given_options() -> frozenset[str]:
    """Return the options that were given on the command line or in the environment."""
    context = click.get_current_context()
    return frozenset(
        param
        for param in context.params
        if context.get_parameter_source(param) in _EXPLICIT_SOURCES
    )


def merge_settings(
    values: Mapping[str, Any], settings: Mapping[str, Setting], given: frozenset[str]
) -> dict[str, Any]:
    """Return the values of a command's options; those not given come from the configuration.

    Args:
        values: The options, as parsed by click.
        settings: The settings of the configuration.
        given: The options on the command line or in the environment.
    """
    hidden = given | _hidden_names(given)
    found = {
        name: setting.value
        for name, setting in settings.items()
        if name in values and name not in hidden
    }
    # A proxy of one table does not get the secret that another table has for another proxy.
    gone = {"proxy_auth": None} if "proxy" in found and "proxy_auth" not in given else {}
    return {**values, **gone, **found}


def merge_connection(settings: Mapping[str, Setting], way: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of settings, overridden by the options of ``CONNECTION`` given."""
    hidden = _hidden_names(way.keys())
    values = {name: setting.value for name, setting in settings.items() if name not in hidden}
    return {**values, **way}


def _hidden_names(names: Collection[str]) -> frozenset[str]:
    """Return the names that some given settings override; a proxy also overrides its secret."""
    hidden = frozenset().union(*(rivals for rivals in _CONFLICTS if rivals.intersection(names)))
    return hidden | {"proxy_auth"} if "proxy" in names else hidden


def without_conflicts(
    defaults: Mapping[str, Setting], own: Mapping[str, Setting]
) -> dict[str, Setting]:
    """Return the defaults without those that conflict with the mirror's settings."""
    hidden = _hidden_names(own.keys())
    return {name: setting for name, setting in defaults.items() if name not in hidden}
