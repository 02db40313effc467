"""A real Redis on loopback."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.commands.run import free_port


def installed() -> bool:
    """Whether the program is here."""
    return shutil.which("redis-server") is not None


@contextmanager
def running(folder: Path, *words: str) -> Iterator[str]:
    """Keep a server running that forgets everything in the end; yield its address."""
    port = free_port()
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
    with subprocess.Popen(
        [*command, "--dir", str(folder), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            for _ in range(500):
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.02)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
