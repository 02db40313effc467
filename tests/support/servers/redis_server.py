"""A real Redis on loopback."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers.second_try import started


def installed() -> bool:
    """Whether the program is here."""
    return shutil.which("redis-server") is not None


@contextmanager
def running(folder: Path, *words: str) -> Iterator[str]:
    """Keep a server running that forgets everything in the end; yield its address."""

    def command(ports: Mapping[str, int]) -> list[str | Path]:
        (port,) = ports.values()
        here = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
        return [*here, "--dir", folder, *words]

    with started(
        command,
        folder / "redis.log",
        ready=lambda found: "Ready to accept connections" in found.said(),
    ) as found:
        yield f"redis://127.0.0.1:{found.port}/0"
