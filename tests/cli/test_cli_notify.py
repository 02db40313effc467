"""``publish --notify``, and ``--notify-only``: what is said, and how it ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.servers.listening import Listener

BASE = "https://museum.example/"
NOWHERE = "http://127.0.0.1:9/"


@pytest.fixture
def hub() -> Iterator[Listener]:
    with Listener() as found:
        yield found


def published(*hubs: str, notify: bool = False) -> None:
    options = [name for hub in hubs for name in ("--hub", hub)]
    more = ["-o", "notify=true"] if notify else []
    assert run(["publish", "public", "--url", BASE, "-q", *options, *more]) == 0


def changed(name: str) -> None:
    Path("public", name).write_text(name)


def test_publish_with_notify_says_what_was_told(tree: Path, hub: Listener, said: Said) -> None:
    published(hub.origin, notify=True)
    changed("new.txt")
    assert run(["publish", "public"]) == 0

    captured = said.readouterr()
    assert captured.out.splitlines()[-1] == "Notified  1 hub of 1 change and 2 documents"
    assert captured.err == ""
    assert run(["publish", "public", "--notify-only"]) == 0
    assert said.readouterr().out == "Notified  nothing new\n"


def test_a_hub_that_is_away_fails_no_publication_and_hears_it_from_notify(
    tree: Path, hub: Listener, said: Said
) -> None:
    hub.answer = lambda _: (503, b"")
    published(hub.origin, notify=True)
    changed("new.txt")
    assert run(["publish", "public"]) == 0

    captured = said.readouterr()
    assert captured.err.splitlines() == [
        f"warning[notify]: the hub {hub.origin} was not notified: HTTP status 503",
        "  kept   the next notification contains these changes too",
    ]
    assert "Notified" not in captured.out
    assert run(["publish", "public", "--notify-only", "-q"]) == 4
    hub.answer = lambda _: (204, b"")
    said.readouterr()
    assert run(["publish", "public", "--notify-only", "--json"]) == 0
    end = rows(said)[-1]
    assert (end["changes"], end["documents"], end["hubs"], end["problems"]) == (1, 2, 1, 0)


def test_notify_ends_with_3_when_some_hubs_heard_it(tree: Path, hub: Listener) -> None:
    published(hub.origin, NOWHERE)
    changed("new.txt")
    assert run(["publish", "public", "-q"]) == 0
    assert run(["publish", "public", "--notify-only", "-q"]) == 3


NEXT = "publish it with the address of a hub: resourcesync publish public --hub https://HOST/hub"


def test_an_empty_hub_takes_all_hubs_back(tree: Path, said: Said) -> None:
    published(NOWHERE, notify=True)
    assert run(["publish", "public", "--hub", "", "-q"]) == 0
    said.readouterr()
    assert run(["publish", "public", "--notify-only"]) == 2
    assert said.readouterr().err.splitlines() == [
        "error[config]: public has no hub",
        f"  fix    {NEXT}",
        "exit 2",
    ]


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


@pytest.mark.parametrize("other", ["--update", "--dry-run", "--watch", "--all"])
def test_who_only_notifies_publishes_nothing(tree: Path, said: Said, other: str) -> None:
    assert run(["publish", "public", "--notify-only", other]) == 2
    assert f"--notify-only and {other} exclude each other" in said.readouterr().err


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
