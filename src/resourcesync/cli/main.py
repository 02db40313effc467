"""The entry point: the one place where errors, signals and crashes become exit codes."""

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final, NoReturn

import click

from resourcesync import __version__, app
from resourcesync.cli import exit_codes
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.output import (
    QUIET,
    CommandOutcome,
    Job,
    OutputLostError,
    OutputOptions,
    Problem,
    Screen,
    TextLine,
    problem_of,
)
from resourcesync.errors import ResourceSyncError, StorageError, storage_error
from resourcesync.settings.environment import PREFIX, Environment, read_environment

GROUPS: Final = {
    "Mirror": {
        "pull": "copy what changed since last time",
        "watch": "keep mirrors up to date, as a service",
        "status": "show how far behind each mirror is",
        "list": "list the copies of a mirror, for other programs",
        "changes": "list what changed in a mirror, for other programs",
        "audit": "compare every copy with the Source; write evidence",
        "repair": "fetch missing and damaged copies again",
        "trash": "list, restore or remove deleted files",
    },
    "Publish": {
        "publish": "write Resource Lists and Change Lists for a tree",
        "serve": "serve a tree and its lists over HTTP",
        "catalogue": "record resource changes from another system",
    },
    "Inspect": {
        "explore": "show a Source's documents as a tree",
        "validate": "check documents against the specification",
        "why": "explain one resource, or the code of an error or a rule",
    },
    "Set up": {
        "config": "create, check or show the configuration file",
        "doctor": "check a mirror or a Source for problems",
    },
    "Try out": {"demo": "publish, mirror and change a real tree on this machine"},
}
"""The commands, in the groups of the help screen."""

COMMANDS: Final = {name: text for group in GROUPS.values() for name, text in group.items()}

FIRST: Final = ("pull", "status", "watch", "publish", "serve")
"""The commands of the first hour."""

_HEAD: Final = """\
resourcesync keeps copies of web resources in sync with their source.
ResourceSync (ANSI/NISO Z39.99-2017) and plain sitemaps.

  resourcesync demo
      see it work: publish, mirror and change a tree on this machine
  resourcesync pull https://docs.example.org ./docs
      mirror a site; run again to update
  resourcesync publish ./public --url https://museum.example
      publish a folder as a Source

"""

_SHORT_HELP: Final = f"""\
{_HEAD}{{first}}

{{others}}

resourcesync COMMAND -h   its most important options; --help: all of them
resourcesync --help       all commands in a sentence each, and the exit codes
"""

_HELP: Final = f"""\
{_HEAD}{{commands}}

{{exit_codes}}

resourcesync COMMAND -h   its most important options; --help: all of them
"""


_GARBAGE_THRESHOLD: Final = 50_000
"""New objects until the next search for cycles. With Python's 700, imports alone cause 77 of them,
and a tenth of the time of a short command.
"""

_OPTIONS_OF_OTHERS: Final = {"--port": "--bind 127.0.0.1:PORT", "--host": "--bind HOST:PORT"}
"""Options of other servers, with those that mean the same here."""
_WORDS_OF_OTHERS: Final = {
    **dict.fromkeys(("version", "-V", "-v"), "--version"),
    **dict.fromkeys(("mirror", "sync"), "pull"),
    "check": "audit or validate",
    "verify": "audit",
    "init": "config init",
}
"""Commands and options of other programs, with ours that do the same."""


def module_of(command: str) -> str:
    """Return the name of the module of a command."""
    folder = "service" if command == "watch" else "commands"
    return f"resourcesync.cli.{folder}.{command}"


def _annex_commands() -> dict[str, str]:
    return {
        plugin.name: f"of {plugin.distribution}"
        for plugin in app.plugins.plugins_in(app.plugins.COMMANDS)
        if plugin.name not in COMMANDS
    }


class LazyGroup(click.Group):
    """A group that imports a command only when it is used: help stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        del ctx
        return [*COMMANDS, *_annex_commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; ``None`` for an unknown name."""
        del ctx
        if cmd_name in COMMANDS:
            command = importlib.import_module(module_of(cmd_name)).command
        elif cmd_name in _annex_commands():
            command = app.plugins.load(app.plugins.COMMANDS, cmd_name)
        else:
            return None
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown name gets the nearest one as a hint."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            known = self.list_commands(ctx)
            if args[0] not in known:
                raise click.NoSuchCommand(args[0], possibilities=known, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the grouped help screen."""
        del ctx
        rows = []
        for group, commands in {**GROUPS, "Annexes": _annex_commands()}.items():
            for number, (name, text) in enumerate(commands.items()):
                rows.append(f"{'' if number else group:<11}{name:<12}{text}")
        codes = ["Exit code  Meaning"]
        codes += [f"{code.value:<11}{code.meaning}" for code in ExitCode]
        formatter.write(_HELP.format(commands="\n".join(rows), exit_codes="\n".join(codes)))


def short_help() -> str:
    """Return the help of the first hour: five commands, and the names of the others."""
    first = [f"{name:<12}{COMMANDS[name]}" for name in FIRST]
    others = []
    for group, commands in GROUPS.items():
        names = [name for name in commands if name not in FIRST]
        others.append(f"{group:<11}{', '.join(names)}")
    return _SHORT_HELP.format(first="\n".join(first), others="\n".join(others))


def _show_short_help(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click calls it
    if value and not ctx.resilient_parsing:
        click.echo(short_help(), nl=False)
        ctx.exit()


@click.group(
    cls=LazyGroup, invoke_without_command=True, context_settings={"max_content_width": 100}
)
@click.option(
    "-h",
    "short",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    allow_from_autoenv=False,
    callback=_show_short_help,
    help="Show the commands of the first hour.",
)
@click.version_option(__version__, message="resourcesync %(version)s", help="Show the version.")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Keep copies of web resources in sync with their source."""
    if ctx.invoked_subcommand is None:
        click.echo(short_help(), nl=False)


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    gc.set_threshold(_GARBAGE_THRESHOLD)
    code = run(sys.argv[1:], ends_process=True)
    gc.freeze()  # else the interpreter searches all modules for cycles before it ends: 25 ms
    sys.exit(code)


def run(arguments: Sequence[str], *, ends_process: bool = False) -> int:
    """Parse and run one command line; return its exit code. Never raises."""
    environment = read_environment()
    with exit_codes.signals_raise(for_good=ends_process):
        try:
            return int(_run(arguments, environment))
        except OutputLostError as lost:
            _discard_stdout()
            if lost.exit is not ExitCode.PIPE:
                # Written without a screen: its stream is the one that is lost.
                click.echo(f"error[output]: {lost.reason}\nexit {int(lost.exit)}", err=True)
            return int(lost.exit)
        except KeyboardInterrupt as stop:
            return int(exit_codes.acknowledge_stop(stop))


def _run(arguments: Sequence[str], environment: Environment) -> ExitCode:
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    try:
        job = cli.main(
            args=list(arguments),
            prog_name="resourcesync",
            standalone_mode=False,
            auto_envvar_prefix=PREFIX,
        )
    except click.Abort:
        return ExitCode.INTERRUPTED
    except SystemExit as end:  # click answered a shell, or its pipe closed while it wrote help
        return ExitCode.PIPE if end.code else ExitCode.OK
    except click.ClickException as error:
        job = _usage_job(_usage(error), arguments, environment)
    except ResourceSyncError as error:  # of the configuration file
        _show_traceback(environment)
        job = _usage_job(problem_of(error), arguments, environment)
    return _run_job(job, environment, arguments) if isinstance(job, Job) else ExitCode.OK


def _usage(error: click.ClickException) -> Problem:
    context = error.ctx if isinstance(error, click.UsageError) else None
    message, likely = error.format_message(), ""
    if isinstance(error, click.NoSuchCommand | click.NoSuchOption):
        message = error.message
        meant = _suggestion(error) or "".join((error.possibilities or [])[:1])
        likely = f"did you mean {meant}? " if meant else ""
        if isinstance(error, click.NoSuchCommand) and not meant:
            likely = f"{app.plugins.ANNEX_HINT}; installed are: "
    return Problem(
        code="usage",
        message=" ".join(message.split()).rstrip("."),
        hint=f"{likely}{'resourcesync' if context is None else context.command_path} --help",
        exit=ExitCode.USAGE,
    )


def _suggestion(error: click.NoSuchCommand | click.NoSuchOption) -> str:
    name = error.option_name if isinstance(error, click.NoSuchOption) else error.command_name
    command = None if error.ctx is None else error.ctx.command
    if isinstance(command, LazyGroup) and name in _WORDS_OF_OTHERS:
        return _WORDS_OF_OTHERS[name]
    has_it = command is not None and any("--bind" in param.opts for param in command.params)
    return _OPTIONS_OF_OTHERS.get(name, "") if has_it else ""


def _usage_job(problem: Problem, arguments: Sequence[str], environment: Environment) -> Job:
    names = [*filter(COMMANDS.__contains__, arguments)] or [*arguments[:1]]
    command = names[0] if names and names[0] in cli.list_commands(click.Context(cli)) else ""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments

    def work(screen: Screen) -> CommandOutcome:
        screen.problem(problem)
        return problem.outcome()

    as_json = "--json" in options or command in environment.json
    return Job(command=command, output=OutputOptions(json=as_json), work=work)


def _run_job(job: Job, environment: Environment, arguments: Sequence[str]) -> ExitCode:
    run = app.system.new_run_id(app.system.SystemClock())
    from resourcesync.cli.terminal import open_screen, warnings_on_screen  # noqa: PLC0415 - quick start

    screen = open_screen(job, environment, run)
    with closing(screen), warnings_on_screen(screen), ExitStack() as held:
        try:
            screen.start(job.fields)
            _add_log(job, screen, held, run)
            outcome = job.work(screen)
        except (ResourceSyncError, PermissionError) as error:
            problem = problem_of(_permitted(error), str(job.fields.get("mirror", "")))
            screen.problem(problem)
            outcome = problem.outcome()
            _show_traceback(environment)
        except KeyboardInterrupt as stop:
            code = exit_codes.acknowledge_stop(stop)
            by = "Ctrl-C" if code is ExitCode.INTERRUPTED else "a signal"
            again = f" Run again to continue: {job.resume_command}" if job.resume_command else ""
            line = TextLine(f"by {by}; all files are consistent.{again}", "Stopped", QUIET)
            outcome = CommandOutcome(exit=code, closing=(line,), fields={"stopped_by": by})
        except Exception as error:  # noqa: BLE001 - the edge: unexpected errors end here
            from resourcesync.cli.crash import write_crash_report  # noqa: PLC0415 - seldom needed

            problem = write_crash_report(error, arguments)
            screen.problem(problem)
            outcome = problem.outcome()
            _show_traceback(environment)
        screen.end(outcome)
        return outcome.exit


def _permitted(error: ResourceSyncError | PermissionError) -> ResourceSyncError:
    """Return an error of ours: a path may be out of reach where it is only asked what is there."""
    if isinstance(error, ResourceSyncError):
        return error
    return storage_error(error, f"looking at {error.filename}", kept="what was there before")


def _add_log(job: Job, screen: Screen, held: ExitStack, run: str) -> None:
    output = job.output
    if output.log_file is None:
        return
    from resourcesync.cli.log_file import LogEncoder, open_log  # noqa: PLC0415 - quick start

    level = output.log_level or ("debug" if output.verbose > 1 else "info")
    try:
        held.enter_context(open_log(Path(output.log_file), level=level, run=run))
        screen.encoders.insert(0, LogEncoder(job))
    except StorageError as error:
        fields = {"code": error.code, "message": error.message, "hint": error.hint}
        screen.report("warning", fields)


def _show_traceback(environment: Environment) -> None:
    if environment.debug:
        import traceback  # noqa: PLC0415 - for RESOURCESYNC_DEBUG only

        traceback.print_exc(file=sys.stderr)


def _discard_stdout() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except OSError:
        return
    finally:
        os.close(nowhere)
