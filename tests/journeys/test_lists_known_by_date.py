"""Lists that are unchanged by their Last-Modified alone are read without a condition once a day."""

from pathlib import Path

from resourcesync.ports import FetchRequest
from tests.support.worlds.frozen_site import DAY, HOUR, FrozenSite
from tests.support.worlds.network import Answer
from tests.support.worlds.world import World
from tests.support.worlds.written_source import WrittenList, WrittenSource, pull_at

OLD = {
    "etag": "",
    "last-modified": "Mon, 01 Jan 2024 00:00:00 GMT",
    "date": "Sat, 01 Jun 2024 00:00:00 GMT",
}


def test_a_sitemap_unchanged_by_its_date_alone_is_read_without_a_condition_once_a_day(
    tmp_path: Path,
) -> None:
    site = FrozenSite(5)
    world = World(tmp_path, site)
    world.pull()
    conditions: list[str] = []

    def dated(request: FetchRequest) -> Answer:
        conditions.append(request.last_modified)
        return Answer(body=site.serve(request).body, headers=OLD)

    world.network.answers[site.entry] = dated
    world.pull(mode="baseline")
    site.pages["new.html"] = b"new"
    site.dates["new.html"] = "2024-05-05"
    conditions.clear()
    world.clock.advance(seconds=HOUR)
    world.pull()
    assert conditions[-1] != ""
    assert not world.in_sync(), "the 304 rests on a date that did not move"
    world.clock.advance(seconds=DAY)
    world.pull()
    assert world.in_sync()


def test_a_resource_list_beside_change_lists_is_read_without_a_condition_once_a_day(
    tmp_path: Path,
) -> None:
    source = WrittenSource()
    source.written.lists = [WrittenList("changes-1.xml", from_=0)]
    world = World(tmp_path, source)

    def dated(request: FetchRequest) -> Answer:
        answer = source.serve(request)
        assert isinstance(answer, Answer)
        return Answer(body=answer.body, headers=OLD)

    world.network.answers[source.entry.replace("capabilitylist", "resourcelist")] = dated
    pull_at(world, HOUR)
    pull_at(world, 2 * HOUR)
    source.written.contents["new.html"] = "new"
    source.snapshot(3 * HOUR)
    pull_at(world, 4 * HOUR)
    assert not world.in_sync(), "the 304 rests on a date that did not move"
    pull_at(world, 4 * HOUR + DAY)
    assert world.in_sync()
