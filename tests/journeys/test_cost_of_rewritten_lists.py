"""The cost of a Source that rewrites its Change List at each publication: baselines, documents."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from resourcesync.destination.reports import Mode
from tests.support.worlds.network import Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.rewriting import CHANGE_LIST, changed, merged, sliding
from tests.support.worlds.world import World

_ROUNDS = 48
_URL = re.compile(rb"<url>.*?</url>", re.DOTALL)
_DAY = timedelta(days=1)


def appended(world: World[PublishedSource]) -> Answer:
    return world.source.honest(CHANGE_LIST)


def newest_first(world: World[PublishedSource]) -> Answer:
    body = merged(world.source.honest(CHANGE_LIST).body)
    entries = _URL.findall(body)
    return Answer(body=_URL.sub(lambda _: entries.pop(), body))


def each_once(world: World[PublishedSource]) -> Answer:
    return Answer(body=merged(world.source.honest(CHANGE_LIST).body))


def last_day(world: World[PublishedSource]) -> Answer:
    begin = world.clock.now() - _DAY
    opened = world.source.honest(CHANGE_LIST).body
    whole = re.search(rb'from="([^"]*)"', opened)
    assert whole is not None
    if begin.strftime("%Y-%m-%dT%H:%M:%SZ") <= whole[1].decode():
        return Answer(body=opened)
    return sliding(world, begin)


@pytest.mark.night
@pytest.mark.parametrize(
    ("writes", "baselines", "documents"),
    [(appended, 0, 3.1), (newest_first, 47, 5.0), (each_once, 37, 4.6), (last_day, 0, 3.1)],
)
def test_a_list_that_is_rewritten_costs_documents_and_never_a_resource_twice(
    tmp_path: Path,
    writes: Callable[[World[PublishedSource]], Answer],
    baselines: int,
    documents: float,
) -> None:
    """Each hour two of forty resources change."""
    world = World(tmp_path / "mirror")
    for number in range(40):
        world.source.put(f"{number}.html", "as it was")
    world.source.publish()
    world.pull()
    world.network.answers[CHANGE_LIST] = lambda _: writes(world)
    requests = begun = 0
    for hour in range(_ROUNDS):
        world.clock.advance(hours=1)
        names = [f"{(hour * 7 + step) % 40}.html" for step in (0, 3)]
        changed(world, *names, text=f"{hour}")

        report = world.pull()

        assert world.in_sync()
        assert sorted(world.asked_resources()) == sorted(names)
        begun += report.mode is Mode.BASELINE
        requests += len(world.fetcher.asked) - len(names)
    assert (begun, round(requests / _ROUNDS, 1)) == (baselines, documents)
