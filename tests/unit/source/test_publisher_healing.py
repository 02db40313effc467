"""Publishing that was disturbed: what was lost, altered, or interrupted is healed."""

import copy
from collections.abc import Iterator, Mapping

import pytest

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import StateError
from resourcesync.source import naming
from resourcesync.source.paging import PageLimits
from resourcesync.source.publisher import Publication
from tests.support.sources.publishing import (
    SMALL,
    DyingDocuments,
    Killed,
    Reader,
    Source,
    header_of,
    names_of,
    split_source,
    view,
)


@pytest.mark.parametrize("number", range(9))
@pytest.mark.parametrize("harm", ["lost", "altered"])
def test_what_is_lost_or_altered_is_written_again(number: int, harm: str) -> None:
    source = split_source()
    before = source.contents()
    assert len(before) == 9
    name = list(before)[number]
    if harm == "lost":
        source.documents.delete(name)
    else:
        source.documents.write(name, [b"?"])

    publication = source.publish()

    if "resourcelist" in name:
        assert naming.RESOURCE_LIST in names_of(publication)
    else:
        assert names_of(publication) == [name]
        assert source.contents() == before
    assert view(source) == source.truth()
    assert source.publish() == Publication()


def test_a_lost_resource_list_is_replaced_by_one_of_the_present_state() -> None:
    source = split_source()
    old = header_of(source, naming.RESOURCE_LIST).at
    source.documents.delete(naming.RESOURCE_LIST)
    source.put("z")

    publication = source.publish()

    found = Reader(source.documents).view()
    assert publication.created == 1
    assert len(found.resources) == 12
    assert old is not None
    assert found.at > old
    assert found.start == old  # the Change Lists still reach back to the old one


def test_documents_that_were_copied_with_other_times_are_recognised_by_their_bytes() -> None:
    source = split_source()
    for name, content in source.contents().items():
        source.documents.write(name, [content])  # a new signature
    before = source.contents()

    assert source.publish() == Publication()
    assert source.contents() == before
    assert source.publish() == Publication()


def test_a_catalogue_that_was_started_anew_never_reuses_a_name() -> None:
    source = split_source()
    before = source.contents()
    fresh = Source(limits=SMALL, documents=source.documents, clock=source.clock)
    fresh.put(*"abcdefgh")

    fresh.publish()
    fresh.put(*"pqrs")
    publication = fresh.publish()

    assert names_of(publication)[0] == "resourcesync/changelist-000003.xml"
    after = fresh.contents()
    assert all(after[name] == before[name] for name in before if naming.is_replaceable(name))
    assert view(fresh) == fresh.truth()


def edits(source: Source) -> Iterator[None]:
    """What happens to a Source over time; with limits of 3 every kind of step is among them."""
    source.put(*"abcdefg")
    yield  # parts and an index
    source.put("h", "i")
    yield  # the open list grows
    source.put("j", "a", content="anew")
    source.remove("b")
    yield  # the first split
    source.put(*"klmnopq")
    yield  # several more at once
    source.documents.delete(naming.RESOURCE_LIST)
    source.put("r")
    yield  # the Resource List is lost
    source.clock.advance(hours=25)
    yield  # old parts are removed


def run(source: Source, rounds: int) -> None:
    for number, _ in enumerate(edits(source), start=1):
        if number == rounds:
            return
        source.publish()


@pytest.mark.parametrize("rounds", range(1, 7))
@pytest.mark.parametrize("meanwhile", ["quiet", "edited", "roomier"])
def test_a_publisher_killed_at_any_step_is_healed_by_the_next(rounds: int, meanwhile: str) -> None:
    before = Source(limits=SMALL)
    run(before, rounds)
    undisturbed = copy.deepcopy(before, {id(before.catalogue): before.catalogue.clone()})
    undisturbed.publish()
    outcomes = []
    for steps in range(100):
        source = copy.deepcopy(before, {id(before.catalogue): before.catalogue.clone()})
        dying = DyingDocuments(source.documents, steps)
        try:
            source.publish(dying)
        except Killed:
            outcomes.append("killed")
        else:
            break
        heads = (naming.DESCRIPTION, naming.RESOURCE_LIST)  # round 5 begins with one lost
        if all(source.documents.signature(name) is not None for name in heads):
            Reader(source.documents).view()
        if meanwhile == "edited":
            source.put("s", "t", "u", "v", "c", content="meanwhile")
            source.remove("d")
            source.scan()
        if meanwhile == "roomier":
            source.limits = PageLimits()

        source.publish_only()

        assert view(source) == source.truth(), steps
        if meanwhile == "quiet":
            assert source.contents() == undisturbed.contents()
        assert source.publish_only().written == ()
    assert len(outcomes) >= 3


class Forgetful(SourceCatalogue):
    """A catalogue whose process is killed when it takes its n-th note from now on."""

    kills_in = 0

    def write_notes(self, notes: Mapping[str, str]) -> None:
        self.kills_in -= 1
        if self.kills_in == 0:
            raise Killed
        super().write_notes(notes)


@pytest.mark.parametrize("kills_in", [1, 2])
@pytest.mark.parametrize("rounds", range(1, 6))
def test_a_publisher_killed_while_it_takes_notes_is_healed_by_the_next(
    rounds: int, kills_in: int
) -> None:
    catalogue = Forgetful()
    source = Source(limits=SMALL, catalogue=catalogue)
    run(source, rounds)
    catalogue.kills_in = kills_in
    with pytest.raises(Killed):
        source.publish()

    source.put("late")
    source.publish()

    assert view(source) == source.truth()
    assert source.publish() == Publication()


@pytest.mark.parametrize("key", ["publication-plan", "publication-record"])
@pytest.mark.parametrize("text", ["", "[]", "{}", '{"closed": 1}', '{"documents": {"a": 1}}'])
def test_damaged_bookkeeping_is_told_of_and_changes_nothing(key: str, text: str) -> None:
    source = split_source()
    before = source.contents()
    source.catalogue.write_notes({key: text})

    with pytest.raises(StateError, match="damaged"):
        source.publish_only()

    assert source.contents() == before
