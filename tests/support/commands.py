"""Real processes for tests: our command, the commands of the environment, a served folder."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    code: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        """Everything it printed."""
        return self.stdout + self.stderr

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the JSON lines of one type."""
        lines = [json.loads(line) for line in self.stdout.splitlines()]
        return [line for line in lines if line["type"] == kind]

    @property
    def end(self) -> dict[str, Any]:
        """Return the closing JSON line."""
        closing: dict[str, Any] = json.loads(self.stdout.splitlines()[-1])
        return closing


def script(name: str) -> Path:
    """Return where a command of this environment is, or would be."""
    return Path(sys.executable).parent / name


def run(*command: str | Path, cwd: Path, timeout: float = 60) -> Ran:
    """Run a command to its end, with ``cwd`` as home, so that nothing of the user's counts."""
    done = subprocess.run(
        [str(word) for word in command],
        check=False,
        cwd=cwd,
        env=environment(cwd),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def environment(home: Path) -> Mapping[str, str]:
    """Return an environment without the user's settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RESOURCESYNC_", "XDG_"))}
    return {**kept, "HOME": str(home), "COLUMNS": "200", "NO_COLOR": "1"}


def resourcesync(*words: str | Path, cwd: Path) -> Ran:
    """Run our command."""
    return run(script("resourcesync"), *words, cwd=cwd)


def free_port() -> int:
    """Return a loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def running(*command: str | Path, port: int, cwd: Path) -> Iterator[None]:
    """Keep a server process running; the block starts when it accepts connections."""
    with subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd,
        env=environment(cwd),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            _wait(process, port)
            yield
        finally:
            process.terminate()
            process.communicate(timeout=20)


def _wait(process: subprocess.Popen[str], port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None:
            raise AssertionError(f"the server ended: {process.communicate()[1]}")
        time.sleep(0.05)
    raise AssertionError("the server did not start")


def files_of(root: Path) -> dict[str, bytes]:
    """Return the files of a tree, the programs' own folders left out."""
    own = {".resourcesync", "resourcesync", ".well-known"}
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in own
    }
