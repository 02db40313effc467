"""What the Source of the library's journeys offers, and what a mirror of it holds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource

FILES = {f"/objects/{number:02}.txt": f"object {number}".encode() for number in range(12)}
EARLY, LATE, LATER = (f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3))


@pytest.fixture
def tiny_source() -> Iterator[TinySource]:
    with TinySource() as running:
        running.offer(FILES, at=EARLY)
        yield running


def here(folder: Path) -> dict[str, bytes]:
    return {f"/{name}": body for name, body in files_of(folder).items()}
