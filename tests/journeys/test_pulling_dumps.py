"""Dumps as another place to have the bytes from: what is taken, and what is not believed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import PackageError
from resourcesync.ports import FetchRequest
from tests.support.documents.text import document
from tests.support.documents.written import sha256
from tests.support.worlds.dump_source import (
    AT,
    DumpSource,
    Packed,
    Told,
    manifest_of,
    many,
    md,
    tarred,
    zipped,
)
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World

TOLD = many(100)


@pytest.fixture
def world(tmp_path: Path) -> World[DumpSource]:
    return World(tmp_path / "mirror", DumpSource())


def offer(world: World[DumpSource], listed: Sequence[Told], *bodies: bytes, at: str = AT) -> None:
    world.source.publish(listed)
    packages = (Packed(name=f"{number}.zip", body=body) for number, body in enumerate(bodies))
    world.source.dump(*packages, at=at)


def singly(world: World[DumpSource]) -> int:
    return sum(name.startswith("r/") for name in world.asked())


@pytest.mark.founding(
    "D-Lib §1", "A Destination has all data with a few requests, from a Resource Dump", "`pull`"
)
def test_a_first_pull_of_2000_small_resources_takes_one_package(world: World[DumpSource]) -> None:
    told = many(2000)
    offer(world, told, zipped(told))

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert report.created == report.fetched.verified == 2000
    assert world.in_sync()
    assert len(world.asked()) < 20
    assert world.asked_resources().count("0.zip") == 1
    assert report.fetched.bytes == sum(len(told.data) for told in told)


def some(told: Sequence[Told], **says: Any) -> list[Told]:
    return [item.wrong(**says) if not number % 10 else item for number, item in enumerate(told)]


NO_HASH = [item.wrong(hash="") for item in TOLD]


@pytest.mark.parametrize(
    ("listed", "body", "number", "warned"),
    [
        (some(TOLD, data=b"new"), zipped(TOLD), 10, []),
        (TOLD, zipped(some(TOLD, packed=b"lies")), 10, ["bad-members"]),
        (TOLD, zipped(TOLD, missing=["r/00007"]), 1, ["bad-members"]),
        (NO_HASH, tarred(some(NO_HASH, lastmod="2025-11-01T00:00:00Z")), 10, []),
        (
            [item.wrong(lastmod=AT) for item in NO_HASH],
            zipped([item.wrong(lastmod=AT, packed=b"x" * len(item.data)) for item in NO_HASH]),
            100,
            [],
        ),
        (TOLD[:90], zipped(TOLD), 0, []),  # what only the dump tells of is not installed
    ],
    ids=[
        "an older version", "other bytes",
        "a member is missing", "no hash and another time", "of the second of the dump", "more",
    ],
)  # fmt: skip
def test_what_is_not_in_a_package_as_it_is_listed_is_fetched_singly(
    world: World[DumpSource], listed: list[Told], body: bytes, number: int, warned: list[str]
) -> None:
    offer(world, listed, body)

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert report.created == len(listed)
    assert world.in_sync()
    assert singly(world) == number
    if listed[1].hash is not None:
        assert (report.fetched.verified, report.fetched.weak) == (0, len(listed))
    assert list(dict.fromkeys(world.warned())) == warned


BAD: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda body: body[: len(body) // 2],
    "no package": lambda body: b"<html>sorry</html>",
    "empty": lambda body: b"",
    "damaged": lambda body: body[:200] + bytes(100) + body[300:],
}


@pytest.mark.parametrize("how", sorted(BAD))
def test_a_bad_package_costs_only_itself(world: World[DumpSource], how: str) -> None:
    told = many(200)
    good, bad = zipped(told[:100]), zipped(told[100:])
    offer(world, told)
    world.source.dump(
        Packed(name="bad.zip", body=BAD[how](bad), length=-1 if how == "empty" else None),
        Packed(name="good.zip", body=good),
    )

    assert world.pull(dumps="always").state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert world.warned() in (["bad-package"], ["bad-members"])
    assert all(name >= "r/00100" for name in world.asked() if name.startswith("r/"))


def test_a_dump_of_bad_packages_is_given_up_after_some(world: World[DumpSource]) -> None:
    offer(world, many(400), *[b"no package" * 100] * 20)

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert sum(name.endswith(".zip") for name in world.asked()) == 8
    assert world.warned() == [*["bad-package"] * 8, "bad-dump"]


@pytest.mark.parametrize(
    "dump",
    [
        b"<html>sorry</html>",
        document(
            f"<sitemap><loc>{BASE}resourcelist.xml</loc></sitemap>",
            root="sitemapindex",
            md=md("resourcedump", at=AT),
        ),
    ],
    ids=["no document", "an index of something else than dumps"],
)
def test_a_dump_that_is_none_is_told_of(world: World[DumpSource], dump: bytes) -> None:
    offer(world, TOLD)
    world.source.offer("resourcedump", dump)

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert world.warned() == ["bad-dump"]


CREATED = [item.wrong(change="created") for item in TOLD]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (zipped(TOLD), {"hash": sha256(b"another")}),
        (zipped(TOLD), {"length": 12}),
        (zipped(CREATED, kind="changedump-manifest", from_=AT), {}),
        (zipped(TOLD, at="2020-01-01T00:00:00Z"), {}),
        (zipped(TOLD), {"contents": "copy.xml"}),
    ],
    ids=["hash", "length", "a manifest of changes", "older than its dump", "another manifest"],
)
def test_a_package_that_is_not_the_one_of_its_dump_is_not_opened(
    world: World[DumpSource], body: bytes, says: dict[str, Any]
) -> None:
    offer(world, TOLD)
    world.source.say("copy.xml", manifest_of(TOLD[:-1]))
    world.source.dump(Packed(name="d.zip", body=body, **says))

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert world.warned() == ["bad-package"]
    assert singly(world) == 100


@pytest.mark.parametrize("heals", [True, False])
def test_a_package_that_comes_cut_short_is_asked_for_once_more_past_all_caches(
    world: World[DumpSource], *, heals: bool
) -> None:
    body = zipped(many(100))
    world.source.dump(Packed(name="0.zip", body=body))
    asked: list[bool] = []

    def cut(request: FetchRequest) -> Answer:
        asked.append(request.uncached)
        return Answer(body=body if heals and request.uncached else body[: len(body) // 2])

    world.network.answers[f"{BASE}0.zip"] = cut
    if heals:
        assert world.pull().state is MirrorState.IN_SYNC
    else:
        with pytest.raises(PackageError):
            world.pull()
        assert world.files() == {}
    assert asked == [False, True]
