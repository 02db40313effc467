"""``resourcesync config``: create, find, check and show the configuration file."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from resourcesync import app
from resourcesync.app import configured_mirrors
from resourcesync.app.configured_mirrors import PULL, MirrorConfiguration
from resourcesync.app.configured_sources import ConfiguredSources
from resourcesync.app.watching import unit_files
from resourcesync.cli import options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.log_file import check_log
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import (
    QUIET,
    CommandOutcome,
    Job,
    OutputOptions,
    Screen,
    TextLine,
    problem_of,
    write_line,
)
from resourcesync.errors import ConfigurationError, ResourceSyncError, StorageError
from resourcesync.model import formatting
from resourcesync.settings import config_file, environment
from resourcesync.settings.config_file import SettingValue
from resourcesync.settings.schema import in_file

_ACTIONS: Final = ("init", "check", "show", "path")
_SERVICES: Final = ("systemd", "cron", "nginx")
_SHARED: Final = {"grafana": "grafana.json", "alerts": "alerts.yml"}
_PRINTED: Final = (*_SERVICES, *_SHARED)


class _Action(click.Choice[str]):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the action; a system is looked up if it is none of ours."""
        if value in self.choices:
            return str(value)
        if value not in app.plugins.names(app.plugins.SETUPS):
            known = ", ".join(self.choices)
            self.fail(f"{value!r} is none of {known}; {app.plugins.ANNEX_HINT}", param, ctx)
        return str(value)


@click.command("config", cls=SectionedCommand)
@click.argument("action", metavar="ACTION", type=_Action([*_ACTIONS, *_PRINTED]))
@option("--origin", is_flag=True, help="For show: the origin of each value; built-in values too.")
@option(
    "--with",
    multiple=True,
    type=options.PAIR,
    metavar="KEY=VALUE",
    help="For a system: the settings of publish, such as the table. Repeat for several.",
)
@options.CONFIG
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Create, check, show or find the configuration file.

    \b
    init    write an example, if there is no file yet
    check   report every mistake, also what watch would refuse, and missing secrets;
            no request is sent
    show    the settings of each mirror, with [defaults] and the environment
    path    the file that is used

    \b
    systemd, cron: print what runs resourcesync unattended: mirrors, and each [source.NAME] at
            night, those with `every` in between too
    nginx:  a server for each host of each [source.NAME], once published; no `serve` runs
    grafana: a dashboard; alerts: rules for Prometheus; both use the metrics of watch
    a system that an annex knows: what to run there once. postgres: SQL that makes a table
            log its changes; elasticsearch: requests that create an index of resources, and
            one of their changes

    The first of these files is used: --config, RESOURCESYNC_CONFIG, ./resourcesync.toml, the
    user's own, /etc/resourcesync/resourcesync.toml. A file inside a mirror is used only if named.
    """  # noqa: D301 - click's mark for lines that are not to be filled
    action, named = values["action"], values["config"]
    _check_flags(action, values)

    def work(screen: Screen) -> CommandOutcome:
        if action in _SERVICES and any(_mistakes_of(_find_file(named))):
            return _check(_find_file(named), screen)
        if action not in _ACTIONS:
            text = _generated_file(action, values)
            if output.json:
                screen.report("file", {"name": action, "text": text})
            else:
                write_line(sys.stdout, text.rstrip("\n"))
            return CommandOutcome()
        match action:
            case "init":
                return _init(named or Path(config_file.NAME))
            case "path":
                return _path(named)
            case "check":
                return _check(_find_file(named), screen)
            case _:
                return _show(
                    MirrorConfiguration(_find_file(named)), screen, with_origin=values["origin"]
                )

    return Job(work=work, fields={"action": action})


def _check_flags(action: str, values: Mapping[str, Any]) -> None:
    if values["origin"] and action != "show":
        raise click.UsageError("--origin is for show")
    if values["with"] and action in (*_ACTIONS, *_PRINTED):
        raise click.UsageError("--with is for a system, such as postgres")


def _find_file(named: Path | None) -> config_file.ConfigFile:
    file = config_file.find(named)
    if file is None:
        tried = MirrorConfiguration(None).searched_files()
        raise ConfigurationError(
            "there is no configuration file", evidence=tried, hint="resourcesync config init"
        )
    return file


def _init(path: Path) -> CommandOutcome:
    text = unit_files.shared_text("resourcesync.toml")
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise ConfigurationError(
            f"{path} already exists",
            evidence=(("kept", "nothing was changed"),),
            hint="edit it, then: resourcesync config check (for another file: --config FILE)",
        ) from None
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror}",
            hint="create the folder, or correct its permissions",
        ) from error
    return CommandOutcome(
        closing=(TextLine(str(path), "Written", QUIET),), fields={"path": str(path)}
    )


def _path(named: Path | None) -> CommandOutcome:
    file = config_file.find(named)
    if file is not None:
        return CommandOutcome(
            closing=(TextLine(str(file.path), level=QUIET),), fields={"path": file.path}
        )
    lines = [
        TextLine(f"{at.path}  ({at.note}{'' if at.counts else '; not used'})", "No file", QUIET)
        for at in config_file.config_locations(named)
    ]
    return CommandOutcome(exit=ExitCode.FINDINGS, closing=tuple(lines), fields={"path": None})


def _generated_file(name: str, values: Mapping[str, Any]) -> str:
    if name in _SERVICES:
        return unit_files.service_file(name, _find_file(values["config"]))
    if name in _SHARED:
        return unit_files.shared_text(_SHARED[name])
    text: str = app.plugins.load(app.plugins.SETUPS, name)(dict(values["with"]))
    return text


def _check(file: config_file.ConfigFile, screen: Screen) -> CommandOutcome:
    errors: list[ResourceSyncError] = list(_mistakes_of(file))
    if not errors:
        from resourcesync.app.watching.watch_settings import watch_problems  # noqa: PLC0415 - help stays quick

        configuration = MirrorConfiguration(file)
        errors += _log_problems(configuration)
        errors += watch_problems(configuration)
        errors += ConfiguredSources(configuration).missing_folders()
    for error in errors:
        screen.problem(problem_of(error))
    missing = list(configured_mirrors.warnings_of(file))
    for warning in missing:
        screen.report("warning", warning)
    fields = {"path": file.path, "mistakes": len(errors)}
    if errors:
        text = f"{formatting.counted(len(errors), 'mistake')} in {file.path}"
        return CommandOutcome(
            exit=ExitCode.USAGE, closing=(TextLine(text, level=QUIET),), fields=fields
        )
    mirrors = formatting.counted(len(file.table("mirror")), "mirror")
    known = [mirrors, formatting.counted(len(file.table("auth")), "secret")]
    if file.table("source"):
        known.insert(1, formatting.counted(len(file.table("source")), "source"))
    text = f"{', '.join(known)} in {file.path}; no mistake"
    if not missing:
        return CommandOutcome(closing=(TextLine(text, "Good", QUIET),), fields=fields)
    text += f", but {formatting.counted(len(missing), 'secret')} missing here"
    return CommandOutcome(
        exit=ExitCode.FINDINGS, closing=(TextLine(text, level=QUIET),), fields=fields
    )


def _log_problems(configuration: MirrorConfiguration) -> Iterator[ResourceSyncError]:
    if log := configuration.log.get("file"):
        try:
            check_log(Path(log.value))
        except StorageError as error:
            yield error


def _mistakes_of(file: config_file.ConfigFile) -> Iterator[ConfigurationError]:
    shared = list(configured_mirrors.global_mistakes(file))
    if shared:
        yield from shared
        return
    configuration = MirrorConfiguration(file)
    yield from configuration.problems()
    yield from ConfiguredSources(configuration).problems()


def _show(
    configuration: MirrorConfiguration, screen: Screen, *, with_origin: bool
) -> CommandOutcome:
    lines: list[TextLine] = []
    codes = [ExitCode.OK]
    for name in configuration.names:
        try:
            mirror = configuration.mirror(name)
        except ConfigurationError as error:
            screen.problem(problem_of(error))
            codes.append(ExitCode.USAGE)
            continue
        lines.append(TextLine(f"[mirror.{name}]", level=QUIET))
        for key, setting in _effective_settings(mirror.settings, built_in=with_origin):
            screen.report(
                "setting",
                {"mirror": name, "key": key, "value": setting.written, "origin": setting.origin},
            )
            note = f"  # {setting.origin}" if with_origin else ""
            # For texts, numbers, booleans and lists TOML is as JSON.
            text = json.dumps(setting.written, ensure_ascii=False, default=str)
            lines.append(TextLine(f"{key} = {text}{note}", level=QUIET))
        lines.append(TextLine("", level=QUIET))
    assert configuration.file is not None
    fields = {"path": configuration.file.path, "mirrors": len(configuration.names)}
    return CommandOutcome(exit=max(codes), closing=tuple(lines[:-1]), fields=fields)


def _effective_settings(
    settings: Mapping[str, SettingValue], *, built_in: bool
) -> Iterator[tuple[str, SettingValue]]:
    keys = in_file(*PULL)
    for key in (*(setting for setting in settings if setting not in keys), *keys):
        variable = f"{environment.PREFIX}_PULL_{key.upper()}"
        text = environment.variable(variable)
        if key in keys and keys[key].setting.is_option and text:
            yield key, SettingValue(value=text, written=text, origin=variable)
        elif key in settings:
            yield key, settings[key]
        elif built_in and (shown := keys[key].setting.shown):
            yield key, SettingValue(value=shown, written=shown, origin="built-in")
