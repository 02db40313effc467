"""An audit names what is not as listed, and changes nothing."""

import pytest

from resourcesync.model.digests import Digest
from tests.support.world import World


@pytest.mark.parametrize("method", ["lists", "stat", "hash"])
def test_an_audit_of_an_untouched_mirror_finds_nothing(world: World, method: str) -> None:
    world.pull()

    report = world.audit(method=method)

    assert report.in_sync
    assert (report.listed, report.present, report.accurate, report.extra) == (41, 41, 41, 0)
    assert (report.coverage, report.accuracy) == (1.0, 1.0)
    size = sum(map(len, world.originals.contents().values()))
    assert report.read == (size if method == "hash" else 0)


def test_an_audit_names_what_is_missing_damaged_extra_and_newer_at_the_source(
    world: World,
) -> None:
    world.pull()
    damaged = world.folder / "objects/0002.html"
    stat = damaged.stat()
    damaged.write_text("Content of 2")
    import os

    os.utime(damaged, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    (world.folder / "objects/0001.html").unlink()
    (world.folder / "notes.txt").write_text("mine")
    world.put("objects/0005.html", "newer")
    world.remove("objects/0006.html")
    world.publish()

    report = world.audit()
    found = {(finding.kind.value, finding.path) for finding in report.findings}

    assert not report.in_sync
    assert found == {
        ("+", "objects/0001.html"),
        ("*", "objects/0002.html"),
        ("*", "objects/0005.html"),
        ("-", "objects/0006.html"),
        ("-", "notes.txt"),
    }
    assert (report.listed, report.present, report.accurate) == (40, 39, 37)
    assert (report.extra, report.foreign) == (1, 1)


def test_an_audit_offline_asks_nobody(world: World) -> None:
    world.pull()
    world.fetcher.asked.clear()
    (world.folder / "objects/0001.html").write_text("damaged")

    report = world.audit(offline=True)

    assert not report.in_sync
    assert world.fetcher.asked == []


def test_an_audit_changes_nothing(world: World) -> None:
    world.pull()
    world.put("objects/0005.html", "newer")
    world.publish()
    world.audit()

    assert world.pull().updated == 1
    assert world.in_sync()


def test_the_digest_of_every_copy_is_remembered(world: World) -> None:
    world.pull()
    with world.destination() as destination:
        copies = list(destination._equipment.state.copies())

    assert len(copies) == 41
    assert all(copy.digests.startswith("sha-256:") for copy in copies)
    assert Digest("sha-256", copies[0].digests[8:]).is_usable
