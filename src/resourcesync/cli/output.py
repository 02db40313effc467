"""What a command hands to the screen, and what a screen is: text or JSON, the same content.

What a command line asks for, once it is understood: work that has yet to be done.

Understanding options (click) and doing the work are kept apart, so that there is one place where
errors, signals and crashes become words and an exit code: ``cli.main``.

A screen for work that nobody looks at: what it is told is kept for later.
"""

import errno
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol, TextIO

from resourcesync.cli.exit_codes import ExitCode, exit_code_for, is_local_file_truncated
from resourcesync.cli.formatting import TextLine
from resourcesync.errors import (
    DocumentError,
    Evidence,
    ResourceSyncError,
    TruncatedDocumentError,
    TruncatedPackageError,
)

ProgressStyle = Literal["auto", "bar", "plain", "off"]
ColorStyle = Literal["auto", "always", "never"]

Renderer = Callable[[str, Mapping[str, object]], Iterable[TextLine]]
"""Turns one event of a run into the lines of text that tell of it."""

SILENT: Final = 2
"""``-qq``: nothing at all; the exit code speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """How a command speaks.

    Attributes:
        json: One JSON object per line on stdout, and nothing on stderr.
        quiet: 1 leaves nothing of what went well, and of the rest errors and the closing lines;
            2 leaves nothing.
        verbose: 1 adds a line per resource.
        progress: How progress is shown.
        color: Whether words are coloured.
        log_file: Where the library's notes are appended; ``None`` for nowhere.
        log_format: ``text`` or ``json``; ``None`` takes what the configuration file says.
    """

    json: bool = False
    quiet: int = 0
    verbose: int = 0
    progress: ProgressStyle = "auto"
    color: ColorStyle = "auto"
    log_file: Path | None = None
    log_format: Literal["text", "json"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error as it is shown.

    Attributes:
        code: A stable word.
        message: What happened, in one sentence.
        place: ``document:line:column`` and the same in words, where there is one.
        evidence: Labels and what they say.
        hint: One command or edit that helps.
        exit: How a command ends that this has ended.
    """

    code: str
    message: str
    place: str = ""
    evidence: Evidence = ()
    hint: str = ""
    exit: ExitCode


_LOCAL_HINT: Final = "the file on this machine is cut short: get it again, whole"
_SOURCE_HINT: Final = "report it to the Source; check its lists: resourcesync validate URL"


def problem_of(error: ResourceSyncError) -> Problem:
    """Return how an error is shown."""
    place = ""
    if isinstance(error, DocumentError) and error.uri and error.line:
        where = f"line {error.line}, column {error.column}"
        place = f"{error.uri}:{error.line}:{error.column}  {where}"
    evidence, hint = error.evidence, error.hint
    if is_local_file_truncated(error):
        hint = hint or _LOCAL_HINT
    elif isinstance(error, (TruncatedDocumentError, TruncatedPackageError)):
        what = "document" if isinstance(error, TruncatedDocumentError) else "package"
        answered = (
            ("got", f"a whole answer, as far as HTTP tells: the Source's own {what} stops there"),
            ("kept", "nothing was changed"),
        )
        evidence, hint = (*evidence, *answered), hint or _SOURCE_HINT
    return Problem(
        code=error.code,
        message=error.message,
        place=place,
        evidence=evidence,
        hint=hint,
        exit=exit_code_for(error),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """How a command ended.

    Attributes:
        exit: The exit code.
        closing: The closing lines of text.
        fields: The same for ``run.end``.
        says_exit: Whether the closing lines name the exit code themselves.
    """

    exit: ExitCode = ExitCode.OK
    closing: tuple[TextLine, ...] = ()
    fields: Mapping[str, object] = field(default_factory=dict)
    shows_exit: bool = False


class Screen(Protocol):
    """Shows one run, from its start to its end."""

    def start(self, fields: Mapping[str, object]) -> None:
        """Say that the run begins."""
        ...

    def report(self, event: str, fields: Mapping[str, object]) -> None:
        """Show an event of the run; this is the ``ports.Reporter``."""
        ...

    def problem(self, problem: Problem) -> None:
        """Show an error."""
        ...

    def end(self, outcome: CommandOutcome) -> None:
        """Say how the run ended; nothing comes after it."""
        ...

    def close(self) -> None:
        """Give the terminal back as it was; called twice does no harm."""
        ...


class OutputLostError(BaseException):
    """Nothing can be written any more: the reader went away, or the disk behind stdout is full.

    No ``Exception``, so that nobody on the way takes it for a failure of one resource.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.exit = ExitCode.PIPE if cause.errno == errno.EPIPE else ExitCode.LOCAL
        self.reason = cause.strerror or str(cause)


def write_line(stream: TextIO, text: str) -> None:
    """Write one line and flush it; characters the stream cannot show are spelled out.

    Raises:
        OutputLostError: It cannot be written.
    """
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.translate(_ASCII)
        text = plain.encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(text + "\n")
        stream.flush()
    except OSError as error:
        raise OutputLostError(error) from error


_ASCII: Final = str.maketrans({"→": "->", "…": "...", "│": "|", "├": "|", "└": "`", "─": "-"})


def render_nothing(event: str, fields: Mapping[str, object]) -> Iterable[TextLine]:
    """Tell of no event: for commands whose closing lines say everything."""
    del event, fields
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One command, ready to be carried out.

    Attributes:
        command: Its name.
        output: How it speaks.
        work: Does it.
        words: Turns its events into text.
        subject: What it works on, such as the mirror's folder: for progress and ``run.start``.
        fields: More for ``run.start``.
        acts: Whether it does something, so that ``-q`` has nothing to say when all is well; what
            only answers a question answers in any case.
        again: The command that goes on after an interruption; empty when that makes no sense.
    """

    command: str
    output: OutputOptions
    work: Callable[[Screen], CommandOutcome]
    render: Callable[[str, Mapping[str, object]], Iterable[TextLine]] = render_nothing
    subject: str = ""
    fields: Mapping[str, object] = field(default_factory=dict)
    acts: bool = False
    resume_command: str = ""


_MOST_WARNINGS: Final = 100


class CollectingScreen:
    """A screen that shows nothing and keeps what it was told."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.mirrors: list[Mapping[str, object]] = []
        self.warnings: list[Mapping[str, object]] = []

    def start(self, fields: Mapping[str, object]) -> None:
        """Show nothing."""

    def report(self, event: str, fields: Mapping[str, object]) -> None:
        """Keep a mirror, or a warning; of many warnings the first."""
        if event == "mirror":
            self.mirrors.append(fields)
        elif event == "warning" and len(self.warnings) < _MOST_WARNINGS:
            self.warnings.append(fields)

    def problem(self, problem: Problem) -> None:
        """Keep an error."""
        self.problems.append(problem)

    def end(self, outcome: CommandOutcome) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Have nothing to give back."""
