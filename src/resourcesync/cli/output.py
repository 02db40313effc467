"""Jobs, outcomes and screens: the interface between commands and ``cli.main``.

A command parses its options (click) and returns a `Job`; ``cli.main`` runs it. So errors, signals
and crashes become text and an exit code in one place. All encoders get the same events.
"""

import errno
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TextIO

from resourcesync import app
from resourcesync.cli.exit_codes import ExitCode, exit_code_for, is_local_file_truncated
from resourcesync.cli.formatting import TextLine, with_mirror
from resourcesync.errors import (
    DocumentError,
    Evidence,
    ResourceSyncError,
    TruncatedDocumentError,
    TruncatedPackageError,
)
from resourcesync.model.formatting import stamp

if TYPE_CHECKING:
    from resourcesync.ports import Clock

ProgressStyle = Literal["auto", "bar", "plain", "off"]
LogLevel = Literal["debug", "info", "warning", "error"]

Renderer = Callable[[str, Mapping[str, object]], Iterable[TextLine]]
"""A function that turns one event of a run into lines of text."""

_NO_FIELDS: Final[Mapping[str, object]] = MappingProxyType({})
SILENT: Final = 2
"""Level of ``-qq``: no output, only the exit code."""


class OutputOptions(NamedTuple):
    """The output options of a command."""

    json: bool = False
    quiet: int = 0  # 1: nothing on success; 2: nothing at all
    verbose: int = 0
    progress: ProgressStyle = "auto"
    log_file: Path | None = None
    log_level: LogLevel | None = None


class Problem(NamedTuple):
    """An error as it is shown."""

    code: str
    message: str
    exit: ExitCode
    place: str = ""  # document:line:column, and the same in words
    evidence: Evidence = ()
    hint: str = ""
    uri: str = ""
    retry_after: float = 0.0  # seconds that the Source asks to wait

    def fields(self) -> dict[str, object]:
        """Return the fields of its event."""
        found = {
            "code": self.code,
            "message": self.message,
            "place": self.place,
            "evidence": labelled_evidence(self.evidence),
            "hint": self.hint,
            "exit": int(self.exit),
        }
        subjects = {name: text for name, text in self.evidence if name == "mirror"}
        return {**found, **self._address(), **subjects}

    def outcome(self) -> "CommandOutcome":
        """Return the outcome of a command that it ended."""
        return CommandOutcome(exit=self.exit, fields={"code": self.code, **self._address()})

    def _address(self) -> dict[str, object]:
        return {"uri": self.uri} if self.uri else {}


def labelled_evidence(evidence: object) -> list[dict[str, str]]:
    """Return evidence as JSON has it."""
    pairs = evidence if isinstance(evidence, list | tuple) else ()
    return [
        {"label": str(pair[0]), "text": str(pair[1])}
        for pair in pairs
        if isinstance(pair, list | tuple) and len(pair) == 2  # noqa: PLR2004 - label and text
    ]


_LOCAL_HINT: Final = "the file on this machine is truncated: get a complete copy"
_SOURCE_HINT: Final = "report it to the Source; check its lists: resourcesync validate URL"


def problem_of(error: ResourceSyncError, mirror: str = "") -> Problem:
    """Return an error as it is shown."""
    place = ""
    if isinstance(error, DocumentError) and error.uri and error.line:
        where = f"line {error.line}, column {error.column}"
        place = f"{error.uri}:{error.line}:{error.column}  {where}"
    evidence, hint = error.evidence, with_mirror(error.hint, mirror)
    if is_local_file_truncated(error):
        hint = hint or _LOCAL_HINT
    elif isinstance(error, (TruncatedDocumentError, TruncatedPackageError)):
        what = "document" if isinstance(error, TruncatedDocumentError) else "package"
        answered = (
            ("got", f"a complete HTTP response: the Source's own {what} is truncated"),
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
        uri=error.uri,
        retry_after=error.retry_after or 0.0,
    )


class CommandOutcome(NamedTuple):
    """The outcome of a command."""

    exit: ExitCode = ExitCode.OK
    closing: tuple[TextLine, ...] = ()
    fields: Mapping[str, object] = _NO_FIELDS
    shows_exit: bool = False  # the closing lines contain the exit code
    failed: tuple[TextLine, ...] | None = None  # closing lines with -q; None: all of them


class EventEncoder(Protocol):
    """What is made of the events of a run: text, lines of JSON, or a log."""

    def write(self, event: str, fields: Mapping[str, object]) -> None:
        """Write an event."""

    def end(self, outcome: CommandOutcome, fields: Mapping[str, object]) -> None:
        """Write the end of the run, whose event ``run.end`` has the fields."""

    def close(self) -> None:
        """Restore the terminal; may be called twice."""


_SUBJECTS: Final = ("mirror", "source", "tree")


class Screen:
    """The events of one run, from its start to its end, and what shows them.

    Args:
        command: The name of the command.
        encoders: What shows the events; one may be added when the run has started.
        clock: The time of events.
    """

    def __init__(
        self, command: str = "", encoders: Iterable[EventEncoder] = (), clock: "Clock | None" = None
    ) -> None:
        self.encoders = list(encoders)
        self._command, self.clock = command, clock or app.system.SystemClock()
        self._started = self.clock.monotonic()
        self._subjects: dict[str, object] = {}

    def start(self, fields: Mapping[str, object]) -> None:
        """Show the start of the run."""
        self._subjects = {name: text for name in _SUBJECTS if (text := fields.get(name))}
        self.report("run.start", {**self._head(), **fields})

    def report(self, event: str, fields: Mapping[str, object]) -> None:
        """Show an event of the run; this is the ``ports.Reporter``."""
        if event == "warning":
            fields = {**fields, "evidence": labelled_evidence(fields.get("evidence"))}
        for encoder in self.encoders:
            encoder.write(event, fields)

    def problem(self, problem: Problem) -> None:
        """Show an error."""
        self.report("error", problem.fields())

    def end(self, outcome: CommandOutcome) -> None:
        """Show the end of the run; no call but ``close`` follows."""
        seconds = round(self.clock.monotonic() - self._started, 3)
        head = {**self._head(), "seconds": seconds, **self._subjects}
        fields = {**head, **outcome.fields, "exit": int(outcome.exit)}
        for encoder in self.encoders:
            encoder.end(outcome, fields)

    def close(self) -> None:
        """Restore the terminal; may be called twice."""
        for encoder in self.encoders:
            encoder.close()

    def _head(self) -> dict[str, object]:
        return {"time": stamp(self.clock.now()), "command": self._command}


class OutputLostError(BaseException):
    """Stdout cannot be written: its reader is gone, or its disk is full.

    Not an ``Exception``, so that no caller takes it for the failure of one resource.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.exit = ExitCode.PIPE if cause.errno == errno.EPIPE else ExitCode.LOCAL
        self.reason = cause.strerror or str(cause)


def write_line(stream: TextIO, text: str) -> None:
    """Write one line and flush it; characters that the stream cannot encode are escaped."""
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
    """Return no line: for commands whose closing lines are enough."""
    del event, fields
    return ()


_AS_GIVEN: Final = OutputOptions()


class Job(NamedTuple):
    """One command, ready to run.

    What its options say of the output, and its name, are filled in unless it names others.
    """

    work: Callable[[Screen], CommandOutcome]
    render: Renderer = render_nothing
    subject: str = ""  # such as the mirror's folder: for progress and the log
    fields: Mapping[str, object] = _NO_FIELDS  # further ones of ``run.start``
    acts: bool = False  # it changes something: so -q shows nothing on success
    resume_command: str = ""  # continues after an interruption
    output: OutputOptions = _AS_GIVEN
    command: str = ""

    def completed(self, command: str, output: OutputOptions, log: Mapping[str, Any]) -> "Job":
        """Return the job with its name, the output options unless it changed them, and the log."""
        chosen = output if self.output is _AS_GIVEN else self.output
        file = chosen.log_file or log.get("file")
        chosen = chosen._replace(log_file=file, log_level=log.get("level"))
        return self._replace(command=command, output=chosen)
