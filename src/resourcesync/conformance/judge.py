"""The judge: runs a client after each step of a scenario, and compares its files."""

import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from resourcesync.conformance.scenarios import ClientScenario, Step
from resourcesync.conformance.scripted_source import ScriptedSource
from resourcesync.conformance.site import SiteServer
from resourcesync.errors import ConfigurationError
from resourcesync.ports import Clock

_MOST_BYTES: Final = 65_536
"""Most bytes of a file that may be a resource of a scenario."""

_LAST_LINES: Final = 3
_DEPTH: Final = ("outer", "middle", "copy")
"""The folder of a client is so deep that names which lead out of it are seen."""


class ConformanceFault(StrEnum):
    """What is wrong after a step."""

    MISSING = "missing"
    """A resource is not in the copy."""
    STALE = "stale"
    """Content is in the copy that was replaced or deleted, or contradicts the list."""
    ESCAPED = "escaped"
    """A file was written outside the folder."""
    FALSE_SUCCESS = "false-success"
    """The client reports success, though it cannot be in sync."""
    FALSE_FAILURE = "false-failure"
    """The client reports failure, though the copy is right."""
    TIMEOUT = "timeout"
    """The client did not end in time."""


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one step.

    Attributes:
        scenario: The scenario's name.
        step: The step's title.
        faults: What is wrong; empty if it conforms.
        evidence: Names of resources and files that show it.
        exit: The exit code of the client; ``None`` if it did not end in time.
        requests: Number of requests that it sent.
        output: Its last lines of output.
    """

    scenario: str
    step: str
    faults: tuple[ConformanceFault, ...]
    evidence: tuple[str, ...]
    exit: int | None
    requests: int
    output: str


class JudgedClient(msgspec.Struct, frozen=True, kw_only=True):
    """A client, as a command with ``{url}`` and ``{folder}``.

    Attributes:
        command: The program and its arguments.
        first: The same for the first step of a scenario, if it is another one.
        seconds: Most seconds of one run.
    """

    command: tuple[str, ...]
    first: tuple[str, ...] = ()
    seconds: float = 60.0

    def command_line(self, url: str, folder: Path, *, is_first: bool) -> list[str]:
        """Return the command of a step."""
        words = self.first if is_first and self.first else self.command
        return [word.replace("{url}", url).replace("{folder}", str(folder)) for word in words]


def parse_command(text: str) -> tuple[str, ...]:
    """Return the words of a command.

    Raises:
        ConfigurationError: A quotation mark is missing.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ConfigurationError(f"{text!r} is not a command: {error}") from error


def judge(
    scenario: ClientScenario, client: JudgedClient, home: Path, clock: Clock
) -> Iterator[StepResult]:
    """Run a client in a scenario; yield the result of each step.

    What changes after a step is dated after the client's run, and served when its time has come.

    Args:
        scenario: The scenario.
        client: The client.
        home: A new folder for it.
        clock: Time.

    Raises:
        ConfigurationError: The client's program cannot be started.
    """
    folder = home.joinpath(*_DEPTH)
    folder.parent.mkdir(parents=True)
    known: dict[bytes, str] = {}
    with SiteServer() as server:
        source = ScriptedSource(server.base, clock.now(), scenario.dialect)
        for number, step in enumerate(scenario.script(source)):
            known |= _contents(step)
            clock.sleep((source.now - clock.now()).total_seconds())
            server.serve(step.site)
            words = client.command_line(server.base, folder, is_first=not number)
            code, output = _run(words, folder.parent, client.seconds)
            source.now = max(source.now, clock.now().replace(microsecond=0))
            faults = _compare(step, _files(home), folder, known)
            if code is None:
                faults.setdefault(ConformanceFault.TIMEOUT, f"{client.seconds:g} s")
            elif (reported := _judge_exit(step, code, is_equal=not faults)) is not None:
                faults[reported] = f"exit {code}"
            yield StepResult(
                scenario=scenario.name,
                step=step.title,
                faults=tuple(faults),
                evidence=tuple(faults.values()),
                exit=code,
                requests=server.requests,
                output=output,
            )


def _contents(step: Step) -> dict[bytes, str]:
    """Return the contents of resources that are or were served, and the names of the resources."""
    served = {
        answer.body: name
        for name, answer in step.site.answers.items()
        if answer.body and not answer.body.startswith((b"<?xml", b"User-agent"))
    }
    return {**served, **{body: name for name, body in step.expected.items()}}


def _files(home: Path) -> dict[Path, bytes]:
    """Return the content of all files that may be resources of a scenario."""
    found: dict[Path, bytes] = {}
    for path in sorted(home.rglob("*")):
        with suppress(OSError):
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= _MOST_BYTES:
                found[path] = path.read_bytes()
    return found


def _compare(
    step: Step, files: Mapping[Path, bytes], folder: Path, known: Mapping[bytes, str]
) -> dict[ConformanceFault, str]:
    """Return what is wrong with the files, and a name that shows it.

    Files whose content never was that of a resource are the client's own.
    """
    faults: dict[ConformanceFault, str] = {}
    inside = {body for path, body in files.items() if path.is_relative_to(folder)}
    for name, body in step.expected.items():
        if body not in inside:
            faults.setdefault(ConformanceFault.MISSING, name)
    right = {*step.expected.values(), *step.tolerated}
    for path, body in files.items():
        if body not in known:
            continue
        if not path.is_relative_to(folder):
            faults.setdefault(ConformanceFault.ESCAPED, path.name)
        elif body not in right and not _is_hidden(path.relative_to(folder)):
            faults.setdefault(ConformanceFault.STALE, path.relative_to(folder).as_posix())
    return faults


def _is_hidden(path: Path) -> bool:
    """True if a part of a path begins with a dot: the client's own files, such as its trash."""
    return any(part.startswith(".") for part in path.parts)


def _judge_exit(step: Step, code: int, *, is_equal: bool) -> ConformanceFault | None:
    if code == 0 and (step.is_possible is False or not is_equal):
        return ConformanceFault.FALSE_SUCCESS
    if code and step.is_possible and is_equal:
        return ConformanceFault.FALSE_FAILURE
    return None


def _run(words: Sequence[str], folder: Path, seconds: float) -> tuple[int | None, str]:
    """Run a client; return its exit code, and the end of its output.

    Raises:
        ConfigurationError: It cannot be started.
    """
    try:
        ran = subprocess.run(  # noqa: S603 - the operator's own command
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return None, _end_of(error.stdout or b"")
    except OSError as error:
        raise ConfigurationError(
            f"{words[0]} cannot be started: {error.strerror}",
            hint="name a program, and its arguments after it",
        ) from error
    return ran.returncode, _end_of(ran.stdout)


def _end_of(output: bytes) -> str:
    lines = [line.rstrip() for line in output.decode("utf-8", "replace").splitlines()]
    return "\n".join([line for line in lines if line][-_LAST_LINES:])
