"""Programs that listen on loopback: one that does not start gets a second try on other ports."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.commands.run import free_port

TRIES: Final = 2
"""A port that was free a moment ago may be taken by now; twice in a row it is something else."""
_END: Final = 30.0


class Program:
    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        ports: Mapping[str, int],
        options: Mapping[str, Any],
    ) -> None:
        self.ports = ports
        self._command, self._log, self._options = command, log, options
        log.unlink(missing_ok=True)
        self.start()

    @property
    def port(self) -> int:
        (port,) = self.ports.values()
        return port

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                **self._options,
            )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_END)
        except subprocess.TimeoutExpired:
            self.kill()

    def lives(self) -> bool:
        return self._process.poll() is None

    def said(self) -> str:
        return self._log.read_bytes().decode(errors="replace")

    def accepts(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


@contextlib.contextmanager
def started(
    command: Callable[[Mapping[str, int]], Sequence[str | Path]],
    log: Path,
    *,
    ready: Callable[[Program], bool],
    names: Sequence[str] = ("",),
    seconds: float = 20,
    **options: Any,
) -> Iterator[Program]:
    """Run a program while the block runs; it starts when the program is ready on its own port."""
    said = list[str]()
    for _ in range(TRIES):
        ports = {name: free_port() for name in names}
        program = Program(command(ports), log, ports, options)
        try:
            if _is_ready(program, ready, seconds):
                yield program
                return
        finally:
            program.end()
        said.append(program.said())
    raise AssertionError("\n".join([f"the server did not start, tried {TRIES} times:", *said]))


def _is_ready(program: Program, ready: Callable[[Program], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until and program.lives():
        if ready(program):
            return program.lives()
        time.sleep(0.02)
    return False
