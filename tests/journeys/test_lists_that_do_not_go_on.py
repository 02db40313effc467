"""Lists that do not go on from what was read: begun anew, cut, emptied, or without the news."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.destination.reports import MirrorState, Mode, RunReport
from resourcesync.mirror_state.rows import StateTransaction
from resourcesync.model.timestamps import to_microseconds
from tests.support.documents.written import written
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.rewriting import CHANGE_LIST, changed
from tests.support.worlds.world import World

FOLDER = BASE + "resourcesync/"
_FROM = re.compile(r' from="[^"]*"')


def loose_world(
    folder: Path, edit: Callable[[str, str], str] = lambda _, text: text, **style: object
) -> World[LooseSource]:
    """A mirror in step with a Source of some resources."""
    world = World(folder / "mirror", LooseSource(edit, **style))
    for number in range(6):
        world.source.put(f"{number}.html", f"content of {number}")
    world.source.publish_file("hot.html", "changes often")
    assert world.pull().state is MirrorState.IN_SYNC
    return world


def listed(world: World[LooseSource], *, after: float) -> None:
    """List what changed, some seconds later."""
    world.clock.advance(seconds=after)
    world.source.lists.publish(
        to_microseconds(world.clock.now()), world.source.originals.contents()
    )
    world.source.show()


def begun_anew(world: World[LooseSource], *, after: float) -> None:
    """Write the Resource List again, and begin with an empty Change List."""
    world.clock.advance(seconds=after)
    now = to_microseconds(world.clock.now())
    world.source.lists.snapshot(now)
    world.source.lists.rotate(now)
    world.source.show()


def changed_unseen(world: World[LooseSource]) -> None:
    """One change, one creation and one deletion that only lists tell which are gone."""
    world.source.put("1.html", "changed unseen")
    world.source.put("new.html", "created unseen")
    world.source.remove("2.html")


def later(world: World[Any]) -> RunReport:
    """Pull an hour later."""
    world.clock.advance(seconds=3_600)
    return world.pull()


@pytest.mark.parametrize("gap", [0.02, 0.2, 0.5, 0.9, 1.5])
@pytest.mark.parametrize("lastmods", [True, False])
def test_what_changed_in_a_hole_of_less_than_a_second_arrives_though_a_hot_resource_is_listed(
    tmp_path: Path, gap: float, lastmods: bool
) -> None:
    world = loose_world(tmp_path, lastmods=lastmods)
    world.source.put("hot.html", "first")
    listed(world, after=60)
    assert world.pull().state is MirrorState.IN_SYNC
    changed_unseen(world)
    listed(world, after=gap / 3)
    begun_anew(world, after=gap / 3)
    world.source.put("hot.html", "second")
    listed(world, after=gap / 3)

    report = later(world)

    assert report.state is MirrorState.IN_SYNC
    assert world.in_sync()


def without_beginning(name: str, text: str) -> str:
    """Let the Change List not say when it begins."""
    return _FROM.sub("", text) if name == "changelist.xml" else text


def test_a_hole_is_found_as_well_behind_a_list_that_does_not_say_when_it_begins(
    tmp_path: Path,
) -> None:
    world = loose_world(tmp_path, edit=without_beginning)
    for round_ in range(3):
        world.source.put("hot.html", f"first of {round_}")
        listed(world, after=60)
        world.pull()
        world.source.put("1.html", f"changed unseen {round_}")
        world.source.put(f"new-{round_}.html", "created unseen")
        listed(world, after=0.1)
        begun_anew(world, after=0.1)
        world.source.put("hot.html", f"second of {round_}")
        listed(world, after=0.1)

        assert later(world).state is MirrorState.BEHIND  # there might be another hole
        assert world.in_sync()


@pytest.mark.founding("0.9 §2.2.2", "A Destination stays in sync by repeated baselines", "`pull`")
def test_a_source_that_only_writes_its_resource_list_again_is_followed(tmp_path: Path) -> None:
    world = loose_world(tmp_path)
    world.source.put("3.html", "listed as usual")
    listed(world, after=60)
    world.pull()
    for round_ in range(2):
        told = len(world.source.lists.open_list.entries)
        world.source.put("1.html", f"only in the Resource List {round_}")
        world.source.put(f"new-{round_}.html", "only in the Resource List")
        world.source.remove(f"{round_ + 4}.html")
        listed(world, after=60)
        del world.source.lists.open_list.entries[told:]
        world.source.snapshot()

        report = later(world)

        assert report.state is MirrorState.IN_SYNC
        assert world.in_sync()

    assert later(world).mode is Mode.UNCHANGED


def test_what_only_the_resource_list_has_arrives_though_a_later_change_is_listed(
    tmp_path: Path,
) -> None:
    world = loose_world(tmp_path, lastmods=False)
    world.source.put("1.html", "only in the Resource List")
    listed(world, after=60)
    world.source.lists.open_list.entries.clear()
    world.source.snapshot()
    world.source.put("3.html", "behind the Resource List")
    listed(world, after=60)

    assert later(world).state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_newer_resource_list_is_read_once(tmp_path: Path) -> None:
    world = loose_world(tmp_path)
    world.source.snapshot()

    assert later(world).mode is Mode.BASELINE
    assert later(world).mode is Mode.UNCHANGED
    assert world.fetcher.requests <= 3


class Shards:
    """A Source with one open Change List for each of two shards behind an index that stays."""

    def __init__(self, world: World[LooseSource]) -> None:
        self.world = world
        self.entries: dict[str, list[str]] = {"a": [], "b": []}
        self.start = world.clock.now().isoformat().replace("+00:00", "Z")
        self.show()

    def change(self, shard: str, name: str, text: str) -> None:
        self.world.clock.advance(seconds=60)
        self.world.source.put(name, text)
        now = self.world.clock.now().isoformat().replace("+00:00", "Z")
        md = f'<rs:md change="updated" datetime="{now}"/>'
        self.entries[shard].append(f"<url><loc>{BASE}{name}</loc>{md}</url>")
        self.show()

    def show(self) -> None:
        head = f'<rs:md capability="changelist" from="{self.start}"/>'
        parts = [f"<sitemap><loc>{FOLDER}{entry}.xml</loc></sitemap>" for entry in self.entries]
        self.write("changelist.xml", "sitemapindex", [head, *parts])
        for shard, entries in self.entries.items():
            self.write(f"{shard}.xml", "urlset", [head, *entries])

    def write(self, name: str, tag: str, lines: list[str]) -> None:
        text = written("", lines, tag)
        self.world.source.documents.write(f"resourcesync/{name}", [text.encode()])


def test_each_open_list_of_an_index_is_asked_though_the_index_stays_as_it_is(
    tmp_path: Path,
) -> None:
    world = loose_world(tmp_path)
    shards = Shards(world)
    world.pull()
    for round_ in range(2):
        shards.change("a", "1.html", f"first shard {round_}")
        shards.change("b", "2.html", f"second shard {round_}")
        assert world.pull().state is MirrorState.IN_SYNC
        assert world.in_sync()
        shards.change("a", "3.html", f"first shard alone {round_}")
        assert world.pull().state is MirrorState.IN_SYNC
        assert world.in_sync()


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_list_that_got_shorter_beside_a_newer_resource_list_is_in_step_with_the_next_pull(
    tmp_path: Path, kept: int
) -> None:
    world = loose_world(tmp_path)
    for number in range(3):
        world.source.put(f"{number}.html", f"changed {number}")
        listed(world, after=60)
    world.pull()
    for round_ in range(2):
        world.source.remove(f"{round_ + 3}.html")
        listed(world, after=60)
        del world.source.lists.open_list.entries[kept:]
        world.source.snapshot()

        report = later(world)

        assert report.state is MirrorState.IN_SYNC
        assert world.in_sync()
    assert world.asked_resources() == []


def test_a_list_that_lost_an_entry_and_has_a_newer_one_is_read_whole(tmp_path: Path) -> None:
    world = loose_world(tmp_path)
    for number in range(3):
        world.source.put(f"{number}.html", f"changed {number}")
        listed(world, after=60)
    world.pull()
    for round_ in range(2):
        world.source.remove(f"{round_ + 3}.html")
        world.source.snapshot()
        world.source.put("hot.html", f"newer {round_}")
        listed(world, after=60)
        entries = world.source.lists.open_list.entries
        entries[:] = [entry for entry in entries if "deleted" not in entry][1:]
        world.source.show()
        world.source.snapshot()

        assert later(world).state is MirrorState.IN_SYNC
        assert world.in_sync()


def test_an_old_copy_of_a_list_beside_an_old_resource_list_changes_nothing(tmp_path: Path) -> None:
    world = loose_world(tmp_path)
    old = world.source.honest(FOLDER + "changelist.xml").body
    world.source.put("1.html", "changed")
    world.source.put("new.html", "created")
    listed(world, after=60)
    world.pull()
    world.network.answers[FOLDER + "changelist.xml"] = Answer(body=old)
    held = world.files()

    with pytest.raises(Exception, match="stale copy"):
        later(world)

    assert world.files() == held


def test_a_resource_list_that_is_no_newer_is_sent_once_though_nobody_knows_its_version(
    tmp_path: Path,
) -> None:
    world = loose_world(tmp_path)
    begun_anew(world, after=0.3)  # a whole second may hide another list of the same moment
    later(world)
    unknown = '{"uri": "", "digest": "", "etag": "", "last_modified": ""}'
    with MirrorFolder(world.folder, world.clock) as mirror:
        assert mirror.state is not None
        mirror.state.commit(StateTransaction(notes={"list-head": unknown}))

    assert later(world).mode is Mode.UNCHANGED
    assert world.fetcher.received > 0
    assert later(world).mode is Mode.UNCHANGED
    assert world.fetcher.received == 0


@pytest.mark.parametrize("hashes", [True, False])
def test_a_list_with_the_newest_change_first_leads_to_no_second_fetch_of_what_is_here(
    tmp_path: Path, hashes: bool
) -> None:
    world = loose_world(tmp_path, hashes=hashes, times=False)
    for number in range(6):
        world.source.put(f"{number}.html", f"changed {number}")
        listed(world, after=60)
    later(world)
    for round_ in range(3):
        world.source.put("3.html", f"changed again {round_}")
        world.source.remove(f"{round_}.html")
        listed(world, after=60)
        entries = world.source.lists.open_list.entries
        entries[:] = [entry for entry in reversed(entries) if "deleted" not in entry]
        gone = [f"<loc>{BASE}{number}.html</loc>" for number in range(round_ + 1)]
        entries[:] = [entry for entry in entries if not any(loc in entry for loc in gone)]
        world.source.snapshot()

        report = later(world)

        assert report.state is MirrorState.IN_SYNC
        assert world.in_sync()
        # Of what had just been written when it was fetched its date proves nothing, until now.
        once = ["hot.html"] if round_ == 0 and not hashes else []
        assert world.asked_resources() == ["3.html", *once]


def test_a_list_with_the_newest_change_first_hides_no_content_that_it_lists_twice(
    tmp_path: Path,
) -> None:
    """Its first change of a resource is the copy; the standard demands the other order."""
    world = World(tmp_path / "mirror")
    world.source.publish_file("a.html", "first")
    world.pull()

    def turned(_: object) -> Answer:
        body, entry = (
            world.source.honest(CHANGE_LIST).body,
            re.compile(rb"<url>.*?</url>", re.DOTALL),
        )
        entries = entry.findall(body)
        return Answer(body=entry.sub(lambda _: entries.pop(), body))

    world.network.answers[CHANGE_LIST] = turned
    for text in ("second", "third", "fourth", "third", "fifth"):
        changed(world, "a.html", "b.html", text=text)

        assert world.pull().state is MirrorState.IN_SYNC
        assert world.in_sync()


@pytest.mark.parametrize("policy", ["auto", "never"])
def test_what_one_list_calls_deleted_and_the_other_has_goes_only_as_the_source_and_policy_say(
    tmp_path: Path, policy: str
) -> None:
    world = loose_world(tmp_path, times=False)
    world.source.put("hot.html", "changed")
    listed(world, after=60)
    later(world)
    deleted = '<rs:md change="deleted"/>'
    for name in ("1.html", "2.html"):  # the Resource List has both, the Source only the first
        entry = f"<url><loc>{BASE}{name}</loc>{deleted}</url>"
        world.source.lists.open_list.entries.append(entry)
    world.source.snapshot()
    world.source.remove("2.html")
    world.clock.advance(seconds=3_600)

    report = world.pull(delete=policy)

    assert BASE + "1.html" in world.files()
    assert (BASE + "2.html" in world.files()) is (policy == "never")
    assert report.state is MirrorState.BEHIND  # until the lists agree
