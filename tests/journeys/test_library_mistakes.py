"""The library in the hands of a stranger: each mistake is named, with what to do about it."""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from resourcesync import Catalogue, Mirror, Publisher, Resource, read
from resourcesync.errors import ConfigurationError, StateError
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.embedding import EARLY, FILES

URL = "https://h.example/"


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


@pytest.mark.parametrize("since", [1.5, b"start", timedelta(1)])
def test_a_position_of_another_type_is_refused(mirror: Mirror, since: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^since=.*: Expected `int \| str`"):
        mirror.changes(since=since)


def test_a_day_as_text_is_no_position_and_the_hint_says_what_is(mirror: Mirror) -> None:
    with pytest.raises(ConfigurationError, match="not the position") as refused:
        mirror.changes(since="2026-11-28")

    assert "a datetime" in refused.value.hint


def test_arguments_that_are_swapped_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'http://h/' is no folder") as refused:
        Mirror(str(tmp_path / "copy"), "http://h/")

    assert refused.value.hint.startswith("name the Source first")


def test_a_file_is_no_folder_for_a_mirror(tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text("pass")

    with pytest.raises(ConfigurationError, match="is a file"):
        Mirror(URL, tmp_path / "file.py")


def test_an_empty_address_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="address of the Source is empty"):
        Mirror("", tmp_path)


def test_a_mirror_that_is_open_is_used_and_not_opened(mirror: Mirror) -> None:
    with mirror, pytest.raises(ConfigurationError) as refused, mirror:
        pass

    assert refused.value.hint == "use it in the block that opened it"


@pytest.mark.parametrize(
    ("options", "forms"),
    [
        ({"max_delete": 0.1}, "a number, or text such as '10%'"),
        ({"max_duration": timedelta(1)}, "a number, or text such as '90s'"),
        ({"max_bytes": 1.5}, "a number, or text such as '5M'"),
        ({"delete": "all"}, "one of auto, signalled, absent, never"),
        ({"prune": "no"}, "True or False"),
        ({"mapper": 5}, "a string"),
    ],
    ids=repr,
)
def test_an_option_that_is_refused_has_its_forms_in_the_hint(
    tmp_path: Path, options: dict[str, Any], forms: str
) -> None:
    with pytest.raises(ConfigurationError, match="must be") as refused:
        Mirror(URL, tmp_path, **options)

    assert refused.value.hint == f"use {forms}"


def test_what_is_no_catalogue_is_moved_away_and_never_deleted(tmp_path: Path) -> None:
    path = tmp_path / "junk.db"
    path.write_bytes(b"no database" * 1_000)

    with pytest.raises(StateError) as refused:
        Catalogue(path).fill([])

    assert f"move {path} away" in refused.value.hint
    assert "begin anew with the address" in refused.value.hint


def test_an_option_that_does_not_exist_is_that_of_its_call(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^Catalogue\.publish\(\) got an unexpected .* 'step'"):
        Catalogue(tmp_path / "a.db").publish(step="rebase")  # type: ignore[call-arg]  # as a caller may
    with pytest.raises(TypeError, match=r"^Publisher\(\) got an unexpected .* 'step'"):
        Publisher(tmp_path, step="rebase")  # type: ignore[call-arg]  # as above


def test_the_first_publication_of_a_catalogue_creates_all(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path / "a.db")
    catalogue.fill([Resource(f"{URL}{name}", length=5) for name in "abc"])

    first = catalogue.publish(url=URL, out=str(tmp_path / "lists"))
    catalogue.fill([Resource(f"{URL}{name}", length=5) for name in "abcd"])
    second = catalogue.publish()

    assert (first.files, first.created, first.first) == (3, 3, True)
    assert (second.files, second.created, second.first) == (4, 1, False)


@pytest.mark.parametrize("stream", [io.StringIO("<a/>"), None])
def test_a_document_is_read_from_bytes_and_not_from_text(stream: Any, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<a/>")

    with (
        (tmp_path / "a.xml").open() as opened,
        pytest.raises(TypeError, match=r"open\(name, 'rb'\)"),
    ):
        read(stream or opened)  # type: ignore[arg-type]  # as a caller may
