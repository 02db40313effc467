"""Copies of an aggregator are compared with their originals, which its entries link to (14.8)."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.source.links import LinkedOriginals, parse_rule
from resourcesync.source.scan import scan
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

ORIGIN = "https://origin.example/"


class Aggregator(PublishedSource):
    """A Source whose resources are copies, with links to their originals."""

    def scan(self, *, after: float = 60) -> None:
        self.clock.advance(seconds=after)
        rule = parse_rule(f"via:{ORIGIN}{{path}} only=*.txt")
        linked = LinkedOriginals(self.originals, [rule], BASE)
        scan(linked, self.catalogue, self.clock.now())


@pytest.mark.founding(
    "0.9 §8.7",
    "Copies of an aggregator are verified with the original Source",
    "`audit --method origin`",
)
def test_a_copy_that_is_not_as_its_original_is_found_and_the_mirror_stays_as_listed(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, Aggregator())
    for name in ("same.txt", "older.txt", "gone.txt", "own.html"):
        world.source.put(name, f"content of {name}")
    world.source.publish()
    assert world.pull().state is MirrorState.IN_SYNC
    world.network.answers |= {
        f"{ORIGIN}same.txt": Answer(body=b"content of same.txt"),
        f"{ORIGIN}older.txt": Answer(body=b"another edition"),
        f"{ORIGIN}gone.txt": Answer(status=404),
    }

    report = world.audit(method="origin")

    assert {found.uri.removeprefix(BASE): found.reason for found in report.findings} == {
        "older.txt": f"the original {ORIGIN}older.txt has other bytes",
        "gone.txt": f"the original {ORIGIN}gone.txt: 404",
    }
    assert not report.in_sync
    assert report.accurate == 2
    assert world.status().state is MirrorState.IN_SYNC
    (warning,) = world.told("warning")
    assert (warning["code"], str(warning["message"])[:6]) == ("no-original", "1 of 4")
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.asked_resources() == []
    assert world.audit().in_sync
