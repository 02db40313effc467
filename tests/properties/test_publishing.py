"""Laws of publishing: what a Destination reconstructs from the documents is what there is."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.adapters.files import FileSelection, FileTreeOriginals
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.source.paging import PageLimits
from resourcesync.source.scan import scan
from tests.support.in_memory import ManualClock
from tests.support.sources.publishing import BASE, DyingDocuments, Killed, Reader, Source, digests

NAMES = st.sampled_from([*"abcdefgh", "a/b", "a-b", "%C3%A9", "~"])
EDIT = st.one_of(
    st.tuples(st.just("put"), NAMES, st.sampled_from(["", "1", "2"])),
    st.tuples(st.just("remove"), NAMES, st.just("")),
    st.tuples(st.just("back"), st.just(""), st.just("")),
    st.tuples(
        st.just("lose"), st.sampled_from(["resourcelist", "changelist", "list", ""]), st.just("")
    ),
)
ROUND = st.tuples(st.lists(EDIT, max_size=6), st.integers(0, 20))
LIMITS = st.builds(
    PageLimits, max_entries=st.integers(1, 6), max_bytes=st.sampled_from([1, 1_000, 1_500, 50_000])
)


def apply(source: Source, edits: list[tuple[str, str, str]]) -> None:
    for kind, name, content in edits:
        match kind:
            case "put":
                source.put(name, content=content)
            case "remove":
                source.remove(name)
            case "back":
                source.clock.advance(hours=-1)
                source.clock.set(source.clock.now().replace(hour=0))
            case _:
                for document in [item for item in source.documents.names() if name in item][:2]:
                    source.documents.delete(document)


@pytest.mark.conformance("CA09", "CH14")
@given(st.lists(ROUND, min_size=1, max_size=6), LIMITS)
def test_lists_and_changes_give_the_originals_whatever_happened(
    rounds: list[tuple[list[tuple[str, str, str]], int]], limits: PageLimits
) -> None:
    source = Source(limits=limits)
    for edits, steps in rounds:
        apply(source, edits)
        try:
            source.publish(DyingDocuments(source.documents, steps))
        except Killed:
            continue
        assert Reader(source.documents).view().current() == source.truth()

    source.publish()

    assert Reader(source.documents).view().current() == source.truth()
    assert source.publish().written == ()


@given(st.lists(st.lists(EDIT.filter(lambda edit: edit[0] != "lose"), max_size=6), max_size=6))
def test_a_mirror_that_polls_the_change_list_stays_in_step(
    rounds: list[list[tuple[str, str, str]]],
) -> None:
    source = Source(limits=PageLimits(max_entries=4))
    source.put("a", "b", "c")
    source.publish()
    first = Reader(source.documents).view()
    mirror, cursor = first.current(), first.at

    for edits in rounds:
        apply(source, edits)
        publication = source.publish()
        changes = Reader(source.documents).view().changes
        fresh = [change for change in changes if change.time is not None and change.time > cursor]
        counts = (publication.created, publication.updated, publication.deleted)
        kinds = [change.kind for change in fresh]
        assert counts == tuple(kinds.count(kind) for kind in ChangeKind)
        for change in fresh:
            if change.kind is ChangeKind.DELETED:
                del mirror[change.uri]
            else:
                mirror[change.uri] = change.resource.digests[0].value
            assert change.time is not None
            cursor = change.time

        assert mirror == source.truth()


FILE_NAMES = st.binary(min_size=1, max_size=12).filter(
    lambda name: not set(name) & set(b"/\0") and name not in {b".", b".."}
)
TREES = st.dictionaries(
    st.lists(FILE_NAMES, min_size=1, max_size=3).map(tuple), st.binary(max_size=20), max_size=8
)


@settings(max_examples=30)
@given(TREES, TREES)
def test_any_tree_of_files_is_published_exactly(
    before: dict[tuple[bytes, ...], bytes], after: dict[tuple[bytes, ...], bytes]
) -> None:
    source = Source(limits=PageLimits(max_entries=4))
    for tree in (before, after):
        with tempfile.TemporaryDirectory() as folder:
            plant(folder.encode(), tree)
            originals = FileTreeOriginals(
                Path(folder), BASE, clock=ManualClock(), selection=FileSelection(hidden=True)
            )
            scan(originals, source.catalogue, source.clock.now())
            truth = digests(originals)
            locations = [originals.locate(uri) for uri in truth]
        assert None not in locations
        assert len(set(locations)) == len(truth)
        source.publish_only()

        assert Reader(source.documents).view().current() == truth


def plant(root: bytes, tree: dict[tuple[bytes, ...], bytes]) -> None:
    """Write the files, except those whose folder or name is taken by another."""
    for names, content in tree.items():
        path = Path((root + b"/" + b"/".join(names)).decode("utf-8", "surrogateescape"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
