"""Options that commands share: output, settings of a schema, the argument MIRROR, a Source."""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

import click
import msgspec
from click.core import ParameterSource
from msgspec.structs import replace

from resourcesync.app.configured_mirrors import MirrorConfiguration, values_of
from resourcesync.cli.output import Job, OutputOptions
from resourcesync.destination.options import PullOptions
from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.model.settings import FILE, FOLDER, PLACE, Form, Section
from resourcesync.settings import config_file, schema
from resourcesync.settings.config_file import SettingValue
from resourcesync.settings.mirror import Network, SecretNames
from resourcesync.settings.precedence import overlay

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


V = TypeVar("V")
Decorator = Callable[[Callable[..., Job]], Callable[..., Job]]

_LOG: Final = "resourcesync.log"
"""Name in a command's context of the table `[log]` of the configuration file."""


class SectionOption(click.Option):
    """An option in a section of the help."""

    def __init__(self, *args: Any, section: Section = Section.MAIN, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.section = section


def _show_short_help(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click calls it
    if value and not ctx.resilient_parsing:
        assert isinstance(ctx.command, SectionedCommand)
        click.echo(ctx.command.get_short_help(ctx))
        ctx.exit()


_SHORT_HELP: Final = click.Option(
    ["-h", "short_help"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    allow_from_autoenv=False,
    callback=_show_short_help,
    help="Show the most important options in a sentence each, and exit.",
)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", " ".join(text.split()), maxsplit=1)[0]


class SectionedCommand(click.Command):
    """A command whose help shows the options in sections, and their variables once."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; an error about an option without its value names the values."""
        try:
            return super().parse_args(ctx, args)
        except click.BadOptionUsage as error:
            values = self._values_of(error.option_name, ctx)
            message = f"{error.message.rstrip('.')}{values}"
            raise click.BadOptionUsage(error.option_name, message, ctx) from error

    def _values_of(self, name: str, ctx: click.Context) -> str:
        found = [param for param in self.params if name in param.opts]
        takes = found[0].make_metavar(ctx) if found and not getattr(found[0], "is_flag", 0) else ""
        return takes and f": {name} {takes}"

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with ``-h`` before ``--help``."""
        found = super().get_params(ctx)
        return [*found[:-1], _SHORT_HELP, *found[-1:]]

    def get_short_help(self, ctx: click.Context) -> str:
        """Return the usage, one sentence, and the first section of the options."""
        options = [
            param
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and not param.hidden
        ]
        first = [param for param in options if getattr(param, "section", None) is Section.MAIN]
        records = [(param.get_help_record(ctx), param.help or "") for param in first]
        rows = [(record[0], _first_sentence(text)) for record, text in records if record]
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(_first_sentence(self.help or ""))
        if rows:
            with formatter.section(Section.MAIN.value):
                formatter.write_dl(rows)
        formatter.write_paragraph()
        formatter.write_text(f"All {len(options)} options: {ctx.command_path} --help")
        return formatter.getvalue().rstrip("\n")

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
output_option = functools.partial(option, section=Section.OUTPUT)


class Parsed(click.ParamType[V], Generic[V]):
    """A type of values with a syntax of their own, such as durations."""

    def __init__(self, name: str, parse: Callable[[str], V]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> V:
        """Return the value of a text."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # a default, converted already
        try:
            return self._parse(value)
        except ConfigurationError as error:
            message = f"{error.message}: {error.hint}" if error.hint else error.message
            self.fail(message, param, ctx)


DURATION = Parsed("duration", schema.parse_duration)
MOMENT = Parsed("time", schema.parse_moment)
LIMIT = Parsed("limit", schema.parse_limit)
PAIR = Parsed("pair", schema.parse_pair)
BINDING = Parsed("address", schema.parse_binding)
NETWORK = Parsed("network", schema.parse_network)

CONFIG = option(
    "--config",
    envvar=config_file.VARIABLE,
    show_envvar=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The configuration file to use.",
)


class _Folder(click.Path):
    """A folder; an empty name would be the current one."""

    def __init__(self, *, or_store: bool = False) -> None:
        super().__init__(file_okay=False, path_type=Path)
        self._or_store = or_store

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("name a folder", param, ctx)
        if self._or_store and "://" in str(value):
            return str(value)
        return super().convert(value, param, ctx)


_PATHS: Final[Mapping[Form, click.ParamType[Any]]] = {
    FILE: click.Path(),
    FOLDER: _Folder(),
    PLACE: _Folder(or_store=True),
}


def with_options(*decorators: Decorator) -> Decorator:
    """Return a decorator that gives a command some options, in their order."""

    def add(function: Callable[..., Job]) -> Callable[..., Job]:
        for decorate in reversed(decorators):
            function = decorate(function)
        return function

    return add


class _Choice(click.Choice[str]):
    def __init__(self, field: schema.Field) -> None:
        super().__init__(field.choices)
        self._kind = field.kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._kind(super().convert(value, param, ctx))


def field_option(field: schema.Field) -> Decorator:
    """Return the option of one setting."""
    setting, name = field.setting, field.key.replace("_", "-")
    long = f"--{name}/--no-{name}" if field.is_flag and setting.is_stored else f"--{name}"
    return option(
        field.key,
        *filter(None, (setting.short, long)),
        section=setting.section,
        type=None if field.is_flag else _type_of(field),
        is_flag=field.is_flag,
        multiple=field.is_many,
        metavar=setting.metavar or None,
        default=setting.shown or (None if setting.is_stored or not field.is_flag else False),
        show_default=bool(setting.shown),
        help=setting.help,
    )


def _type_of(field: schema.Field) -> click.ParamType[Any] | None:
    form = field.form
    if field.choices:
        return _Choice(field)
    if field.is_whole:
        return click.IntRange(form.lowest, form.highest)
    return Parsed(form.name, field.read) if field.has_syntax else _PATHS.get(form)


def with_settings(fields: Iterable[schema.Field], *, named: bool = True) -> Decorator:
    """Return a decorator that gives a command some settings: options, and ``-o`` for the others.

    The command gets a value for each key; without ``named``, all are given by ``-o``.
    """
    every = {field.key: field for field in fields}
    own = {key: field for key, field in every.items() if named and field.setting.is_option}
    others = {key: field for key, field in every.items() if key not in own}

    def add(function: Callable[..., Job]) -> Callable[..., Job]:
        @functools.wraps(function)
        def with_keys(option: Iterable[tuple[str, str]] = (), **values: Any) -> Job:
            given = _parse_keys(option, others, own)
            click.get_current_context().meta[_GIVEN] = frozenset(given)
            return function(
                **values, **{key: given.get(key, _nothing(of)) for key, of in others.items()}
            )

        decorated = with_options(*map(field_option, own.values()), *((_KEY,) if others else ()))
        return decorated(with_keys)

    return add


_GIVEN: Final = "resourcesync.given"
"""Name in a command's context of the keys that ``-o`` gave."""


def _nothing(field: schema.Field) -> Any:
    if field.is_many:
        return ()
    return False if field.is_flag and not field.setting.is_stored else None


def _parse_keys(
    given: Iterable[tuple[str, str]],
    fields: Mapping[str, schema.Field],
    own: Mapping[str, schema.Field],
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for written, text in given:
        key = written.replace("-", "_")
        if key in own:
            raise click.UsageError(f"{written} is an option: --{key.replace('_', '-')}")
        if key not in fields:
            from difflib import get_close_matches  # noqa: PLC0415 - for a mistake only

            near = get_close_matches(key, fields, n=1)
            raise click.UsageError(
                f"-o {written}: there is no such key"
                + (f"; did you mean {near[0]}?" if near else "")
            )
        field = fields[key]
        try:
            value = schema.from_variable(field._replace(is_many=False), text)
        except ConfigurationError as error:
            raise click.UsageError(f"-o {written}: it {error.message}") from error
        found[key] = (*found.get(key, ()), value) if field.is_many else value
    return found


_KEY: Final = option(
    "-o",
    "--option",
    type=PAIR,
    multiple=True,
    metavar="KEY=VALUE",
    help="Any other key of the configuration file, for this run, such as retries=2. Repeat for"
    " several.",
)


_NETWORK: Final = schema.fields_of(Network, SecretNames)
REQUEST_KEYS: Final = (
    *("timeout", "retries", "robots", "header", "allow_origin", "auth", "contact"),
    *("proxy", "proxy_auth", "ca_file"),
)
"""The settings of requests to a Source, for commands that read Sources."""
REQUEST_OPTIONS: Final = with_settings(_NETWORK[key] for key in REQUEST_KEYS)
CONNECTION_KEYS: Final = tuple(key for key in _NETWORK if key not in {"allow_origin", "auth"})
CONNECTION: Final = with_settings((_NETWORK[key] for key in CONNECTION_KEYS), named=False)
"""The settings of requests of commands for a mirror; see `pop_connection`."""
REHEARSAL: Final = with_options(
    option("-n", "--dry-run", is_flag=True, help="Show what would be done; change nothing."),
    option(
        "-i",
        "--itemize",
        is_flag=True,
        help="Show a line per action: + created, * updated, - deleted, ! failed.",
    ),
)
MAX_DELETE: Final = field_option(schema.fields_of(PullOptions)["max_delete"])


def complete_mirror(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Return the configured mirrors whose name begins so, for a shell; without one, folders."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - for a shell only

    try:
        file = config_file.find(ctx.params.get("config"))
        names = () if file is None else file.table("mirror")
    except ResourceSyncError:
        names = ()  # `config check` reports it; a shell shows nothing
    found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="dir")]


def pop_connection(values: dict[str, Any]) -> dict[str, Any]:
    """Remove the settings of ``CONNECTION`` from a command's values; return those given."""
    way = {name: values.pop(name) for name in CONNECTION_KEYS if name in values}
    return {name: way[name] for name in given_options() & way.keys()}


def output_options(function: Callable[..., Job]) -> Callable[..., Job]:
    """Give a command the output options, passed as ``output``."""

    @output_option("--json", is_flag=True, help="Write one JSON object per line, and no text.")
    @output_option(
        "-q",
        "--quiet",
        count=True,
        help="Show nothing on success; on failure show the errors and what to do, on stderr."
        " Twice: show nothing.",
    )
    @output_option("-v", "--verbose", count=True, help="Show each resource copied or checked.")
    @output_option(
        "--progress",
        type=click.Choice(["auto", "bar", "plain", "off"]),
        default="auto",
        show_default=True,
        help="Show a bar, or a line every 30 s (plain); auto: a bar on a terminal.",
    )
    @output_option(
        "--log-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Append log messages to this file, for diagnostics; lines of JSON if its name ends in "
        ".json, .jsonl or .ndjson.",
    )
    @functools.wraps(function)
    def with_output(**values: Any) -> Job:
        names = ("json", "quiet", "verbose", "progress", "log_file")
        chosen = {name: values.pop(name) for name in names}
        output, context = OutputOptions(**chosen), click.get_current_context()
        job = function(output=output, **values)
        return job.completed(context.info_name or "", output, context.meta.get(_LOG, {}))

    return with_output


_EXPLICIT_SOURCES: Final = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def given_options() -> frozenset[str]:
    """Return the options that were given on the command line or in the environment."""
    context = click.get_current_context()
    by_key: frozenset[str] = context.meta.get(_GIVEN, frozenset())
    return by_key.union(
        param
        for param in context.params
        if context.get_parameter_source(param) in _EXPLICIT_SOURCES
    )


def merge_settings(
    values: Mapping[str, Any], settings: Mapping[str, SettingValue], given: frozenset[str]
) -> dict[str, Any]:
    """Return the values of a command's options; those not given come from the configuration."""
    configured = {name: found.value for name, found in settings.items() if name in values}
    own = {name: values[name] for name in given & values.keys()}
    return {**dict.fromkeys(values), **overlay(values, configured, own)}


class MirrorArgument(msgspec.Struct, frozen=True, kw_only=True):
    """The mirror of a command, as it was named: its table has settings that its folder has not."""

    named: str
    folder: Path
    network: Callable[[], Network]


def mirror_argument(function: Callable[..., Job]) -> Callable[..., Job]:
    """Give a command with ``--config`` the argument MIRROR, passed as ``mirror``.

    The options of ``CONNECTION``, if the command has them, go into the network settings.
    """

    @click.argument("mirror", shell_complete=complete_mirror)
    @functools.wraps(function)
    def with_mirror(mirror: str, config: Path | None, **values: Any) -> Job:
        return function(mirror=resolve_mirror(mirror, config, pop_connection(values)), **values)

    return with_mirror


def load(named: Path | None) -> MirrorConfiguration:
    """Read the configuration file; its log counts for options that are not given."""
    configuration = MirrorConfiguration(config_file.find(named))
    if context := click.get_current_context(silent=True):
        context.meta[_LOG] = values_of(configuration.log)
    return configuration


def resolve_mirror(
    mirror: str, config: Path | None, connection: Mapping[str, Any]
) -> MirrorArgument:
    """Return the mirror of a name or folder."""
    configuration = load(config)
    return MirrorArgument(
        named=mirror,
        folder=configuration.pulled_folder(mirror),
        network=functools.partial(configuration.network, mirror, connection),
    )


class SourceAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The options and secrets of requests to a Source."""

    configuration: MirrorConfiguration
    values: Mapping[str, Any]

    def check_one_source(self, targets: Iterable[str]) -> None:
        """Refuse a secret with several Sources: each would receive it."""
        origins = {urlsplit(target)[:2] for target in targets if "://" in target}
        header, auth = self.values["header"], self.values["auth"]
        if (header or auth) and len(origins) > 1:
            option = "-o header" if header else "--auth"
            raise click.UsageError(f"{option} would send a secret of one Source to the other")

    def resolve(self, target: str) -> "tuple[str, SourceAccess]":
        """Return address and access of a Source; those of its mirror for a mirror's name."""
        if target not in self.configuration:
            return target, self
        mirror = self.configuration.mirror(target)
        values = merge_settings(self.values, mirror.settings, given_options())
        return mirror.source, replace(self, values=values)

    def network(self, source: str = "") -> Network:
        """Return the network settings."""
        return self.configuration.network_from(self.values, source if "://" in source else "")


def source_options(function: Callable[..., Job]) -> Callable[..., Job]:
    """Give a command the options of requests to a Source, passed as ``asking``."""

    @functools.wraps(function)
    def with_source(**values: Any) -> Job:
        configuration = load(values.pop("config"))
        own = {name: values.pop(name) for name in REQUEST_KEYS}
        # A header of the defaults is for the mirrors: a command might send it to two Sources.
        defaults = {k: setting for k, setting in configuration.defaults.items() if k != "header"}
        chosen = merge_settings(own, defaults, given_options())
        return function(asking=SourceAccess(configuration=configuration, values=chosen), **values)

    return with_options(REQUEST_OPTIONS, CONFIG)(with_source)
