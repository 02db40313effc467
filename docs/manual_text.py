"""Manual pages and completions of shells, made from what the program shows and reads."""

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Final

import click
from click.shell_completion import get_completion_class

from resourcesync import __version__
from resourcesync.app.configured_mirrors import mirror_keys
from resourcesync.app.configured_sources import source_keys
from resourcesync.cli import main
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.options import SectionOption
from resourcesync.model.settings import Section
from resourcesync.settings.environment import PREFIX
from resourcesync.settings.schema import Field

FOLDER: Final = "share/man"
_NAME: Final = "resourcesync"
_WIDTH: Final = 68
_COMPLETIONS: Final = {
    "bash": f"bash-completion/completions/{_NAME}",
    "zsh": f"zsh/site-functions/_{_NAME}",
    "fish": f"fish/vendor_completions.d/{_NAME}.fish",
}
_LOCATIONS: Final = "./resourcesync.toml, the user's own, /etc/resourcesync/resourcesync.toml"


def pages() -> Iterator[tuple[str, str]]:
    """Yield each manual page and script of completion: its path in the repository, its text."""
    root = click.Context(main.cli, info_name=_NAME, auto_envvar_prefix=PREFIX)
    yield f"{FOLDER}/man1/{_NAME}.1", _program()
    for name in main.COMMANDS:
        command = main.cli.get_command(root, name)
        assert command is not None
        context = click.Context(command, parent=root, info_name=name)
        yield f"{FOLDER}/man1/{_NAME}-{name}.1", _command(name, command, context)
    yield f"{FOLDER}/man5/{_NAME}.toml.5", _configuration()
    for shell, path in _COMPLETIONS.items():
        yield f"share/{path}", f"{_completion(shell)}\n"


def _completion(shell: str) -> str:
    """Return the script of a shell that completes a command line, as the program prints it."""
    writer = get_completion_class(shell)
    assert writer is not None, shell
    completer = writer(main.cli, {}, _NAME, f"_{PREFIX}_COMPLETE")
    return (completer.source_template % completer.source_vars()).strip("\n")


def escape(text: str) -> str:
    """Return a line of text that roff prints as it is."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\`")
    plain = plain.replace("^", "\\(ha").replace("~", "\\(ti")
    plain = "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in plain)
    return f"\\&{plain}" if plain.startswith((".", "\\(aq")) else plain


def _head(name: str, section: int, summary: str) -> list[str]:
    return [
        '.\\" Made by docs/generate.py from the program itself.',
        f'.TH {escape(name).upper()} {section} "" "resourcesync {__version__}" "resourcesync"',
        ".SH NAME",
        f"{escape(name)} \\- {escape(summary)}",
    ]


def wrapped(text: str) -> list[str]:
    """Return a text as lines for roff."""
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [escape(line) for line in lines]


def _item(term: str, text: str) -> list[str]:
    return [".TP", f".B {escape(term)}", *wrapped(text)]


def _also(*names: str) -> list[str]:
    """Return the section of related pages: names with their sections, such as NAME(1)."""
    shown = [f".BR {escape(name[:-3])} ({name[-2]})" for name in names]
    return [".SH SEE ALSO", *(f"{line} ," for line in shown[:-1]), shown[-1]]


def _text(lines: list[str]) -> str:
    return "\n".join(line for line in lines if line) + "\n"


def _program() -> str:
    lines = [
        *_head(_NAME, 1, "keep copies of web resources in sync with their source"),
        ".SH SYNOPSIS",
        f".B {_NAME}",
        ".I COMMAND",
        "[\\fIoptions\\fR] [\\fIarguments\\fR]",
        ".SH DESCRIPTION",
        *wrapped("Mirrors and publishes ResourceSync (ANSI/NISO Z39.99-2017) and plain sitemaps."),
        "Each command has a page of its own.",
    ]
    for group, commands in main.GROUPS.items():
        lines.append(f'.SS "{group}"')
        for name, summary in commands.items():
            lines += [".TP", f".BR {_NAME}\\-{name} (1)", *wrapped(summary)]
    lines += [".SH EXIT STATUS", *_exit_codes(), ".SH ENVIRONMENT"]
    for name, text in (
        (f"{PREFIX}_COMMAND_OPTION", "Sets an option of a command where it is not given."),
        (f"{PREFIX}_CONFIG", "The configuration file to use."),
        ("NO_COLOR, FORCE_COLOR", "Colours of the output."),
        ("HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY", "Proxies, where none is configured."),
    ):
        lines += _item(name, text)
    lines += [".SH FILES", escape(_LOCATIONS), *_also("resourcesync.toml(5)")]
    return _text(lines)


def _exit_codes() -> Iterator[str]:
    for code in ExitCode:
        yield from _item(str(code.value), code.meaning)


def _command(name: str, command: click.Command, context: click.Context) -> str:
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        *_head(f"{_NAME}-{name}", 1, main.COMMANDS[name]),
        ".SH SYNOPSIS",
        f".B {_NAME} {name}",
        escape(usage),
        ".SH DESCRIPTION",
        *[*_paragraphs(command.help or "")][1:],  # a section begins a paragraph itself
        ".SH OPTIONS",
    ]
    options = [param for param in command.get_params(context) if isinstance(param, click.Option)]
    for section in Section:
        rows = [record for option in options if (record := _record(option, section, context))]
        if rows:
            lines.append(f'.SS "{escape(section.value)}"')
        for term, text in rows:
            lines += _item(term, text)
    lines += [
        ".SH EXIT STATUS",
        "See",
        f".BR {_NAME} (1).",
        *_also(f"{_NAME}(1)", "resourcesync.toml(5)"),
    ]
    return _text(lines)


def _record(
    option: click.Option, section: Section, context: click.Context
) -> tuple[str, str] | None:
    own = option.section if isinstance(option, SectionOption) else Section.OUTPUT
    return option.get_help_record(context) if own is section else None


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; those after click's mark keep their lines."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        yield ".PP"
        if paragraph.startswith("\b"):
            yield ".nf"
            yield from (escape(line) for line in paragraph.splitlines()[1:])
            yield ".fi"
        else:
            yield from wrapped(paragraph)


def _configuration() -> str:
    lines = [
        *_head("resourcesync.toml", 5, "the configuration file of resourcesync"),
        ".SH DESCRIPTION",
        *wrapped(
            f"A file in TOML. The first of these is used: --config, {PREFIX}_CONFIG, {_LOCATIONS}."
        ),
        *wrapped(
            "Tables of mirrors, Sources and secrets may also be in mirrors.d/*.toml beside it."
        ),
        *wrapped(
            "`resourcesync config init` writes an example, `config check` finds every mistake."
        ),
        ".SH MIRRORS",
        escape("Keys of [mirror.NAME]; most may also be in [defaults]."),
        *_keys(mirror_keys()),
        ".SH SOURCES",
        escape("Keys of [source.NAME], for `resourcesync publish`."),
        *_keys(source_keys()),
        *_also("resourcesync(1)", "resourcesync-config(1)"),
    ]
    return _text(lines)


def _keys(keys: Mapping[str, Field]) -> Iterator[str]:
    for name, field in keys.items():
        shown = field.setting.shown
        yield from _item(name, f"{field.setting.help}{f' Built in: {shown}.' if shown else ''}")
