"""A small Resource List is written again with each change, and leads to its Change List."""

import contextlib

import pytest

from resourcesync.source.paging import PageLimits
from resourcesync.source.publication_settings import Policy
from tests.support.sources.publishing import DyingDocuments, Killed, Reader, Source, view

SMALL = Policy(rebase_up_to=3)


def published(policy: Policy, *names: str, most: int = 50_000) -> Source:
    source = Source(policy=policy, limits=PageLimits(max_entries=most))
    source.put(*names)
    source.publish()
    return source


def listed(source: Source) -> set[str]:
    """The resources of the Resource List alone."""
    return set(Reader(source.documents).view().resources)


@pytest.mark.parametrize("steps", range(12))
def test_a_list_with_each_change_survives_every_death_of_the_publisher(steps: int) -> None:
    source = published(SMALL, "a", "b")
    before = source.truth()
    source.put("a", content="two")
    source.remove("b")
    with contextlib.suppress(Killed):
        source.publish(DyingDocuments(source.documents, steps))
    assert view(source) in (before, source.truth())

    source.publish()

    assert view(source) == source.truth()
    assert listed(source) == set(source.truth())
