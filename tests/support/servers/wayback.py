"""A real Wayback program on loopback: pywb, with collections that are made for a test."""

import contextlib
import os
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.support.commands.run import free_port
from tests.support.waiting import wait_until


def installed() -> bool:
    """Whether pywb is here, on ``PATH``."""
    return shutil.which("wayback") is not None


def add(home: Path, collection: str, *archives: Path) -> None:
    """Make a collection with WARC files, or with what is in a WACZ."""
    _manage(home, "init", collection)
    unpacked = ("--unpack-wacz",) if archives[0].suffix == ".wacz" else ()
    _manage(home, "add", *unpacked, collection, *map(str, archives))


def _manage(home: Path, *words: str) -> None:
    ran = subprocess.run(
        ["wb-manager", *words], cwd=home, check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr


class Wayback:
    """A running program.

    Args:
        origin: Its address.
    """

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def get(self, collection: str, stamp: str, uri: str) -> tuple[bytes, str]:
        """Return the bytes that it shows for a time, and its ``Memento-Datetime``."""
        with urllib.request.urlopen(f"{self._origin}/{collection}/{stamp}id_/{uri}") as answer:
            return answer.read(), answer.headers["Memento-Datetime"]


@contextlib.contextmanager
def running(home: Path) -> Iterator[Wayback]:
    """Show the collections of a folder while the block runs."""
    port = free_port()
    with (home / "wayback.log").open("wb") as log:
        process = subprocess.Popen(
            ["wayback", "-b", "127.0.0.1", "-p", str(port)],
            cwd=home,
            stdout=log,
            stderr=log,
            env={**os.environ, "HOME": str(home)},
        )

        def accepts() -> bool:
            assert process.poll() is None, (home / "wayback.log").read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True
            return False

        try:
            wait_until(accepts, 60)
            yield Wayback(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(20)
