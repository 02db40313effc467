"""``resourcesync doctor``: check this machine, a mirror or a Source for problems."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from resourcesync.cli import configured_mirrors, formatting, options
from resourcesync.cli.commands.config import mistakes_of
from resourcesync.cli.configured_mirrors import MirrorConfiguration
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.cli.remedies import with_command
from resourcesync.errors import ConfigurationError
from resourcesync.settings import files
from resourcesync.settings.tables import overlay

if TYPE_CHECKING:
    from resourcesync.app.checks.diagnosis import CheckResult
    from resourcesync.settings.network import Network

_LEVELS: Final = {"ok": formatting.NORMAL, "warning": QUIET, "problem": QUIET}


@click.command("doctor", cls=SectionedCommand)
@click.argument(
    "target", required=False, metavar="[MIRROR|SOURCE]", shell_complete=options.complete_mirror
)
@option("--plugins", is_flag=True, help="Only list the installed plug-ins, each with its package.")
@options.CONNECTION
@options.CONFIG
@options.output_options
def command(output: OutputOptions, target: str | None, *, plugins: bool, **values: Any) -> Job:
    """Check this machine, and a mirror or a Source, for problems that disturb pulls.

    MIRROR is the folder of a mirror or of a future mirror, or a name in the configuration file;
    its Source is checked too. SOURCE is an address. What is checked: versions, clock, free space,
    file descriptors and configuration; file names, state, lock and temporary files of a mirror;
    certificate, time and robots.txt of a Source. Exit 0 without problems, 1 otherwise.

    --plugins lists the built-in plug-ins and those of other installed packages; none is imported.
    Kinds: accounts are input adapters of publish, originals are object stores of publish, mappers
    give files their paths.
    """
    if plugins:
        from resourcesync.cli.installed_plugins import plugins_job  # noqa: PLC0415 - rarely needed

        if target is not None:
            raise click.UsageError("--plugins lists all plug-ins: name no mirror and no Source")
        return plugins_job(output)
    named: Path | None = values.pop("config")
    way = options.pop_connection(values)

    def work(screen: Screen) -> CommandOutcome:
        verdicts: list[CheckResult] = []
        for verdict in _verdicts(target, named, way):
            verdicts.append(verdict)
            screen.report(
                "verdict",
                {
                    "check": verdict.check,
                    "level": verdict.level,
                    "text": verdict.text,
                    "next": with_command(verdict.next_step, verdict.remedy),
                },
            )
        return _outcome(verdicts)

    return Job(
        command="doctor", output=output, work=work, render=_render, fields={"target": target or ""}
    )


def _verdicts(
    target: str | None, named: Path | None, way: Mapping[str, Any]
) -> "Iterator[CheckResult]":
    from resourcesync.app import machine  # noqa: PLC0415 - help stays quick
    from resourcesync.app.checks import inspection  # noqa: PLC0415 - help stays quick
    from resourcesync.app.checks.diagnosis import check_folder, check_machine, check_source  # noqa: PLC0415 - as above

    clock = machine.system_clock()
    subject, mistake = _DoctorTarget(network=configured_mirrors.network_of(way)), None
    try:
        subject = _resolve_target(target, configured_mirrors.load(named), way)
    except ConfigurationError as error:
        mistake = error
    mistakes, warnings, path = _configuration(named, mistake)
    found = inspection.inspect_machine(
        clock, subject.network, config_file=path, mistakes=mistakes, warnings=warnings
    )
    yield from check_machine(found)
    address = subject.address
    if subject.known_names:
        yield _unknown_target(target or "", subject.known_names)
    if subject.folder is not None:
        place = inspection.inspect_folder(subject.folder, clock)
        yield from check_folder(place)
        address = address or place.source
    if address and mistake is None and not found.ca_fault:
        yield from check_source(inspection.inspect_source(address, subject.network, clock))


def _unknown_target(target: str, known: tuple[str, ...]) -> "CheckResult":
    from resourcesync.app.checks.diagnosis import CheckResult  # noqa: PLC0415 - as above

    return CheckResult(
        "name",
        "problem",
        f"the configuration has no mirror {target}, and there is no such folder",
        f"name one of {', '.join(known)[:500]}; for a future folder: ./{target}",
    )


class _DoctorTarget(NamedTuple):
    """The subject besides the machine: a folder, an address, or a folder and its Source.

    Attributes:
        network: The network settings for the Source.
        folder: The mirror's folder.
        address: The Source's address; empty for none.
        known_names: The names in the configuration, if the target is neither one of them nor a
            folder, and so was probably mistyped.
    """

    network: "Network"
    folder: Path | None = None
    address: str = ""
    known_names: tuple[str, ...] = ()


def _resolve_target(
    target: str | None, configuration: MirrorConfiguration, way: Mapping[str, Any]
) -> _DoctorTarget:
    """Return the subject that a target means; no secret is read."""
    settings = configuration.defaults
    folder, address = None, target or ""
    if target is not None and "://" not in target:
        folder, address = configuration.planned_folder(target), ""
    if target is not None and target in configuration:
        mirror = configuration.mirror(target)
        settings, address = mirror.settings, mirror.source
    network = configured_mirrors.network_of(overlay(configured_mirrors.values_of(settings), way))
    is_name = folder is not None and target not in configuration and "/" not in f"{target}"
    known = tuple(configuration.names) if is_name and folder and not folder.exists() else ()
    return _DoctorTarget(network, folder, address, known)


def _configuration(
    named: Path | None, mistake: ConfigurationError | None
) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Return the mistakes in the configuration file, its warnings, and its path."""
    try:
        file = files.find(named)
    except ConfigurationError as error:
        return (error.message,), (), "its file"
    if file is None:
        return ((mistake.message,), (), "the command") if mistake else ((), (), "")
    mistakes = [error.message for error in mistakes_of(file)]
    if mistake is not None and mistake.message not in mistakes:
        mistakes.append(mistake.message)
    warnings = () if mistakes else configured_mirrors.warnings_of(file)
    return tuple(mistakes), tuple(str(warning["message"]) for warning in warnings), str(file.path)


def _render(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    if event == "verdict":
        level = str(fields["level"])
        yield TextLine(str(fields["text"]), level, _LEVELS[level])
        if fields["next"]:
            yield TextLine(f"  next    {fields['next']}", level=_LEVELS[level])


def _outcome(verdicts: "list[CheckResult]") -> CommandOutcome:
    levels = [verdict.level for verdict in verdicts]
    problems, warnings = levels.count("problem"), levels.count("warning")
    counts = f"{formatting.counted(problems, 'problem')}, {formatting.counted(warnings, 'warning')}"
    line = TextLine(f"{counts}, {formatting.counted(len(verdicts), 'check')}", "Checked", QUIET)
    code = ExitCode.FINDINGS if problems else ExitCode.OK
    fields = {"problems": problems, "warnings": warnings, "checks": len(verdicts)}
    return CommandOutcome(exit=code, closing=(line,), fields=fields)
