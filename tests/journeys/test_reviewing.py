"""Whoever reviews a pull sees every decision, though it is made once."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resourcesync.destination.planner import Delete, Fetch, Retain, ReviewedDecision
from resourcesync.destination.reports import Mode
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

Decide = Callable[[], Iterator[ReviewedDecision]]


class Seen:
    """What a review was shown."""

    def __init__(self) -> None:
        self.decisions: list[ReviewedDecision] = []
        self.same = 0

    def review(self, mode: Mode, decide: Decide, same: int) -> None:
        assert mode is Mode.BASELINE
        self.decisions, self.same = list(decide()), same
        assert list(decide()) == self.decisions


@pytest.fixture
def changed(world: World[PublishedSource]) -> World[PublishedSource]:
    """A Source of 41, of which one is new, one altered and two are gone since the last pull."""
    world.pull()
    world.source.put("objects/0001.html", "another")
    world.source.put("objects/new.html", "new")
    world.source.remove("objects/0002.html")
    world.source.remove("objects/0003.html")
    world.source.publish()
    return world


@pytest.mark.parametrize(("delete", "gone"), [("absent", Delete), ("never", Retain)])
def test_a_review_is_shown_what_the_plan_counts(
    changed: World[PublishedSource], delete: str, gone: type[Any]
) -> None:
    seen = Seen()

    changed.pull(mode="baseline", dry_run=True, delete=delete, review=seen.review)

    kinds = Counter(type(decision) for decision in seen.decisions)
    plan: Any = changed.told("plan")[0]
    assert kinds == {Fetch: plan["create"] + plan["update"], gone: 2}
    assert (plan["create"], plan["update"], seen.same) == (1, 1, plan["same"])
    copies = [decision.before for decision in seen.decisions if isinstance(decision, Fetch)]
    assert sum(copy is None for copy in copies) == 1
    uris = [
        decision.listed.uri if isinstance(decision, Fetch) else decision.copy.uri
        for decision in seen.decisions
    ]
    assert uris == sorted(uris)


def test_what_is_shown_is_what_was_counted_and_not_decided_anew(
    changed: World[PublishedSource],
) -> None:
    seen = Seen()

    def review(mode: Mode, decide: Decide, same: int) -> None:
        (changed.folder / "objects/0010.html").unlink()  # deciding anew would want it back
        seen.review(mode, decide, same)

    changed.pull(mode="baseline", dry_run=True, review=review)

    plan: Any = changed.told("plan")[0]
    fetches = [decision.listed.path for decision in seen.decisions if isinstance(decision, Fetch)]
    assert fetches == ["objects/0001.html", "objects/new.html"]
    assert len(fetches) == plan["create"] + plan["update"]
