"""Laws of publishing: a Destination finds the truth in the documents, and always a way on."""

import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.adapters.files import FileSelection, FileTreeOriginals
from resourcesync.model.timestamps import from_microseconds
from resourcesync.source.paging import PageLimits
from resourcesync.source.publication_settings import ChangeLists, Policy
from resourcesync.source.rotation import GRACE
from resourcesync.source.scan_for_changes import scan
from resourcesync.source.stored_plan import PublicationStep
from tests.support.in_memory import ManualClock
from tests.support.sources.publishing import (
    BASE,
    DyingDocuments,
    Killed,
    Reader,
    Source,
    View,
    digests,
)

AGE = st.sampled_from([0, 3_600, 5 * 3_600, 30 * 3_600])
POLICIES = st.builds(
    Policy,
    change_lists=st.sampled_from(ChangeLists),
    rotate=AGE,
    keep=AGE,
    rebase_every=AGE,
    archive=AGE,
    sitemap=st.booleans(),
    rebase_up_to=st.sampled_from([0, 3]),
)
NAMES = st.sampled_from([*"abcdefgh", "a/b", "a-b", "%C3%A9", "~"])
EDITS = st.lists(st.tuples(NAMES, st.sampled_from(["", "1", "2", "gone"])), max_size=6)
HOURS = st.sampled_from([0, 1, 7, 26, -3])
"""Hours that pass, or that the clock is set back."""
LOST = st.sampled_from(["", "", "", "resourcelist", "changelist", "list"])
"""Documents of which two are lost before a run."""
ROUNDS = st.lists(
    st.tuples(
        EDITS,
        HOURS,
        st.sampled_from(
            [PublicationStep.DUE, PublicationStep.DUE, PublicationStep.DUE, *PublicationStep]
        ),
        st.integers(0, 30),  # where it is killed, if it comes that far
    ),
    min_size=1,
    max_size=8,
)
LIMITS = st.builds(
    PageLimits,
    max_entries=st.sampled_from([1, 2, 3, 6, 50]),
    max_bytes=st.sampled_from([1, 1_000, 1_500, 50_000]),
)


def apply(source: Source, edits: list[tuple[str, str]], hours: int) -> None:
    source.clock.set(source.clock.now() + timedelta(hours=hours))
    for name, content in edits:
        if content == "gone":
            source.remove(name)
        else:
            source.put(name, content=content)


@pytest.mark.conformance("CA09", "CH14")
@settings(max_examples=75)
@given(ROUNDS, POLICIES, LIMITS, LOST)
def test_a_reader_finds_the_truth_after_every_run_and_a_consistent_set_after_every_kill(
    rounds: list[tuple[list[tuple[str, str]], int, PublicationStep, int]],
    policy: Policy,
    limits: PageLimits,
    lost: str,
) -> None:
    source = Source(limits=limits, policy=policy)
    source.put("a", "b")
    source.publish()
    for edits, hours, step, steps in rounds:
        apply(source, edits, hours)
        gone = [name for name in source.documents.names() if lost and lost in name][:2]
        for name in gone:
            source.documents.delete(name)
        try:
            source.publish(DyingDocuments(source.documents, steps), step)
        except Killed:
            if not gone:
                Reader(source.documents).view().current()
            source.publish()
        assert Reader(source.documents).view().current() == source.truth()
    if not policy.is_per_run and not policy.rebase_every and not policy.rotate:
        assert source.publish().written == ()


@settings(max_examples=30)
@given(ROUNDS, POLICIES, LIMITS)
def test_who_read_a_resource_list_within_a_day_finds_every_change_since(
    rounds: list[tuple[list[tuple[str, str]], int, PublicationStep, int]],
    policy: Policy,
    limits: PageLimits,
) -> None:
    source = Source(limits=limits, policy=policy)
    source.put("a", "b")
    source.publish()
    views: list[tuple[datetime, View]] = []
    for edits, hours, step, _ in rounds:
        if step is PublicationStep.INITIALISE:
            views.clear()  # it starts over: everybody has to
        apply(source, edits, max(hours, 0))
        source.publish(step=step)
        now = source.clock.now()
        found = Reader(source.documents).view()
        views.append((now, found))
        recent = from_microseconds(0) + (now - from_microseconds(GRACE))
        for read, view in views:
            if read >= recent:
                assert found.start <= view.at


@settings(max_examples=30)
@given(ROUNDS, st.sampled_from(ChangeLists), LIMITS)
def test_a_change_list_that_was_closed_is_never_another(
    rounds: list[tuple[list[tuple[str, str]], int, PublicationStep, int]],
    shape: ChangeLists,
    limits: PageLimits,
) -> None:
    source = Source(
        limits=limits, policy=Policy(change_lists=shape, rotate=3_600, rebase_every=5 * 3_600)
    )
    source.put("a")
    source.publish()
    closed: dict[str, bytes] = {}
    for edits, hours, step, _ in rounds:
        apply(source, edits, hours)
        source.publish(step=step)
        for name, content in source.contents().items():
            is_list = b'capability="changelist" from=' in content and b"<urlset" in content
            if is_list and b" until=" in content:
                assert closed.setdefault(name, content) == content


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
