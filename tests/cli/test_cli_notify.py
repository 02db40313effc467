"""``publish --notify``, and ``--notify-only``: what is said, and how it ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.servers.listening import Listener

BASE = "https://museum.example/"


@pytest.fixture
def hub() -> Iterator[Listener]:
    with Listener() as found:
        yield found


def changed(name: str) -> None:
    Path("public", name).write_text(name)


def test_notify_knows_the_names_of_the_configuration_file(
    tree: Path, hub: Listener, here: Path
) -> None:
    Path("resourcesync.toml").write_text(
        f'[source.museum]\npath = "public"\nurl = "{BASE}"\nhub = ["{hub.origin}"]\n'
    )
    words = ["museum", "--config", "resourcesync.toml", "-q"]
    assert run(["publish", *words]) == 0
    changed("new.txt")
    assert run(["publish", *words]) == 0
    assert run(["publish", *words, "--notify-only"]) == 0
    assert len(hub.posts()) == 2


def test_a_catalogue_notifies_as_a_folder_does(here: Path, hub: Listener) -> None:
    Path("all.ndjson").write_text(f'{{"uri": "{BASE}a", "length": 1}}\n')
    assert run(["catalogue", "import", "c.db", "all.ndjson", "-q"]) == 0
    options = ["--url", BASE, "--out", "out", "--hub", hub.origin, "-o", "notify=true", "-q"]
    assert run(["publish", "catalogue:c.db", *options]) == 0
    Path("post.ndjson").write_text(f'{{"change": "created", "uri": "{BASE}b", "length": 1}}\n')
    assert run(["catalogue", "post", "c.db", "post.ndjson", "-q"]) == 0
    hub.answer = lambda _: (500, b"")
    assert run(["publish", "catalogue:c.db", "-q"]) == 0
    hub.answer = lambda _: (204, b"")
    assert run(["publish", "catalogue:c.db", "--notify-only", "-q"]) == 0
    assert f"{BASE}b".encode() in hub.posts()[-2].body + hub.posts()[-1].body
