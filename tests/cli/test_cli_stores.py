"""A mirror whose copies are in a store of a plug-in: pulled, audited, repaired, emptied."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.app import plugins
from resourcesync.cli.main import run
from tests.support.accounts.distributions import install
from tests.support.commands.command_line import MIRRORED, Said, rows
from tests.support.servers.tiny_source import TinySource
from tests.support.storage.storing import ShelfStore


@pytest.fixture(autouse=True)
def site(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the store ``shelf:`` and two that cannot be used; keep state in a folder of ours."""
    points = {
        plugins.STORES: {
            "shelf": "acme_shelf:open_shelf",
            "broken": "acme_shelf:broken",
            "empty": "acme_shelf:empty",
        }
    }
    code = (
        "from tests.support.storage.storing import open_shelf\n"
        "def broken(address): raise RuntimeError('no luck today')\n"
        "def empty(address): return object()\n"
    )
    install(here / "site", "acme_shelf", points, code)
    monkeypatch.syspath_prepend(str(here / "site"))
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "home"))
    yield
    sys.modules.pop("acme_shelf", None)


@pytest.fixture
def shelf(here: Path) -> ShelfStore:
    return ShelfStore(here / "shelf")


@pytest.fixture
def address(shelf: ShelfStore) -> str:
    return f"shelf:{shelf.folder}"


def test_copies_go_into_the_store_and_all_else_stays_here(
    source: TinySource, shelf: ShelfStore, address: str, said: Said, here: Path
) -> None:
    assert run(["pull", source.url, address]) == 0
    assert shelf.contents() == MIRRORED
    (home,) = (here / "home/resourcesync/stores").iterdir()
    assert [path.name for path in home.iterdir()] == [".resourcesync"]

    said.readouterr()
    assert run(["pull", address, "--json"]) == 0
    assert rows(said)[-1]["created"] == 0
    for command in (["audit", address], ["status", "--check", address], ["changes", address]):
        assert run(command) == 0
    assert run(["why", address, f"{source.url}/objects/0003.txt"]) == 0
    assert "objects/0003.txt" in said.readouterr().out


def test_what_others_do_to_the_store_is_found_kept_and_mended(
    source: TinySource, shelf: ShelfStore, address: str, said: Said
) -> None:
    assert run(["pull", source.url, address, "-o", "state=state"]) == 0
    shelf.spoil("objects/0001.txt", b"objecT 1\n", openly=False)
    shelf.spoil("objects/0002.txt", b"somebody's own\n")
    shelf.remove("objects/0003.txt")
    shelf.spoil("mine.txt", b"mine")
    said.readouterr()

    assert run(["audit", "state", "--json"]) == 1
    found = {(row["kind"], row["path"]) for row in rows(said) if row["type"] == "finding"}
    assert found == {
        ("*", "objects/0001.txt"),
        ("*", "objects/0002.txt"),
        ("+", "objects/0003.txt"),
        ("-", "mine.txt"),
    }
    assert run(["repair", "state", "--from-audit", "last"]) == 0
    assert shelf.contents() == {**MIRRORED, "mine.txt": b"mine"}
    aside = {key.rpartition("/")[2]: shelf.open(key) for key in shelf.keys(".resourcesync/quar")}
    stream = aside["0002.txt"]
    assert stream is not None
    assert stream.read() == b"somebody's own\n"


def test_a_store_that_is_another_one_or_held_is_refused_and_nothing_is_changed(
    source: TinySource, shelf: ShelfStore, address: str, said: Said
) -> None:
    assert run(["pull", source.url, address, "-o", "state=state"]) == 0
    with shelf.lock("another machine"):
        assert run(["pull", "state"]) == 9
        assert "another machine holds the store" in said.readouterr().err
    shelf.remove(".resourcesync/marker")
    before = shelf.contents()
    assert run(["pull", "state"]) == 8
    assert "not the one of this mirror's state" in said.readouterr().err
    assert shelf.contents() == before


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("broken:x", "RuntimeError: no luck today"),
        ("empty:x", "did not return a store"),
        ("zz://bucket/x", "no plug-in 'zz' in the group resourcesync.stores"),
        ("shelf://user:secret@host/x", "must not contain a user or a password"),
    ],
)
def test_a_store_that_cannot_be_used_is_a_mistake_that_leaves_nothing(
    source: TinySource, place: str, error: str, said: Said, here: Path
) -> None:
    assert run(["pull", source.url, place, "-o", "state=state"]) == 2
    assert error in said.readouterr().err
    assert not Path("state").exists()


def test_state_is_for_stores_and_belongs_to_one(
    source: TinySource, address: str, said: Said
) -> None:
    assert run(["pull", source.url, "mirror", "-o", "state=state"]) == 2
    assert run(["pull", source.url, address, "-o", "state=state"]) == 0
    assert run(["pull", source.url, f"{address}2", "-o", "state=state"]) == 2
    assert "the folder of another mirror" in said.readouterr().err


def test_a_mirror_of_the_configuration_may_be_in_a_store(
    source: TinySource, shelf: ShelfStore, address: str, here: Path
) -> None:
    table = f'[mirror.museum]\nsource = "{source.url}"\ndest = "{address}"\nstate = "kept/museum"\n'
    Path("resourcesync.toml").write_text(table)
    assert run(["pull", "museum"]) == 0
    assert run(["audit", "museum"]) == 0
    assert shelf.contents() == MIRRORED
    assert (here / "kept/museum/.resourcesync/state.db").is_file()
