"""The library in the hands of a stranger: each mistake is named, with what to do about it."""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from resourcesync import Catalogue, Mirror, read
from resourcesync.errors import ConfigurationError, StateError
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.embedding import EARLY, FILES


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Mirror]:
    with TinySource() as running:
        running.offer(FILES, at=EARLY)
        mirror = Mirror(running.url, tmp_path / "mirror")
        mirror.pull()
        yield mirror


def test_what_one_thread_began_to_read_another_does_not_go_on_with(mirror: Mirror) -> None:
    reading = mirror.changes()
    next(reading)

    with ThreadPoolExecutor() as threads, pytest.raises(ConfigurationError) as refused:
        threads.submit(list, reading).result()

    assert "another thread" in str(refused.value)
    assert refused.value.hint == "read in the thread that began to read"


def test_a_mirror_that_is_open_is_used_and_not_opened(mirror: Mirror) -> None:
    with mirror, pytest.raises(ConfigurationError) as refused, mirror:
        pass

    assert refused.value.hint == "use it in the block that opened it"


def test_what_is_no_catalogue_is_moved_away_and_never_deleted(tmp_path: Path) -> None:
    path = tmp_path / "junk.db"
    path.write_bytes(b"no database" * 1_000)

    with pytest.raises(StateError) as refused:
        Catalogue(path).fill([])

    assert f"move {path} away" in refused.value.hint
    assert "begin anew with the address" in refused.value.hint


@pytest.mark.parametrize("stream", [io.StringIO("<a/>"), None])
def test_a_document_is_read_from_bytes_and_not_from_text(stream: Any, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<a/>")

    with (
        (tmp_path / "a.xml").open() as opened,
        pytest.raises(TypeError, match=r"open\(name, 'rb'\)"),
    ):
        read(stream or opened)  # type: ignore[arg-type]  # as a caller may
