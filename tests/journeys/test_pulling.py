"""A mirror's life: our real publisher in memory, our real Destination on a disk."""

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.ports import FetchRequest
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import OwnWorld


@pytest.mark.founding("0.9 §6.1", "Only the last change of a resource is processed", "`pull`")
def test_only_the_last_of_many_changes_is_acted_on(world: OwnWorld) -> None:
    world.pull()
    for content in ("one", "two"):
        world.source.put("objects/0001.html", content)
        world.source.put("objects/tmp.html", content)
        world.source.publish()
    world.source.remove("objects/tmp.html")
    world.source.remove("objects/0003.html")
    world.source.publish()
    world.source.publish_file("objects/0003.html", "content of 3")

    report = world.pull(None)

    assert world.asked_resources() == ["objects/0001.html"]
    assert (report.updated, report.created, report.deleted) == (1, 0, 0)
    assert world.in_sync()


@pytest.mark.founding("0.9 §2.1", "Lists that were processed before are known", "`pull`")
@pytest.mark.founding(
    "0.9 §2.2.2", "A newcomer reads the Resource List and the changes since", "`pull`"
)
def test_a_late_mirror_takes_the_changes_since_the_resource_list_into_its_baseline(
    world: OwnWorld,
) -> None:
    world.source.put("objects/0001.html", "newer than the Resource List")
    world.source.remove("objects/0002.html")
    world.source.publish()

    assert world.pull().mode is Mode.BASELINE
    assert world.in_sync()
    assert "objects/0002.html" not in world.asked_resources()
    assert world.pull().mode is Mode.UNCHANGED


def test_a_pull_that_is_interrupted_goes_on_where_it_stopped(world: OwnWorld) -> None:
    count = 0

    def broken(request: FetchRequest) -> Answer | Exception:
        nonlocal count
        count += 1
        return KeyboardInterrupt() if count > 20 else world.source.honest(request.uri)  # type: ignore[return-value]  # raised

    for number in range(40):
        world.network.answers[f"{BASE}objects/{number:04}.html"] = broken

    with pytest.raises(KeyboardInterrupt):
        world.pull()

    kept = len(world.files())
    assert kept >= 20
    world.network.answers.clear()
    assert world.pull().created == 41 - kept
    assert world.in_sync()


def test_a_lost_memory_is_rebuilt_from_the_files_without_fetching_them(world: OwnWorld) -> None:
    world.pull()
    (world.folder / ".resourcesync/state.db").unlink()
    (world.folder / "objects/0003.html").write_text("damaged")

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.asked_resources() == ["objects/0003.html"]
    assert world.in_sync()


def test_a_baseline_that_is_asked_for_mends_what_was_damaged_here(world: OwnWorld) -> None:
    world.pull()
    (world.folder / "objects/0003.html").unlink()
    (world.folder / "objects/0004.html").write_text("scribbled")

    report = world.pull(mode="baseline")

    assert (report.created, report.updated) == (1, 1)
    assert world.in_sync()
    kept = world.folder / ".resourcesync/quarantine"
    told = {item.suffix: item.read_text() for item in kept.iterdir()}
    assert told[".html"] == "scribbled"
    assert told[".note"].startswith("was at: objects/0004.html\n")
