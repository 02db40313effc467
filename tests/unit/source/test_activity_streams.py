"""The stream of activities that a publication writes (IIIF Change Discovery)."""

import copy
import json
import random
from collections.abc import Callable

import pytest

from resourcesync.adapters.in_memory import MemoryCatalogue, MemoryDocuments
from resourcesync.errors import ConfigurationError
from resourcesync.source import naming
from resourcesync.source.paging import PageLimits
from resourcesync.source.plan import Policy, PublicationStep
from resourcesync.source.publisher import Publication
from tests.support.documents.change_discovery import MUSTS, WrittenStream, faults
from tests.support.sources.publishing import (
    BASE,
    DOCUMENTS,
    DyingDocuments,
    Killed,
    Source,
    content_of,
    name_of,
    names_of,
)

MANIFESTS = ("Manifest",)


def source_of(*rules: str, size: int = 4) -> Source:
    return Source(policy=Policy(activities=rules or MANIFESTS), limits=PageLimits(max_entries=size))


def stream_of(source: Source) -> WrittenStream:
    return WrittenStream(
        f"{DOCUMENTS}activities.json", lambda uri: content_of(source.documents, name_of(uri))
    )


def kinds(stream: WrittenStream) -> list[tuple[str, str]]:
    return [
        (item["type"], item.get("object", {}).get("id", "").removeprefix(BASE))
        for item in stream.activities
    ]


def truth(source: Source) -> dict[str, str]:
    return dict.fromkeys(source.truth(), "Manifest")


def test_all_resources_are_created_and_then_each_change_is_an_activity() -> None:
    source = source_of()
    source.put("a", "b", "c")
    source.publish()
    assert kinds(stream_of(source)) == [("Create", "a"), ("Create", "b"), ("Create", "c")]

    source.put("b", "d", content="2")
    source.remove("a")
    publication = source.publish()

    stream = stream_of(source)
    assert sorted(kinds(stream)[3:]) == [("Create", "d"), ("Delete", "a"), ("Update", "b")]
    assert stream.objects() == truth(source)
    assert faults(stream) == []
    (written,) = [item for item in publication.written if item.name == naming.ACTIVITIES]
    assert (written.uri, written.capability, written.entries) == (
        f"{DOCUMENTS}activities.json",
        None,
        6,
    )
    assert source.publish() == Publication()


def test_an_activity_has_the_time_of_its_change_that_of_its_bytes_and_the_media_type() -> None:
    source = source_of()
    source.put("a.json")
    source.publish()
    (first,) = stream_of(source).activities
    assert first["endTime"] >= first["startTime"]
    assert first["object"]["id"] == BASE + "a.json"


def test_a_source_without_resources_has_a_stream_with_a_refresh() -> None:
    source = source_of()
    source.publish()
    assert kinds(stream_of(source)) == [("Refresh", "")]
    source.put("a")
    source.publish()
    assert kinds(stream_of(source)) == [("Refresh", ""), ("Create", "a")]
    assert faults(stream_of(source)) == []


def test_the_first_rule_that_matches_gives_the_type_and_others_are_left_out() -> None:
    source = source_of("Collection=*/top*", "Manifest=*.json")
    source.put("top.json", "a.json", "image.jpg")
    source.publish()
    source.remove("a.json", "image.jpg")
    source.publish()
    stream = stream_of(source)
    assert kinds(stream) == [
        *(("Create", "a.json"), ("Create", "top.json")),
        ("Delete", "a.json"),
    ]
    assert stream.objects() == {BASE + "top.json": "Collection"}
    assert stream.activities[-1]["object"]["type"] == "Manifest"


@pytest.mark.parametrize("rule", ["", "=*", "1", "Mani fest", "A" * 300, "Manifest=", "M\n"])
def test_what_is_no_type_is_refused(rule: str) -> None:
    with pytest.raises(ConfigurationError, match="is not the type of an object"):
        Policy(activities=(rule,))


def test_a_page_that_is_full_never_changes_and_leads_to_the_next() -> None:
    source, dice = source_of(), random.Random(7)
    closed: dict[str, bytes] = {}
    for round_ in range(40):
        for name in dice.sample("abcdefghij", 3):
            source.put(name, content=str(round_))
        if round_ % 3 == 2:
            source.remove(next(iter(source.truth())).removeprefix(BASE))
        source.publish()
        stream = stream_of(source)
        assert faults(stream) == []
        assert stream.objects() == truth(source)
        assert closed.items() <= stream.closed.items()
        closed = dict(stream.closed)
    assert len(closed) > 20


def test_a_page_is_bounded_in_bytes_too() -> None:
    source = Source(policy=Policy(activities=MANIFESTS), limits=PageLimits(max_bytes=3_000))
    source.put(*(f"{number:03}" for number in range(100)))
    source.publish()
    stream = stream_of(source)
    assert faults(stream) == []
    assert len(stream.activities) == 100
    assert all(len(text) < 4_000 for text in stream.closed.values())


def test_a_stream_without_a_further_change_is_not_written_again() -> None:
    source = source_of("Manifest=*.json")
    source.put("a.json", "b")
    source.publish()
    source.put("b", content="2")
    assert naming.ACTIVITIES not in names_of(source.publish())


@pytest.mark.parametrize("harm", ["lost", "altered"])
@pytest.mark.parametrize("name", ["activities-000001.json", "activities-000003.json"])
def test_a_page_that_is_lost_or_altered_leads_to_a_new_stream_with_a_refresh(
    name: str, harm: str
) -> None:
    source = source_of()
    source.put(*"abcdefghij")
    source.publish()
    assert len(stream_of(source).pages) == 3
    source.remove("a")
    if harm == "lost":
        source.documents.delete(naming.FOLDER + name)
    else:
        source.documents.write(naming.FOLDER + name, [b"?"])
    source.publish()
    stream = stream_of(source)
    assert kinds(stream)[:2] == [("Refresh", ""), ("Update", "b")]
    assert stream.objects() == truth(source)
    assert faults(stream) == []
    assert stream.pages[0]["id"].endswith("activities-000004.json")


def test_a_collection_that_is_lost_or_altered_is_written_again() -> None:
    source = source_of()
    source.put("a")
    source.publish()
    before = source.contents()
    for harm in (lambda: source.documents.delete(naming.ACTIVITIES), None):
        if harm is None:
            source.documents.write(naming.ACTIVITIES, [b"?"])
        else:
            harm()
        source.publish()
        assert source.contents() == before


def start_over(source: Source) -> None:
    source.publish(step=PublicationStep.INITIALISE)


def change_types(source: Source) -> None:
    source.policy = Policy(activities=("Collection",))
    source.publish()


def lose_the_catalogue(source: Source) -> None:
    source.catalogue = MemoryCatalogue()
    source.publish()


@pytest.mark.parametrize("act", [start_over, change_types, lose_the_catalogue])
def test_a_stream_that_starts_over_has_new_pages(act: Callable[[Source], None]) -> None:
    source = source_of()
    source.put("a", "b")
    source.publish()
    source.put("b", content="2")
    act(source)
    stream = stream_of(source)
    assert kinds(stream) == [("Refresh", ""), ("Update", "a"), ("Update", "b")]
    assert stream.objects().keys() == truth(source).keys()
    assert stream.pages[0]["id"].endswith("-000002.json")
    source.clock.advance(hours=48)
    source.publish()
    assert naming.activity_page(1) not in source.contents()


def test_a_stream_that_is_switched_off_goes_and_one_that_is_switched_on_later_has_all() -> None:
    source = source_of()
    source.put("a", "b")
    source.publish()
    source.policy = Policy()
    source.put("b", content="2")
    source.publish()
    assert naming.ACTIVITIES not in source.contents()
    source.clock.advance(hours=48)
    source.remove("a")
    source.publish()
    assert not any("activities" in name for name in source.contents())
    source.policy = Policy(activities=MANIFESTS)
    source.publish()
    assert kinds(stream_of(source)) == [("Create", "b")]


def test_a_stream_goes_on_after_the_log_was_cut() -> None:
    source = source_of()
    source.policy = Policy(activities=MANIFESTS, keep=1, rotate=1, rebase=1)
    source.put("a")
    for round_ in range(12):
        source.put("a", content=str(round_))
        source.clock.advance(hours=72)
        source.publish()
    stream = stream_of(source)
    assert kinds(stream) == [("Create", "a"), *[("Update", "a")] * 11]
    assert faults(stream) == []


def test_a_publication_that_is_killed_anywhere_leaves_a_stream_that_the_next_one_continues() -> (
    None
):
    source = source_of()
    source.put(*"abcdef")
    source.publish()
    ended = 0
    for step in range(60):
        trial = copy.deepcopy(source)
        trial.put("b", "x", "y", "z", "v", content="2")
        trial.remove("a")
        closed = dict(stream_of(trial).closed)
        assert isinstance(trial.documents, MemoryDocuments)
        try:
            trial.publish(DyingDocuments(trial.documents, step))
            ended += 1
        except Killed:
            between = stream_of(trial)
            assert faults(between) in ([], OPEN_FAULTS)
            assert closed.items() <= between.closed.items()
        trial.put("w")
        trial.publish()
        stream = stream_of(trial)
        assert faults(stream) == []
        assert closed.items() <= stream.closed.items()
        assert stream.objects() == truth(trial)
        assert ("Refresh", "") not in kinds(stream)
        if ended:
            return
    raise AssertionError("no publication ended")


OPEN_FAULTS = [
    "3.1 totalItems is that of all activities",
    "3.2 next leads to the next page, and the last page has none",
]
"""What may be seen between the page and the collection: more than the collection says."""


@pytest.mark.parametrize("demand", MUSTS)
def test_the_check_of_a_demand_fails_where_it_is_not_met(demand: str) -> None:
    source = source_of()
    source.put(*"abcdef")
    source.publish()
    broken = [breaks for breaks in BREAKS if demand in faults(broken_stream(source, breaks))]
    assert broken, demand


def broken_stream(source: Source, breaks: tuple[str, str, object]) -> WrittenStream:
    which, path, value = breaks
    stream = stream_of(source)
    if which == "pages":
        stream.pages = []
        return stream
    if which == "context":
        stream.collection = {"id": stream.uri} | stream.collection
        return stream
    found = {
        "collection": stream.collection,
        "page": stream.pages[1],
        "activity": stream.pages[1]["orderedItems"][0],
        "object": stream.pages[1]["orderedItems"][0]["object"],
    }[which]
    found[path] = json.loads(json.dumps(value))
    return stream


BREAKS: list[tuple[str, str, object]] = [
    *(("pages", "", None), ("context", "", None)),
    *(("collection", "id", "x"), ("collection", "type", "Collection")),
    *(("collection", "totalItems", "7"), ("collection", "totalItems", 5)),
    *(("collection", "first", {}), ("collection", "last", "x")),
    ("collection", "first", {"id": "https://x/", "type": "OrderedCollectionPage"}),
    *(("page", "id", "x"), ("page", "type", "x"), ("page", "partOf", {})),
    *(("page", "startIndex", 9), ("page", "next", {"id": "x"}), ("page", "prev", {})),
    *(("page", "orderedItems", []), ("activity", "type", "Change")),
    *(("activity", "endTime", "2026-01-01"), ("activity", "endTime", "1999-01-01T00:00:00Z")),
    *(("activity", "startTime", "2999-01-01T00:00:00Z"), ("object", "id", "x")),
]
