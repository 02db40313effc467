"""What we dump, taken by our own Destination and judged by our own validator."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.documents.packages.planning import PackageSize
from resourcesync.model.vocabulary import Dialect
from resourcesync.source import naming
from resourcesync.source.publication_settings import DIALECTS, ChangeLists, Policy
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
    world.source.dumps(size=PackageSize(max_entries=most)).publish(changes=changes)
    world.source.publish()


@pytest.mark.founding("0.9 §2.2.1", "Capabilities are modular: dumps alone are enough", "`pull`")
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

    assert world.pull(address, dumps="always").state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.founding(
    "0.9 §5-7", "Its dumps and manifests are written in this version", "`-o dialect=0.9`"
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_dumps_of_each_version_lead_to_the_present_and_are_written_as_it_says(
    dialect: Dialect, tmp_path: Path
) -> None:
    world = World(tmp_path / "mirror")
    world.source.policy = Policy(dialect=dialect, change_lists=ChangeLists.PER_RUN)
    for number in range(5):
        world.source.put(f"{number}.txt", f"content {number} " * 20)
    world.source.publish()
    dump(world)
    assert world.pull(dumps="always").state is MirrorState.IN_SYNC
    world.source.put("1.txt", "altered")
    world.source.remove("2.txt")
    world.source.publish()
    dump(world)

    assert world.pull(dumps="always").state is MirrorState.IN_SYNC

    assert world.in_sync()
    world.source.publish_file("3.txt", "altered after the dump")
    late = World(tmp_path / "late", world.source)
    assert late.pull(dumps="always").state is MirrorState.IN_SYNC
    assert late.in_sync()
    written = b"".join(
        world.source.honest(BASE + name).body
        for name in world.source.documents.names()
        if name in (naming.RESOURCE_DUMP, naming.CHANGE_DUMP) or name.endswith("-manifest.xml")
    ).decode()
    drafts = dialect in DIALECTS[3:]
    assert ("datetime=" in written) == (dialect is Dialect.V1_1)
    assert ('rel="resourcesync"' in written, 'rel="up"' in written) == (drafts, not drafts)
    assert (" at=" in written, 'rel="contents"' in written) == (not drafts, not drafts)
    assert ("modified=" in written) == (dialect in (Dialect.V0_6, Dialect.V0_5))
