"""Laws of stable pages: a Resource List made out of the last one says what one made anew says."""

import json
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.catalogue.database import CatalogueSnapshot, SourceCatalogue
from resourcesync.documents import reader
from resourcesync.errors import StorageError
from resourcesync.model.entries import Entry, Header, Link, Part, Resource
from resourcesync.source import naming
from resourcesync.source.paging import PageLimits
from resourcesync.source.publisher import ListPublisher
from tests.support.sources.opened import open_source
from tests.support.sources.publishing import BASE, Source, content_of, name_of

FOREIGN = '<y xmlns="urn:x"><url><loc>z</loc></url>\n<url><loc>b</loc></url></y>'
NAMES = st.one_of(
    st.integers(0, 60).map("n{:02}".format),
    st.sampled_from(["a&b", "<url><loc>", "é", "\U0001f600", "~", "A"]),
)
WHAT = st.sampled_from(["gone", "plain", "plain", "plain", "linked", "foreign"])
EDITS = st.dictionaries(NAMES, st.tuples(WHAT, st.integers(0, 10**6)), max_size=30)
HARM = st.sampled_from(["", "", "", "lose", "alter", "forget"])
ROUNDS = st.lists(st.tuples(EDITS, HARM, st.integers(0, 5)), min_size=1, max_size=5)
LIMITS = st.builds(
    PageLimits,
    max_entries=st.integers(1, 30),
    max_bytes=st.sampled_from([600, 1_500, 5_000, 50_000]),
)


def resource(name: str, what: str, length: int) -> Resource:
    made = Resource(uri=BASE + name, length=length)
    if what == "linked":
        return replace(made, links=(Link(rel="describedby", href="https://h/<url><loc>"),))
    return replace(made, foreign=(FOREIGN,)) if what == "foreign" else made


def record(source: Source, edits: dict[str, tuple[str, int]]) -> None:
    source.clock.advance(seconds=60)
    held = {uri for uri, _ in source.catalogue.fingerprints()}
    with source.catalogue.record(source.clock.now()) as recording:
        recording.touched(resource("always", "plain", 1), "")
        for number, (name, (what, length)) in enumerate(edits.items()):
            made = resource(name, what, length)
            if what == "gone":
                if made.uri in held:
                    recording.deleted(made)
            elif number % 3 == 0:
                recording.touched(made, "")
            elif made.uri in held:
                recording.updated(made, "")
            else:
                recording.created(made, "")


def rebase(source: Source) -> None:
    opened_source = open_source(
        source.catalogue, source.documents, source.clock, BASE, source.limits
    )
    ListPublisher(opened_source).publish(anew=True)


def pages(source: Source) -> list[tuple[str, list[Resource]]]:
    """The documents of the Resource List, each with its entries; the limits are kept."""
    header, entries, _ = opened(source, naming.RESOURCE_LIST)
    names = [naming.RESOURCE_LIST]
    if header.is_index:
        names = [name_of(part.uri) for part in entries if isinstance(part, Part)]
        assert len(names) == len(entries) > 1
    found = []
    for name in names:
        page, entries, size = opened(source, name)
        assert page.at == header.at
        listed = [entry for entry in entries if isinstance(entry, Resource)]
        assert len(listed) == len(entries) > 0
        assert source.limits.allow(len(listed), size)
        found.append((name, listed))
    return found


def opened(source: Source, name: str) -> tuple[Header, list[Entry], int]:
    content = content_of(source.documents, name)
    document = reader.read(BytesIO(content), uri=name)
    entries = list(document.entries())
    assert document.refused == 0
    return document.header, entries, len(content)


def listed(source: Source) -> list[Resource]:
    return [resource for _, page in pages(source) for resource in page]


def held(source: Source) -> list[Resource]:
    with source.catalogue.snapshot() as snapshot:
        return list(snapshot.resources())


def harm(source: Source, how: str, number: int) -> None:
    names = [name for name, _ in pages(source)]
    name = names[number % len(names)]
    if how == "lose":
        source.documents.delete(name)
    elif how == "alter":
        content = content_of(source.documents, name)
        source.documents.write(name, [content.replace(b"length", b"LENGTH")])
    elif how == "forget":  # as a catalogue that was written before pages were known
        text = source.catalogue.note("publication-record")
        assert text is not None
        record = json.loads(text)
        for known in record["documents"].values():
            known.pop("start")
            known.pop("is_plain")
        source.catalogue.write_notes({"publication-record": json.dumps(record)})


@given(ROUNDS, LIMITS)
def test_a_list_made_out_of_the_last_one_says_what_the_catalogue_says(
    rounds: list[tuple[dict[str, tuple[str, int]], str, int]], limits: PageLimits
) -> None:
    source = Source(limits=limits)
    for edits, how, number in rounds:
        record(source, edits)
        rebase(source)
        assert listed(source) == held(source)
        harm(source, how, number)

    rebase(source)

    assert listed(source) == held(source)


class Watched(SourceCatalogue):
    """A catalogue that notes which ranges of resources were read to be written."""

    def __init__(self) -> None:
        super().__init__()
        self.ranges: list[tuple[str, str | None]] = []

    @contextmanager
    def snapshot(self) -> Iterator["WatchedSnapshot"]:  # type: ignore[override]  # acts as one
        with super().snapshot() as snapshot:
            yield WatchedSnapshot(snapshot, self.ranges)


class WatchedSnapshot:
    def __init__(self, snapshot: CatalogueSnapshot, ranges: list[tuple[str, str | None]]) -> None:
        self._snapshot = snapshot
        self._ranges = ranges

    def __getattr__(self, name: str) -> Any:
        return getattr(self._snapshot, name)

    def batches(self, start: str = "", end: str | None = None) -> Iterator[Sequence[Resource]]:
        self._ranges.append((start, end))
        return self._snapshot.batches(start, end)


def filled(limits: PageLimits, *names: str) -> tuple[Source, Watched]:
    catalogue = Watched()
    source = Source(limits=limits, catalogue=catalogue)
    record(source, dict.fromkeys(names, ("plain", 5)))
    rebase(source)
    catalogue.ranges.clear()
    return source, catalogue


FORTY = [f"n{number:02}" for number in range(40)]


@pytest.mark.founding(
    "DIT-ES: General",
    "One page of a Resource List is generated again instead of all",
    "`publish elasticsearch:URL`",
)
def test_only_edited_entries_are_read_from_the_catalogue() -> None:
    source, catalogue = filled(PageLimits(max_entries=10), *FORTY)
    before = dict(pages(source))

    record(source, {"n05": ("plain", 6), "n17": ("gone", 0), "n25x": ("plain", 1)})
    rebase(source)

    assert catalogue.ranges == []
    assert listed(source) == held(source)
    assert not before.keys() & dict(pages(source)).keys()  # names never mean two things


def test_a_page_that_overflows_becomes_two_halves_and_the_others_stay() -> None:
    source, catalogue = filled(PageLimits(max_entries=10), *FORTY)

    record(source, {"n15x": ("plain", 1)})
    rebase(source)

    assert [len(page) for _, page in pages(source)] == [10, 6, 5, 10, 10, 1]
    assert catalogue.ranges == []


def test_an_entry_that_nobody_could_read_is_not_put_among_the_others() -> None:
    source, _ = filled(PageLimits(max_entries=10), *FORTY)
    before = pages(source)
    record(source, {"n05\x80": ("plain", 1)})

    with pytest.raises(StorageError) as caught:
        rebase(source)

    assert caught.value.code == "read-back"
    assert pages(source) == before


def test_only_the_page_that_was_harmed_is_formatted_anew() -> None:
    source, catalogue = filled(PageLimits(max_entries=10), *FORTY)
    (_, first), (name, second), (_, third), *_ = pages(source)
    content = content_of(source.documents, name)
    source.documents.write(name, [content.replace(b'length="5"', b'length="6"')])

    rebase(source)

    assert catalogue.ranges == [(second[0].uri, third[0].uri)]
    assert first[0].uri < second[0].uri
    assert listed(source) == held(source)


def test_edits_are_forgotten_when_a_list_has_them_and_not_before() -> None:
    source, catalogue = filled(PageLimits(), "a", "b")
    record(source, {"a": ("plain", 9)})
    source.publish_only()
    with catalogue.snapshot() as snapshot:
        assert BASE + "a" in [uri for uri, _ in snapshot.edits()]

    rebase(source)

    with catalogue.snapshot() as snapshot:
        assert list(snapshot.edits()) == []
    assert listed(source) == held(source)


def test_a_page_whose_name_is_taken_again_at_the_same_moment_is_not_believed() -> None:
    source, _ = filled(PageLimits(max_entries=10), *FORTY)
    source.documents.delete(next(name for name, _ in pages(source)))
    source.limits = PageLimits(max_entries=4)

    source.publish_only()

    assert listed(source) == held(source)


def test_a_page_that_somebody_made_endless_is_not_read_to_its_end() -> None:
    source, catalogue = filled(PageLimits(max_entries=10), *FORTY)
    (name, _), *_ = pages(source)
    content = content_of(source.documents, name)
    source.documents.write(name, [content, b" " * 10_000_000])
    record(source, {"n05": ("plain", 6)})

    tracemalloc.start()
    rebase(source)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert listed(source) == held(source)
    assert len(catalogue.ranges) == 1
    assert peak < 5_000_000
