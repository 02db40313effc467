"""Mappers of other distributions: their places are used when they are safe, and never believed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.mapping.escapes import FileSystemProfile
from resourcesync.destination.mapping.rules import PluggedMapping
from resourcesync.destination.reports import MirrorState
from resourcesync.errors import ConfigurationError, OutOfScopeError
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World

To = Callable[[str], Any]


class Flat:
    """Puts all resources into one folder; undone by the base."""

    def __init__(self, base: str, tells_case: bool) -> None:
        self.base = base
        self.tells_case = tells_case

    def to_path(self, uri: str) -> str:
        return uri.removeprefix(self.base).replace("/", "+")

    def to_uri(self, path: str) -> str | None:
        return self.base + path.replace("+", "/")


class Told:
    """Says what a test wants."""

    def __init__(self, to_path: To, to_uri: To) -> None:
        self.to_path = to_path
        self.to_uri = to_uri


def mapping(
    to_path: To, to_uri: To, profile: FileSystemProfile = FileSystemProfile.POSIX
) -> PluggedMapping:
    return PluggedMapping("told", lambda _base, _tells: Told(to_path, to_uri), BASE, profile)


@pytest.fixture
def world(tmp_path: Path) -> World[LooseSource]:
    world = World(tmp_path / "mirror", LooseSource())
    world.home.mappers = {"flat": Flat}.__getitem__
    for name in ("a/1.txt", "a/2.txt", "b.txt"):
        world.source.put(name, name)
    world.source.publish()
    return world


def test_a_mapper_gives_the_places_and_the_mirror_keeps_it_for_life(
    world: World[LooseSource],
) -> None:
    assert world.pull(mapper="flat").state is MirrorState.IN_SYNC
    assert set(world.home.files_on_disk()) == {"a+1.txt", "a+2.txt", "b.txt"}
    world.source.put("a/3.txt", b"3")
    world.source.publish()
    assert world.pull().created == 1
    assert "a+3.txt" in world.home.files_on_disk()
    audit = world.audit()
    assert (audit.in_sync, audit.foreign) == (True, 0)
    (world.folder / "c+d.txt").write_bytes(b"not ours")
    assert world.audit().foreign == 1
    assert world.in_sync() is False  # the file that is not ours


@pytest.mark.parametrize(("first", "second"), [("flat", "tree"), ("", "flat"), ("tree", "flat")])
def test_another_mapper_for_a_mirror_is_refused_before_anything_is_done(
    world: World[LooseSource], first: str, second: str
) -> None:
    world.pull(mapper=first)
    before = world.home.files_on_disk()
    with pytest.raises(ConfigurationError, match="paths come from the mapper") as caught:
        world.pull(mapper=second)
    assert caught.value.code == "other-mapper"
    assert world.home.files_on_disk() == before


def test_entries_whose_places_clash_are_refused_and_the_others_are_fetched(
    world: World[LooseSource],
) -> None:
    class Clashing(Flat):
        def to_path(self, uri: str) -> str:
            return super().to_path(uri).replace("2", "1")

    world.home.mappers = lambda _name: Clashing
    report = world.pull(mapper="clashing")
    assert (report.listed.refused, report.created, report.state) == (1, 2, MirrorState.BEHIND)
    assert world.home.files_on_disk()["a+1.txt"] == b"a/1.txt"
    (refused,) = [mapping for mapping in world.told("item") if mapping["action"] == "refuse"]
    assert (refused["code"], refused["uri"]) == ("mapper", BASE + "a/2.txt")
    assert "does not lead back to its URI" in str(refused["reason"])


@pytest.mark.parametrize(
    "place",
    [
        "",
        "/etc/passwd",
        "../up",
        "a/../b",
        "a//b",
        "a/",
        "./a",
        ".resourcesync/state.db",
        ".RESOURCESYNC/x",
        "a/.hidden",
        "a\\b",
        "C:/x",
        "a\0b",
        "a\nb",
        "con",
        "a/NUL.txt",
        "trailing.",
        "trailing ",
        " leading",
        "x" * 256,
        "x/" * 450 + "x",
        "e\u0301",
        "\ud800",
        None,
        7,
        b"bytes",
    ],
)
def test_a_place_that_is_not_safe_is_refused(place: object) -> None:
    told = mapping(lambda _uri: place, lambda _path: BASE + "a")
    with pytest.raises(OutOfScopeError) as caught:
        told.path(BASE + "a")
    assert caught.value.code == "mapper"


@pytest.mark.parametrize("back", [None, BASE + "b", "no uri", 7])
def test_a_place_that_does_not_lead_back_is_refused(back: object) -> None:
    told = mapping(lambda _uri: "a", lambda _path: back)
    with pytest.raises(OutOfScopeError):
        told.path(BASE + "a")


def test_upper_case_is_refused_where_it_is_not_told_from_lower_case() -> None:
    def told(profile: FileSystemProfile) -> PluggedMapping:
        return mapping(lambda _uri: "Ab", lambda _path: BASE + "a", profile)

    assert told(FileSystemProfile.POSIX).path(BASE + "a") == "Ab"
    with pytest.raises(OutOfScopeError, match="upper case"):
        told(FileSystemProfile.PORTABLE).path(BASE + "a")


def test_a_mapper_that_raises_costs_its_entry_alone() -> None:
    def broken(_: str) -> Any:
        raise ZeroDivisionError("no")

    with pytest.raises(OutOfScopeError, match="ZeroDivisionError"):
        mapping(broken, broken).path(BASE + "a")
    assert mapping(broken, broken).uri("a") is None


def test_a_factory_that_raises_is_a_mistake_of_configuration() -> None:
    def broken(_base: str, _tells_case: bool) -> Any:
        raise ZeroDivisionError("no")

    with pytest.raises(ConfigurationError, match="cannot be made"):
        PluggedMapping("broken", broken, BASE, FileSystemProfile.POSIX)


def test_a_path_leads_to_a_uri_only_when_the_uri_leads_to_it() -> None:
    flat = PluggedMapping("flat", Flat, BASE, FileSystemProfile.POSIX)
    assert flat.uri("a+1.txt") == BASE + "a/1.txt"
    assert flat.uri("a/1.txt") is None


def test_uris_are_refused_as_ever_before_a_mapper_sees_them() -> None:
    seen: list[str] = []

    def noted(uri: str) -> str:
        seen.append(uri)
        return "a"

    told = mapping(noted, lambda _path: BASE + "a")
    with pytest.raises(OutOfScopeError) as caught:
        told.path("http://source.example/../a")
    assert (caught.value.code, seen) == ("URL_DOT_SEGMENT", [])
