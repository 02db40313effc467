"""What the operator left out of the lists is not served either."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving.applications import CurrentApplication, CurrentPublication, find_tree
from resourcesync.catalogue import reader as catalogue_reader
from resourcesync.errors import StateError, StorageError
from resourcesync.source.publication_settings import NOTE
from tests.support.servers.asgi import ask


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    for name in ("a.txt", "b.key", "private/c.txt", "x/d.txt", "robots.txt", "index.html"):
        (tree / name).parent.mkdir(exist_ok=True, parents=True)
        (tree / name).write_text(name)
    (tree / "alias.txt").symlink_to("b.key")
    (tree / "other.txt").symlink_to("a.txt")
    return tree


def served(tree: Path, **chosen: object) -> ASGIApp:
    publish_tree(tree, {"url": "http://h.example/", **chosen}, clock=SystemClock())
    return find_tree(tree).application(SystemClock())


def found(app: ASGIApp, *names: str) -> list[str]:
    return [name for name in names if ask(app, "/" + name).status == 200]


NAMES = ("a.txt", "b.key", "private/c.txt", "x/d.txt", "robots.txt", "alias.txt", "other.txt")


def test_what_was_excluded_is_absent_also_by_a_link_to_it(tree: Path) -> None:
    served(tree, exclude=("*.txt",))  # who published last decides

    app = served(tree, exclude=("*.key", "private/"))

    assert found(app, *NAMES) == ["a.txt", "x/d.txt", "robots.txt", "other.txt"]
    assert ask(app, "/private/c.txt").status == 404
    lists = ["resourcesync/resourcelist.xml", ".well-known/resourcesync"]
    assert found(app, *lists) == lists


def test_what_was_not_included_is_absent_but_robots_txt_and_the_page_are_there(tree: Path) -> None:
    app = served(tree, include=("x/*",))

    assert found(app, *NAMES) == ["x/d.txt", "robots.txt"]
    page = ask(app, "/")
    assert page.status == 200
    assert b"Capability List" in page.body  # index.html is not published


def test_a_new_address_is_served_once_it_is_published(tree: Path) -> None:
    (tree / "index.html").unlink()
    app = served(tree, versions=True)
    before = ask(app, "/a.txt")

    publish_tree(tree, {"url": "http://new.example/"}, clock=SystemClock())

    after, page = ask(app, "/a.txt"), ask(app, "/")
    new = "http://new.example/resourcesync/capabilitylist.xml"
    assert "http://h.example/resourcesync/" in before.fields["link"]
    assert f'<{new}>; rel="resourcesync"' in after.fields["link"]
    assert "h.example" not in after.fields["link"]
    assert new.encode() in page.body
    assert b"h.example" not in page.body


def test_the_former_application_answers_until_the_new_one_can_be_built(tmp_path: Path) -> None:
    head, tries = tmp_path / "head", list[int]()
    head.write_text("first")

    def build(number: int) -> ASGIApp:
        tries.append(number)
        if tries == [1, 2]:
            raise StateError("it is being written")
        return PlainTextResponse(f"{number}")

    app = CurrentApplication(CurrentPublication(1, head, lambda number: number + 1), build)
    head.write_text("replaced")

    answers = [ask(app, "/").body for _ in range(3)]

    assert (answers, tries) == ([b"1", b"2", b"2"], [1, 2, 2])


def test_a_catalogue_that_is_damaged_or_cannot_be_read_serves_nothing(tree: Path) -> None:
    served(tree)
    for path in (tree / ".resourcesync").glob("catalogue.db*"):
        path.write_bytes(b"no catalogue at all" * 99)

    with pytest.raises(StateError):
        find_tree(tree).application(SystemClock())

    shutil.rmtree(tree / ".resourcesync")
    (tree / ".resourcesync/catalogue.db").mkdir(parents=True)
    with pytest.raises(StorageError) as caught:
        find_tree(tree).application(SystemClock())
    assert caught.value.hint == "move it away, then try again"


def test_a_catalogue_on_a_disk_that_cannot_be_written_is_read_as_it_is(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served(tree, exclude=("*.key",))
    path = tree / ".resourcesync/catalogue.db"
    for ending in ("-wal", "-shm"):  # they belong to who reads it where it can be written
        path.with_name(path.name + ending).unlink(missing_ok=True)

    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def connected(address: str, **options: Any) -> sqlite3.Connection:
        if "immutable=1" not in address:  # it would need a file beside it
            raise sqlite3.OperationalError("unable to open database file")
        return connect(address, **options)

    with monkeypatch.context() as unwritable:
        unwritable.setattr(sqlite3, "connect", connected)
        note = catalogue_reader.read_note(path, NOTE)
        assert catalogue_reader.read_note(path, "nothing") is None

    assert note is not None
    assert note == catalogue_reader.read_note(path, NOTE)
