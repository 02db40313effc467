"""Dumps of packages whose manifest is an index of manifests, as 0.5 has them, are followed."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from tests.support.documents.packages import CHANGES_MD, RESOURCES_MD, nested
from tests.support.documents.text import document
from tests.support.worlds.dump_source import DumpSource, Packed, Told, many, rows
from tests.support.worlds.world import World

SIZE = 4


def package(name: str, told: Sequence[Told], mode: str, md: str = RESOURCES_MD) -> Packed:
    """A package with a manifest for each four entries."""
    parts = {
        f"/manifests/{start:03}.xml": document(
            *rows(*told[start : start + SIZE], packed=True), md=md
        )
        for start in range(0, len(told), SIZE)
    }
    files = {told.member: told.data for told in told if told.change != "deleted"}
    return Packed(name=name, body=nested(parts, files, md=md, mode=mode))


def happened(told: Told, change: str, minute: int, data: bytes = b"") -> Told:
    return told.wrong(change=change, data=data, lastmod=f"2026-01-01T00:{minute:02}:00Z")


@pytest.mark.parametrize("mode", ["", "w:xz"])
def test_resources_and_their_changes_come_from_nested_manifests(tmp_path: Path, mode: str) -> None:
    world = World(tmp_path / "mirror", DumpSource())
    told = many(10)
    world.source.has_only(told)
    world.source.dump(package("all.zip", told, mode))

    report = world.pull()

    assert (report.state, report.created) == (MirrorState.IN_SYNC, 10)
    assert world.in_sync()

    changes = [
        *(happened(told, "updated", minute, b"new") for minute, told in enumerate(told[:5])),
        happened(told[7], "deleted", 6),
        happened(told[2], "updated", 7, b"new again").wrong(path="again"),
        happened(Told(name="added"), "created", 8, b"added"),
    ]
    for change in changes:
        world.source.resources[f"http://source.example/{change.name}"] = change.data
    del world.source.resources[f"http://source.example/{told[7].name}"]
    world.source.dump_changes(package("changes.zip", changes, mode, CHANGES_MD))
    world.clock.advance(hours=25)  # where the lists are is looked for once a day

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert (report.created, report.updated, report.deleted) == (1, 5, 1)
    assert world.in_sync()
    assert world.pull().mode is Mode.UNCHANGED
