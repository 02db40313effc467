"""What we dump, taken by our own Destination and judged by our own validator."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.documents.packages.planning import PackageSize
from resourcesync.source import naming
from resourcesync.source.contents import PresentContents
from resourcesync.source.dumps.dump_publisher import DumpPublisher
from resourcesync.source.naming import SourceNaming
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World[PublishedSource]:
    world = World(tmp_path / "mirror")
    for number in range(60):
        world.source.put(f"{number:02}.txt", f"content {number} " * 20)
    world.source.publish()
    dump(world)
    return world


def dump(world: World[PublishedSource], *, most: int = 20, changes: bool = True) -> None:
    """Dump what is published, and publish what leads to the dumps."""
    DumpPublisher(
        world.source.catalogue,
        world.source.documents,
        PresentContents(world.source.originals),
        names=SourceNaming(base_uri=BASE),
        clock=world.clock,
        size=PackageSize(max_entries=most),
    ).publish(changes=changes)
    world.source.publish()


def test_a_dump_with_packages_of_different_ages_leads_to_the_present(
    world: World[PublishedSource],
) -> None:
    world.source.put("05.txt", "altered once")
    world.source.publish()
    dump(world)
    world.source.put("45.txt", "altered after the dump")
    world.source.remove("46.txt")
    world.source.publish()

    assert world.pull(dumps="always").state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_mirror_of_dumps_alone_ends_in_step(world: World[PublishedSource]) -> None:
    world.source.put("05.txt", "altered once")
    world.source.remove("06.txt")
    world.source.publish()
    dump(world)
    for name in (naming.RESOURCE_LIST, naming.CHANGE_LIST):
        world.source.documents.delete(name)
    address = BASE + naming.CAPABILITY_LIST
    body = world.source.honest(address).body.decode()
    kept = [entry for entry in body.split("<url>") if 'list"/>' not in entry or "<urlset" in entry]
    world.network.answers[address] = Answer(body=("<url>".join(kept)).encode())

    report = world.pull(address, dumps="always")

    assert report.state is MirrorState.IN_SYNC
    assert world.in_sync()
