"""Dumps as another place to have the bytes from: what is taken, and what is not believed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import DiskFullError
from tests.support.worlds.dump_source import AT, DumpSource, Packed, many, sha256, tarred, zipped
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World[DumpSource]:
    return World(tmp_path / "mirror", DumpSource())


def test_a_first_pull_of_2000_small_resources_takes_one_package(world: World[DumpSource]) -> None:
    told = many(2000)
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.dump(Packed(name="d.zip", body=zipped(told)))

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert report.created == report.verified == 2000
    assert world.in_sync()
    assert len(world.asked()) < 20
    assert world.asked_resources().count("d.zip") == 1
    assert report.useful == sum(len(told.data) for told in told)


def test_without_dumps_everything_is_asked_for_singly(world: World[DumpSource]) -> None:
    told = many(100)
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.dump(Packed(name="d.zip", body=zipped(told)))

    assert world.pull(dumps="never").state is MirrorState.IN_SYNC
    assert "resourcedump.xml" not in world.asked()
    assert sum(name.startswith("r/") for name in world.asked()) == 100


def test_a_dry_run_fetches_no_package(world: World[DumpSource]) -> None:
    told = many(100)
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.dump(Packed(name="d.zip", body=zipped(told)))

    world.pull(dry_run=True)

    assert "d.zip" not in world.asked()


def test_a_few_resources_are_not_worth_the_look_unless_it_is_asked_for(
    world: World[DumpSource],
) -> None:
    told = many(3)
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.dump(Packed(name="d.zip", body=zipped(told)))

    world.pull(dry_run=True)
    assert world.pull(dumps="always").created == 3
    assert not any(name.startswith("r/") for name in world.asked())


def test_what_the_dump_has_of_an_older_version_is_fetched_singly(world: World[DumpSource]) -> None:
    old = many(200)
    new = [told.wrong(data=b"new " + told.data) if n < 20 else told for n, told in enumerate(old)]
    world.source.put_all(new)
    world.source.list_resources(new)
    world.source.dump(Packed(name="d.zip", body=zipped(old)))

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert sum(name.startswith("r/") for name in world.asked()) == 20


@pytest.mark.parametrize("says", [{}, {"hash": ""}, {"hash": "", "length": -1}])
def test_bytes_that_are_not_what_the_list_says_are_fetched_singly(
    world: World[DumpSource], says: dict[str, object]
) -> None:
    told = many(100)
    lies = [
        told.wrong(packed=b"lies", **says) if n % 10 == 0 else told for n, told in enumerate(told)
    ]
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.dump(Packed(name="d.zip", body=zipped(lies)))

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert sum(name.startswith("r/") for name in world.asked()) == 10
    assert world.warned() == ["bad-members"]


def test_a_dump_older_than_all_that_is_wanted_is_not_taken(world: World[DumpSource]) -> None:
    told = many(100)
    world.source.put_all(told)
    world.source.list_resources(told)
    long_ago = "2025-01-01T00:00:00Z"
    world.source.dump(
        Packed(name="d.zip", body=zipped(many(100, size=80), at=long_ago)), at=long_ago
    )

    assert world.pull().state is MirrorState.IN_SYNC
    assert "d.zip" not in world.asked()
    assert world.in_sync()


def test_what_a_package_lacks_is_fetched_singly(world: World[DumpSource]) -> None:
    told = many(100)
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.dump(Packed(name="d.zip", body=zipped(told, missing=["r/00007"])))

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert [name for name in world.asked() if name.startswith("r/")] == ["r/00007"]


def test_what_only_the_dump_tells_of_is_not_installed(world: World[DumpSource]) -> None:
    told = many(100)
    world.source.put_all(told[:90])
    world.source.list_resources(told[:90])
    world.source.dump(Packed(name="d.zip", body=zipped(told)))

    assert world.pull().created == 90
    assert world.in_sync()


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
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.dump(
        Packed(name="bad.zip", body=BAD[how](bad), length=-1 if how == "empty" else None),
        Packed(name="good.zip", body=good),
    )

    report = world.pull(dumps="always")

    assert report.state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert world.warned() in (["bad-package"], ["bad-members"])
    assert all(name >= "r/00100" for name in world.asked() if name.startswith("r/"))


def test_a_dump_of_bad_packages_is_given_up_after_some(world: World[DumpSource]) -> None:
    told = many(400)
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.dump(*(Packed(name=f"{n}.zip", body=b"no package" * 100) for n in range(20)))

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert sum(name.endswith(".zip") for name in world.asked()) == 8
    assert world.warned() == [*["bad-package"] * 8, "bad-dump"]


def test_a_dump_that_is_not_there_or_no_dump_is_told_of(world: World[DumpSource]) -> None:
    told = many(100)
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.offer("resourcedump", b"<html>sorry</html>")

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert world.warned() == ["bad-dump"]


@pytest.mark.parametrize(
    "says", [{"hash": sha256(b"another")}, {"length": 12}], ids=["hash", "length"]
)
def test_a_package_that_is_not_the_one_of_its_dump_is_not_opened(
    world: World[DumpSource], says: dict[str, object]
) -> None:
    told = many(100)
    world.source.put_all(told)
    world.source.list_resources(told)
    package = Packed(name="d.zip", body=zipped(told), **says)  # type: ignore[arg-type]  # any
    world.source.dump(package)

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert world.warned() == ["bad-package"]
    assert sum(name.startswith("r/") for name in world.asked()) == 100


@pytest.mark.parametrize(
    "root",
    [{"kind": "changedump-manifest", "from_": AT}, {"at": "2020-01-01T00:00:00Z"}],
    ids=["of the other kind", "older than its dump"],
)
def test_a_manifest_that_does_not_fit_its_dump_costs_the_package(
    world: World[DumpSource], root: dict[str, str]
) -> None:
    told = [told.wrong(change="created") if "from_" in root else told for told in many(100)]
    world.source.put_all(told)
    world.source.list_resources(many(100))
    world.source.dump(Packed(name="d.zip", body=zipped(told, **root)))

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert world.warned() == ["bad-package"]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_tar_brings_resources_as_well(world: World[DumpSource], mode: str) -> None:
    told = many(100)
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.dump(Packed(name="d.tar", body=tarred(told, mode)))

    assert world.pull().verified == 100
    assert world.in_sync()
    assert not any(name.startswith("r/") for name in world.asked())


def test_without_digests_equal_times_are_enough_and_the_copies_are_not_called_verified(
    world: World[DumpSource],
) -> None:
    told = [told.wrong(hash="") for told in many(100)]
    other = [told.wrong(lastmod="2025-11-01T00:00:00Z") for told in told[:5]]
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.dump(Packed(name="d.tar", body=tarred([*other, *told[5:]])))

    report = world.pull()

    assert (report.created, report.verified, report.weak) == (100, 0, 100)
    assert world.in_sync()
    assert sum(name.startswith("r/") for name in world.asked()) == 5


def test_a_version_of_the_very_second_of_the_dump_is_fetched_singly(
    world: World[DumpSource],
) -> None:
    told = [told.wrong(hash="", lastmod=AT) for told in many(100)]
    stale = [told.wrong(packed=b"x" * len(told.data)) for told in told]
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.dump(Packed(name="d.zip", body=zipped(stale)))

    world.pull()

    assert world.in_sync()


def test_a_package_larger_than_the_disk_is_not_taken(world: World[DumpSource]) -> None:
    told = many(100)
    body = zipped(told)
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.dump(Packed(name="d.zip", body=body))
    world.home.room = len(body) - 1

    assert world.pull(dumps="always").state is MirrorState.IN_SYNC
    assert "d.zip" not in world.asked()
    assert world.in_sync()


def test_a_full_disk_in_the_middle_of_a_package_keeps_what_was_complete(
    world: World[DumpSource],
) -> None:
    told = many(100)
    world.source.put_all(told)
    world.source.list_resources(told)
    world.source.dump(Packed(name="d.zip", body=zipped(told)))
    world.network.answers[BASE + "d.zip"] = lambda _: DiskFullError("no room")

    with pytest.raises(DiskFullError):
        world.pull()
    world.network.answers.clear()  # there is room again
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
