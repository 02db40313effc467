"""Python programs as processes, started from one that has imported everything already."""

import atexit
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

_SESSION: Final = tempfile.gettempdir()
"""Where folders live as long as we do: a test that comes first may have one of its own by then."""
ROOT: Final = Path(__file__).parents[3]
_HOST: Final = Path(__file__).with_name("forkable.py")
_CLIENT: Final = """\
#!{python} -IS
import os, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({path!r})
    words = b"\\0".join(os.fsencode(word) for word in [os.getcwd(), {program!r}, *sys.argv[1:]])
    socket.send_fds(asked, [words + b"\\0\\0" + b"\\0".join(
        name + b"=" + value for name, value in os.environb.items())], [0, 1, 2])
    told = asked.makefile("rb").read().split()
sys.exit(int(told[1]))
"""
"""What a shell finds under the name of our command: it has the host run it, on its own streams."""


class Forked:
    """A program running: our command, another that uses our package, or one of ``resync``."""

    def __init__(
        self,
        program: Path,
        *words: str | Path,
        cwd: Path,
        env: Mapping[str, str],
        streams: tuple[int, int, int],
    ) -> None:
        asked = b"\0".join(os.fsencode(word) for word in (cwd.resolve(), program, *words))
        rest = b"\0".join(os.fsencode(f"{name}={value}") for name, value in env.items())
        self._host = socket.socket(socket.AF_UNIX)
        self._host.connect(str(_host(_package(program)) / "asked"))
        socket.send_fds(self._host, [asked + b"\0\0" + rest], streams)
        self._told = self._host.makefile("r")
        self.pid = int(self._told.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._told.close()
        self._host.close()

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self, timeout: float) -> int:
        self._host.settimeout(timeout)
        try:
            return int(self._told.readline())
        except TimeoutError:
            self.signal(signal.SIGKILL)
            raise


def folder_of(program: Path) -> Path:
    host = _host(_package(program))
    client = host / program.name
    if not client.exists():
        text = _CLIENT.format(python=sys.executable, path=str(host / "asked"), program=str(program))
        client.write_text(text)
        client.chmod(0o755)
    return host


def _package(program: Path) -> str:
    return "resync" if program.name.startswith("resync-") else "resourcesync"


@functools.cache
def _host(package: str) -> Path:
    """Start what runs the programs of a package; it lives as long as we do. Return its folder."""
    folder = Path(tempfile.mkdtemp(prefix="rs-", dir=_SESSION))
    kept = {k: v for k, v in os.environ.items() if not k.startswith("RESOURCESYNC_")}
    host = subprocess.Popen(
        [sys.executable, _HOST, folder / "asked", package],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**kept, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
    )
    assert host.stdout is not None
    assert host.stdout.readline() == b"ready\n", "the host of programs did not start"

    def end() -> None:
        host.communicate(timeout=20)
        shutil.rmtree(folder)

    atexit.register(end)
    return folder
