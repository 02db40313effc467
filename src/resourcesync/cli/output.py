"""Jobs, outcomes and screens: the interface between commands and ``cli.main``; lines of text.

A command parses its options (click) and returns a `Job`; ``cli.main`` runs it. So errors, signals
and crashes become text and an exit code in one place. All encoders get the same events.

Normal output hides only the user information of addresses: a query is part of a resource's name.
"""

import errno
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TextIO

from resourcesync import app, errors
from resourcesync.cli.exit_codes import CUT, ExitCode, exit_code_for
from resourcesync.model.formatting import counted, stamp

if TYPE_CHECKING:
    from resourcesync.ports import Clock

ProgressStyle = Literal["auto", "bar", "plain", "off"]
LogLevel = Literal["debug", "info", "warning", "error"]

QUIET, NORMAL, DETAIL = 0, 1, 2
"""Levels of a line: shown even with ``-q``, shown by default, shown with ``-v``."""

LABEL_WIDTH: Final = 10


class TextLine(NamedTuple):
    """One line of text output."""

    text: str  # escaped when shown: it may be text of a Source
    label: str = ""
    level: int = NORMAL
    time: str = ""  # before it on a screen; a log has its own


Renderer = Callable[[str, Mapping[str, object]], Iterable[TextLine]]
"""A function that turns one event of a run into lines of text."""

_NO_FIELDS: Final[Mapping[str, object]] = MappingProxyType({})
LIBRARY: Final = "library"
"""Code of the warnings that are messages of the library."""
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
    evidence: errors.Evidence = ()
    hint: str = ""
    uri: str = ""
    retry_after: float = 0.0  # seconds that the Source asks to wait

    def about(self, noun: str, name: str) -> "Problem":
        """Return the problem with its subject before the other evidence."""
        return self._replace(evidence=((noun, name), *self.evidence))

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
        return {**found, **({"uri": self.uri} if self.uri else {}), **subjects}

    def outcome(self) -> "CommandOutcome":
        """Return the outcome of a command that it ended."""
        address = {"uri": self.uri} if self.uri else {}
        return CommandOutcome(exit=self.exit, fields={"code": self.code, **address})


def labelled_evidence(evidence: Any) -> list[dict[str, str]]:
    """Return evidence, or none, as JSON has it."""
    return [{"label": str(label), "text": str(text)} for label, text in evidence or ()]


def problem_of(error: errors.ResourceSyncError, mirror: str = "") -> Problem:
    """Return an error as it is shown."""
    place = ""
    if isinstance(error, errors.DocumentError) and error.uri and error.line:
        where = f"line {error.line}, column {error.column}"
        place = f"{error.uri}:{error.line}:{error.column}  {where}"
    evidence = error.evidence
    if isinstance(error, CUT) and not errors.is_local(error.uri):
        what = "document" if isinstance(error, errors.TruncatedDocumentError) else "package"
        answered = (
            ("got", f"a complete HTTP response: the Source's own {what} is truncated"),
            ("kept", "nothing was changed"),
        )
        evidence = (*evidence, *answered)
    return Problem(
        code=error.code,
        message=error.message,
        place=place,
        evidence=evidence,
        hint=with_mirror(errors.next_step(error), mirror),
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
    """The events of one run of a command, from its start to its end, and what shows them."""

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
        text = text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(text + "\n")
        stream.flush()
    except OSError as error:
        raise OutputLostError(error) from error


_ASCII: Final = str.maketrans({"→": "->", "…": "...", "│": "|", "├": "|", "└": "`", "─": "-"})


_AS_GIVEN: Final = OutputOptions()


class Job(NamedTuple):
    """One command, ready to run.

    What its options say of the output, and its name, are filled in unless it names others.
    """

    work: Callable[[Screen], CommandOutcome]
    render: Renderer = lambda _event, _fields: ()  # for closing lines that are enough
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


_UTC_MOMENT: Final = r"(?<![\w-])(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)Z(?!\w)"


def with_local_times(text: str) -> str:
    """Return a text with the times that ``moment`` wrote as local times: ``12:04:09 +01:00``."""
    return re.sub(_UTC_MOMENT, _local_time, text) if "Z" in text else text


def _local_time(written: re.Match[str]) -> str:
    try:
        local = datetime.fromisoformat(f"{written[1]}+00:00").astimezone()
    except (ValueError, OverflowError, OSError):  # no such day; a text of a Source
        return written[0]
    day, _, time = local.isoformat().partition("T")
    return f"{day} {time[:8]} {time[8:]}" if local.utcoffset() else written[0]


def with_mirror(hint: str, folder: str) -> str:
    """Return a hint with the folder of the mirror that it is about."""
    return hint.replace(" MIRROR", f" {errors.quoted(folder, 'MIRROR')}")


def labelled(line: TextLine) -> tuple[str, str]:
    """Return a line's label with its padding, and its text."""
    if not line.label:
        return "", line.text
    if len(line.label) == 1:
        return f"{line.label} ", line.text
    gap = LABEL_WIDTH if len(line.label) < LABEL_WIDTH else len(line.label) + 3
    return line.label.ljust(gap), line.text


HIDDEN: Final = "(hidden)"
# An address begins a value or a word: one within a query is part of a name. The text behind a
# user's colon is not a port; a password may contain an unescaped slash.
_USER_INFO: Final = (
    r"""(?i)(?<![^\s"'`(<\[,])((?:[a-z][a-z0-9+.-]*:)*//|https?:/)"""
    r"""(?:[^/?#\s]*|[^/?#\s@\[]*:(?![0-9]*(?:[/?#,\s"']|$))\S*)@"""
)


def without_users(text: str) -> str:
    """Return a text with the user information of the addresses in it hidden, and nothing else."""
    return re.sub(_USER_INFO, rf"\1{HIDDEN}@", text) if "@" in text else text


_GOES_ON: Final = " " * 20


def read_tables(path: Path) -> dict[str, dict[str, str]]:
    """Return the tables of a text file, by the lines that begin them: names, each with its text."""
    tables: dict[str, dict[str, str]] = {}
    table: dict[str, str] = {}
    for line in path.read_text("utf-8").splitlines():
        if not line.startswith(" "):
            table = tables[line] = {}
        elif line.startswith(_GOES_ON):
            table[next(reversed(table))] += f"\n{line.strip()}"
        else:
            name, _, text = line.strip().partition(" ")
            table[name] = text.strip()
    return tables


def clause_of(text: str) -> str:
    """Return a clause as a phrase: ``section 12.1``, or the name of another document."""
    return f"section {text}" if text[:1].isdigit() else text


def leniency_line(fields: Mapping[str, object]) -> TextLine:
    """Return the line about a departure from the rules that was tolerated."""
    from resourcesync.validator.rule import RULES  # noqa: PLC0415 - help stays quick

    where = f"{fields['uri']}, line {fields['line']}" if fields["line"] else str(fields["uri"])
    found = (rule.code for rule in RULES.values() if rule.id.startswith(str(fields["rule"])))
    rule = f"; rule {next(found)}" if fields["rule"] else ""
    places = counted(int(str(fields["count"])), "place")
    return TextLine(f"{fields['reason']}  ({places}; {where}{rule})", "Lenient", DETAIL)


SERVER_VERIFIED: Final = "verified by the server's digest"
"""Words for copies that the server's own digest proves, and no list."""


def proof(fields: Mapping[str, object]) -> str:
    """Return how the bytes of an ``item`` event were proven; empty if they were not."""
    if fields.get("fixity") == "server-verified":
        return SERVER_VERIFIED
    if fields.get("bad_digest"):
        return "its digest field is malformed"
    algorithm = str(fields.get("hash") or "").partition(":")[0]
    return f"{algorithm} verified" if fields.get("verified") else ""
