"""When lists are closed, dropped, archived and written anew; the steps that DSpace had."""

import pytest

from resourcesync.errors import ConfigurationError
from resourcesync.model.vocabulary import Dialect
from resourcesync.source import naming, rotation
from resourcesync.source.publication_settings import ChangeLists, Policy
from resourcesync.source.publisher import Publication
from tests.support.sources.publishing import (
    DyingDocuments,
    Killed,
    Reader,
    Source,
    files_of,
    header_of,
    names_of,
    parts_of,
    view,
)


def test_a_run_that_was_killed_in_the_first_publication_begins_no_list() -> None:
    source = Source(policy=Policy(change_lists=ChangeLists.PER_RUN))
    source.put("a")
    with pytest.raises(Killed):
        source.publish(DyingDocuments(source.documents, 4))

    source.publish()

    assert not [name for name in files_of(source) if name.startswith("changelist")]


@pytest.mark.founding("WWW §4", "arXiv: one Change List a day", "`-o rotate=1d`")
def test_an_open_list_is_closed_at_its_age_and_an_empty_one_never() -> None:
    source = Source(policy=Policy(rotate=6 * 3_600))
    source.put("a")
    source.publish()
    source.clock.advance(hours=48)
    assert source.publish() == Publication()  # nothing to close
    source.put("b")
    source.publish()
    changed = source.clock.now()
    assert not header_of(source, naming.CHANGE_LIST).is_index

    source.put("c")
    publication = source.publish()

    assert names_of(publication) == [
        "resourcesync/changelist-000001.xml",
        "resourcesync/changelist-000002.xml",
        naming.CHANGE_LIST,
    ]
    assert header_of(source, "resourcesync/changelist-000001.xml").until == changed
    assert header_of(source, "resourcesync/changelist-000002.xml").from_ == changed
    assert view(source) == source.truth()


def test_a_small_resource_list_is_written_again_with_each_change() -> None:
    source = Source(policy=Policy(rebase_up_to=3))
    source.put(*"abcd")
    source.publish()
    source.put("a", content="two")
    source.remove("b")

    source.publish()

    assert set(Reader(source.documents).view().resources) == set(source.truth())


def test_an_index_never_holds_more_lists_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "MOST_LISTS", 5)
    source = Source(policy=Policy(change_lists=ChangeLists.PER_RUN))
    source.put("a")
    source.publish()
    rebased = 0
    for number in range(40):
        source.clock.advance(hours=5)
        source.put("a", content=str(number))
        rebased += naming.RESOURCE_LIST in names_of(source.publish())
        assert view(source) == source.truth()
        assert len(parts_of(source, naming.CHANGE_LIST)) <= 5 + 6  # those of a day that is over
    assert 2 < rebased < 20


@pytest.mark.parametrize(
    "choice",
    [
        {"rotate": -1}, {"dialect": Dialect.P1}, {"dialect": Dialect.SITEMAP},
        {"dialect": Dialect.V0_9},
        {"dialect": Dialect.V0_5, "change_lists": ChangeLists.PER_RUN, "archive": 1},
    ],
)  # fmt: skip
def test_a_policy_that_cannot_be_is_refused(choice: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        Policy(**choice)  # type: ignore[arg-type]  # what a caller may get wrong
