"""Packages of runs: many resources as columns give what the same resources give one by one."""

import random
from collections.abc import Sequence

import pytest

from resourcesync.documents.packages.planning import PackageSize, plan_packages
from resourcesync.documents.packages.zip_writer import write_package
from resourcesync.documents.writer import body
from resourcesync.model.entries import Resource, ResourceRun, joined_runs
from tests.support.documents.packages import RESOURCES, opened, resource

SIZES = [
    PackageSize(),
    PackageSize(max_entries=7),
    PackageSize(max_entries=1),
    PackageSize(max_bytes=20_000),
    PackageSize(max_bytes=1),
    PackageSize(max_manifest=9_000),
    PackageSize(max_manifest=500),
]


def contents(count: int) -> list[bytes]:
    noise = random.Random(23)
    return [noise.choice((noise.randbytes, bytes))(noise.randrange(3_000)) for _ in range(count)]


def resources(bodies: Sequence[bytes]) -> list[Resource]:
    uris = [f"http://h/{number // 9}/é&{number}.txt" for number in range(len(bodies))]
    return [resource(uri, data, "", "text/plain") for uri, data in zip(uris, bodies, strict=True)]


def run_of(entries: Sequence[Resource]) -> ResourceRun:
    return ResourceRun(
        uris=[entry.uri for entry in entries],
        lastmods=[entry.lastmod for entry in entries],
        lengths=[entry.length for entry in entries],
        hashes=[" ".join(map(str, entry.digests)) for entry in entries],
        media_types=[entry.media_type for entry in entries],
    )


@pytest.mark.parametrize("most", [1, 3, 100])
@pytest.mark.parametrize("size", SIZES)
def test_runs_make_the_packages_that_their_resources_make(size: PackageSize, most: int) -> None:
    bodies = contents(40)
    entries = resources(bodies)
    singly = list(plan_packages(RESOURCES, entries, size=size))
    runs = (run_of(entries[at : at + most]) for at in range(0, len(entries), most))
    in_runs = list(plan_packages(RESOURCES, runs, size=size))
    once, again = iter(bodies), iter(bodies)

    assert [list(package) for package in in_runs] == singly
    assert all(isinstance(package, ResourceRun) for package in in_runs)
    for package, run in zip(singly, in_runs, strict=True):
        text = body(run, RESOURCES)
        data = b"".join(write_package(RESOURCES, run, lambda _: (next(once),)))
        assert text == body(package, RESOURCES)
        assert data == b"".join(write_package(RESOURCES, package, lambda _: [next(again)]))
        opened(data).verify()


def test_a_run_with_a_resource_of_unknown_length_cannot_be_packed() -> None:
    run = ResourceRun(
        uris=["http://h/1"], lastmods=[None], lengths=[None], hashes=[""], media_types=[""],
        paths=["/1"],
    )  # fmt: skip

    with pytest.raises(ValueError, match="length"):
        list(plan_packages(RESOURCES, [run]))
    with pytest.raises(ValueError, match="length"):
        list(write_package(RESOURCES, run, lambda _: (b"",)))


@pytest.mark.parametrize("paths", [(), ["/1", ""], ["/1", "2"]])
def test_a_manifest_of_a_run_has_a_path_for_each_entry(paths: Sequence[str]) -> None:
    run = joined_runs([run_of(resources([b"1", b"2"]))])
    placed = ResourceRun(
        uris=run.uris, lastmods=run.lastmods, lengths=run.lengths, hashes=run.hashes,
        media_types=run.media_types, paths=paths,
    )  # fmt: skip

    with pytest.raises(ValueError, match="path"):
        body(placed, RESOURCES)
