"""Our command, and Python, in processes of their own; our command starts at once."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Self

from tests.support.commands.forking import Forked
from tests.support.commands.run import environment, script


class Started:
    """Our command, running; the interpreter and what it imports were there before."""

    def __init__(
        self,
        *words: str | Path,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        terminal: int | None = None,
        program: Path | None = None,
    ) -> None:
        reading, writing = os.pipe()
        self.stdout: IO[str] = os.fdopen(reading)
        self.stderr: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 - ends with this
        self.returncode: int | None = None
        shown = (writing, self.stderr.fileno()) if terminal is None else (terminal, terminal)
        with open(os.devnull, "rb") as nothing:
            self._process = Forked(
                program or script("resourcesync"),
                *words,
                cwd=cwd,
                env=environment(cwd) if env is None else env,
                streams=(nothing.fileno(), *shown),
            )
        os.close(writing)
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self.returncode is None:
            self.send_signal(signal.SIGKILL)
            self.wait(20)
        self.stdout.close()
        self.stderr.close()
        self._process.__exit__(*raised)

    def send_signal(self, number: signal.Signals) -> None:
        self._process.signal(number)

    def wait(self, timeout: float) -> int:
        self.returncode = self._process.wait(timeout)
        return self.returncode

    def communicate(self, timeout: float) -> tuple[str, str]:
        out = self.stdout.read()
        self.wait(timeout)
        self.stderr.seek(0)
        return out, self.stderr.read()


def python(
    code: str, *arguments: str, home: Path, measured: bool = True, **more: str
) -> subprocess.CompletedProcess[str]:
    kept = environment(home).items()
    # What is imported, and how fast, is asked of us alone: coverage would be measured with us.
    unmeasured = {k: v for k, v in kept if measured or not k.startswith("COVERAGE")}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**unmeasured, **more},
    )


def command(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    with Started(*arguments, cwd=Path.cwd(), env=environment(home)) as process:
        out, err = process.communicate(60)
    assert process.returncode is not None
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)
