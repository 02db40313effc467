"""The log of changes is no longer than what is offered needs."""

import itertools
from contextlib import closing
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.catalogue import database as catalogue_file
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.documents import reader
from resourcesync.errors import DiscontinuityError
from resourcesync.source import naming, stored_plan
from resourcesync.source.dump_record import read_dumps
from resourcesync.source.dumps.dump_publisher import DumpPublisher
from resourcesync.source.paging import PageLimits
from resourcesync.source.present_contents import PresentContents
from resourcesync.source.publication_settings import ChangeLists, Policy
from tests.support.in_memory import ManualClock
from tests.support.sources.opened import open_source
from tests.support.sources.publishing import BASE, Source, content_of
from tests.support.sources.recording import NOW, changes, record_first, resource

STREAM = Policy(rotate=3 * 86_400, keep=21 * 86_400, rebase_every=21 * 86_400)


def kept(catalogue: SourceCatalogue) -> list[int]:
    return [number for number, _ in changes(catalogue)]


def record(catalogue: SourceCatalogue, *versions: int) -> None:
    for version in versions:
        with catalogue.record(NOW + timedelta(hours=version)) as recording:
            recording.updated(resource("a", version), "")


def test_some_are_forgotten_at_a_time_and_who_reads_the_log_from_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_file, "MAX_FORGOTTEN", 2)
    path = tmp_path / "catalogue.db"
    with closing(SourceCatalogue(path, ManualClock())) as catalogue:
        record_first(catalogue, resource("a"))
        record(catalogue, *range(1, 8))

        assert catalogue.forget_changes(5)
        assert kept(catalogue) == [3, 4, 5, 6, 7]
        assert catalogue.forget_changes(5)
        assert not catalogue.forget_changes(5)
        assert kept(catalogue) == [6, 7]

    with SourceCatalogue(path) as posted:
        with pytest.raises(DiscontinuityError, match="up to number 5 are deleted from the log"):
            list(posted.changes(after=4))
        with pytest.raises(DiscontinuityError, match="no change 8 yet: the catalogue was restored"):
            list(posted.changes(after=8))
        for after in (0, 5):
            assert [number for number, _ in posted.changes(after=after)] == [6, 7]


def test_a_year_of_changes_leaves_a_log_of_some_days(tmp_path: Path) -> None:
    often = 25
    path = tmp_path / "catalogue.db"
    with closing(SourceCatalogue(path, ManualClock())) as catalogue:
        source = Source(catalogue=catalogue, policy=STREAM)
        source.put(*map(str, range(often)))
        source.publish()
        most, sizes, documents = 0, [], []
        for number in range(120):
            source.clock.advance(hours=73)
            source.put(*map(str, range(often)), content=str(number))
            source.publish()
            most = max(most, len(kept(catalogue)))
            sizes.append(path.stat().st_size)
            documents.append(len(list(source.documents.names())))

    assert most <= often * (7 + 7 + 3)  # what is kept, and what the oldest list goes back to
    assert max(sizes[60:]) < 1.2 * max(sizes[:60])
    assert max(documents) < 40


def test_a_change_dump_never_leaps_over_what_is_forgotten() -> None:
    source = Source(policy=STREAM)
    names = map("{:03}".format, itertools.count())
    source.put("first")
    source.publish()
    source.put(next(names))
    source.publish()
    dump_changes(source)
    for _ in range(40):
        source.clock.advance(hours=73)
        source.put(next(names))
        source.publish()

    dump_changes(source)

    recorded, dumps = stored_plan.PLAN.read(source.catalogue), read_dumps(source.catalogue)
    assert recorded is not None
    assert [change.since for change in dumps.changes] == [recorded.start]
    with source.catalogue.snapshot() as snapshot:
        assert dumps.changes[0].entries == len(list(snapshot.changes(after=recorded.known_after)))
    source.put(next(names))
    source.publish()
    dump_changes(source)
    assert len(read_dumps(source.catalogue).changes) == 2


def dump_changes(source: Source) -> None:
    opened = open_source(source.catalogue, source.documents, source.clock, BASE)
    contents = PresentContents(source.originals)
    DumpPublisher(opened, contents).publish(resources=False, changes=True)


@settings(max_examples=20)
@given(
    shape=st.sampled_from(ChangeLists),
    keep=st.sampled_from([0, 3_600, 3 * 3_600]),
    archive=st.sampled_from([0, 2 * 3_600]),
    rebase=st.sampled_from([0, 4 * 3_600]),
    lives=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), min_size=3, max_size=12),
)
def test_every_list_that_is_lost_is_written_again_as_it_was(
    shape: ChangeLists, keep: int, archive: int, rebase: int, lives: list[tuple[int, int]]
) -> None:
    policy = Policy(
        change_lists=shape, rotate=3_600, keep=keep, archive=archive, rebase_every=rebase
    )
    source = Source(policy=policy, limits=PageLimits(max_entries=3))
    for number, (hours, names) in enumerate(lives):
        source.clock.advance(hours=hours)
        source.put(*"abcde"[:names], content=str(number))
        source.publish()
    before = change_lists(source)
    for name in before:
        source.documents.delete(name)

    source.publish_only()

    after = change_lists(source)
    common = before.keys() & after.keys()
    assert {name: after[name] for name in common} == {name: before[name] for name in common}
    assert keep or len(common) == len(before)


def change_lists(source: Source) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for name in source.documents.names():
        if naming.change_list_number(name) or "changelist_" in name:
            content = content_of(source.documents, name)
            found[name] = list(reader.read(BytesIO(content), uri=name).entries())
    return found
