"""What a pull does when the Source misbehaves."""

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import ConfigurationError, DocumentError, TruncatedDocumentError
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


def test_a_list_that_is_cut_short_changes_nothing(world: World[PublishedSource]) -> None:
    whole = world.source.honest(RESOURCE_LIST).body
    for cut in (len(whole.rstrip()) - 1, len(whole) // 2, 200, 1):
        world.network.answers[RESOURCE_LIST] = Answer(body=whole[:cut])
        with pytest.raises(DocumentError) as caught:
            world.pull()
        assert isinstance(caught.value, TruncatedDocumentError) or cut == 1
        assert world.files() == {}
    world.network.answers.clear()

    assert world.pull().state is MirrorState.IN_SYNC


@pytest.mark.founding("0.9 §2.1", "A hash shows whether a resource was obtained rightly", "`pull`")
def test_wrong_bytes_are_never_kept_and_the_good_copy_stays(world: World[PublishedSource]) -> None:
    world.pull()
    world.source.publish_file("objects/0003.html", "the new content")
    world.network.answers[BASE + "objects/0003.html"] = Answer(body=b"the evil conten")

    report = world.pull()

    assert (report.state, report.failed) == (MirrorState.BEHIND, 1)
    assert report.failures[0].code == "hash-mismatch"
    assert world.asked_resources().count("objects/0003.html") == 2
    assert (world.folder / "objects/0003.html").read_text() == "content of 3"
    world.network.answers.clear()
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_what_contradicts_the_list_is_asked_for_again_but_not_put_in_place_twice(
    world: World[PublishedSource],
) -> None:
    world.network.answers[BASE + "objects/0003.html"] = Answer(body=b"whatever")
    world.pull(verify="lenient")
    before = (world.folder / "objects/0003.html").stat().st_ino

    for mode in ("auto", "baseline"):
        report = world.pull(verify="lenient", mode=mode)

        assert (report.state, report.retained.contradicting) == (MirrorState.BEHIND, 1)
        assert (report.listed.total, report.listed.unchanged, report.listed.pending) == (41, 40, 1)
        assert world.asked_resources() == ["objects/0003.html"]
        assert (world.folder / "objects/0003.html").stat().st_ino == before
    assert not world.audit(offline=True).in_sync

    del world.network.answers[BASE + "objects/0003.html"]
    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert (report.retained.contradicting, report.updated) == (0, 1)
    assert world.in_sync()


def test_a_pending_resource_is_not_forgotten_when_other_changes_come(
    world: World[PublishedSource],
) -> None:
    world.pull()
    world.network.answers[BASE + "objects/0003.html"] = Answer(status=503)
    world.source.publish_file("objects/0003.html", "new")
    world.pull()
    world.source.publish_file("objects/0004.html", "new")
    report = world.pull()
    world.network.answers.clear()

    assert report.state is MirrorState.BEHIND
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_folder_follows_one_source_only(world: World[PublishedSource]) -> None:
    world.pull()

    with pytest.raises(ConfigurationError, match="follows another address") as refused:
        world.pull("http://other.example/")
    assert "--moved http://other.example/" in refused.value.hint
