"""Real processes for tests: our command, the commands of the environment, a served folder."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.support.commands.forking import Forked


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        return self.stdout + self.stderr

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.stdout.splitlines()]
        return [line for line in lines if line["type"] == kind]

    @property
    def end(self) -> dict[str, Any]:
        closing: dict[str, Any] = json.loads(self.stdout.splitlines()[-1])
        return closing


def script(name: str) -> Path:
    return Path(sys.executable).parent / name


def run(program: Path, *words: str | Path, cwd: Path, lines: str = "", timeout: float = 60) -> Ran:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out:
        given.write(lines.encode())
        given.seek(0)
        with tempfile.TemporaryFile() as err:
            streams = (given.fileno(), out.fileno(), err.fileno())
            with Forked(program, *words, cwd=cwd, env=environment(cwd), streams=streams) as process:
                code = process.wait(timeout)
            return Ran(code, _all_of(out), _all_of(err))


def program(
    *words: str | Path | bytes,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdout: int | IO[str] = subprocess.PIPE,
) -> Ran:
    """Run any program to its end, which is not one of ours or begins as a user begins it."""
    done = subprocess.run(
        words,
        check=False,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        errors="backslashreplace",
    )
    return Ran(done.returncode, done.stdout or "", done.stderr)


@contextlib.contextmanager
def _forked(
    program: Path, *words: str | Path, cwd: Path, out: IO[bytes], err: IO[bytes]
) -> Iterator[Forked]:
    with open(os.devnull, "rb") as nothing:
        streams = (nothing.fileno(), out.fileno(), err.fileno())
        with Forked(program, *words, cwd=cwd, env=environment(cwd), streams=streams) as process:
            yield process


def _all_of(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()


def environment(home: Path) -> Mapping[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RESOURCESYNC_", "XDG_"))}
    return {**kept, "HOME": str(home), "COLUMNS": "200", "NO_COLOR": "1"}


def resourcesync(*words: str | Path, cwd: Path) -> Ran:
    return run(script("resourcesync"), *words, cwd=cwd)


_GIVEN_AWAY = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Return a free loopback port, one that the system gives to no connection by itself."""
    first = int(_GIVEN_AWAY.read_text().split()[0]) if _GIVEN_AWAY.exists() else 0
    while True:
        with contextlib.suppress(OSError), socket.socket() as probe:
            asked = 10_000 + secrets.randbelow(first - 10_000) if first > 20_000 else 0
            probe.bind(("127.0.0.1", asked))
            port: int = probe.getsockname()[1]
            return port


@contextlib.contextmanager
def running(program: Path, *words: str | Path, port: int, cwd: Path) -> Iterator[None]:
    with (
        tempfile.TemporaryFile() as said,
        _forked(program, *words, cwd=cwd, out=said, err=said) as process,
    ):
        try:
            _wait(said, port)
            yield
        finally:
            process.signal(signal.SIGTERM)
            process.wait(20)


def _wait(said: IO[bytes], port: int) -> None:
    for _ in range(500):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError(f"the server did not start: {_all_of(said)}")


def files_of(root: Path) -> dict[str, bytes]:
    own = {".resourcesync", "resourcesync", ".well-known"}
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in own
    }
