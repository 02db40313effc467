"""The index of versions: a model of it in a dictionary always agrees."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.catalogue.reader import CatalogueReader
from resourcesync.catalogue.versions import ResourceVersion, VersionIndex, VersionPatch
from resourcesync.errors import StorageError
from resourcesync.model.entries import Resource
from tests.support.in_memory import ManualClock

A, B = "https://h/a", "https://h/b"


def sha(number: int) -> str:
    return f"{number:064x}"


def version(uri: str, moment: int, content: int, patch: int | None = None) -> ResourceVersion:
    kept = (
        None if patch is None else VersionPatch(sha256=sha(patch), length=7, media_type="x/patch")
    )
    return ResourceVersion(
        uri=uri,
        moment=moment,
        since=moment,
        length=100 + content,
        sha256=sha(content),
        media_type="x/y",
        patch=kept,
    )


def opened(folder: Path) -> SourceCatalogue:
    return SourceCatalogue(folder / "catalogue.db", ManualClock())


steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "patched", "delete", "oldest", "former", "before"]),
        st.sampled_from([A, B]),
        st.integers(0, 4),
    ),
    max_size=30,
)


class Model:
    """The versions that should be there: resource, moment, content, patch, followed when."""

    def __init__(self) -> None:
        self.rows: list[list[int | str | None]] = []

    def end(self, uri: str, moment: int) -> None:
        for row in self.rows:
            if row[0] == uri and row[4] is None:
                row[4] = moment

    def drop(self, gone: list[list[int | str | None]]) -> None:
        self.rows = [row for row in self.rows if row not in gone]

    def contents(self) -> Counter[str]:
        return Counter(sha(int(n)) for row in self.rows for n in row[2:4] if n is not None)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_contents_are_let_go_exactly_when_no_version_needs_them(
    tmp_path_factory: object, drawn: list[tuple[str, str, int]]
) -> None:
    folder: Path = tmp_path_factory.mktemp("index")  # type: ignore[attr-defined]
    with opened(folder) as catalogue:
        index, model = catalogue.versions(), Model()
        for moment, (what, uri, number) in enumerate(drawn, start=1):
            before = set(model.contents())
            gone = done(catalogue, index, model, what, uri, (moment, number))
            after = set(model.contents())

            assert {name for name, _ in gone} == before - after
            assert all(not index.is_needed(name) for name, _ in gone)
            assert all(index.is_needed(name) for name in after)
        past = CatalogueReader(folder / "catalogue.db")
        for uri in (A, B):
            told = [(version.uri, version.moment) for version in past.versions(uri, 0, 99)]
            assert told == [(row[0], row[1]) for row in model.rows if row[0] == uri]


def _count_later(rows: list[list[int | str | None]], row: list[int | str | None]) -> int:
    return sum(1 for item in rows if item[0] == row[0] and int(item[1] or 0) >= int(row[1] or 0))


def done(
    catalogue: SourceCatalogue,
    index: VersionIndex,
    model: Model,
    what: str,
    uri: str,
    at: tuple[int, int],
) -> tuple[tuple[str, int], ...]:
    moment, number = at
    former = [row for row in model.rows if row[4] is not None]
    if what in {"add", "patched"}:
        patch = 90 + number if what == "patched" else None
        index.add(version(uri, moment, number, patch))
        model.end(uri, moment)
        model.rows.append([uri, moment, number, patch, None])
    elif what == "delete":
        with catalogue.record(ManualClock().now()) as recording:
            recording.deleted(Resource(uri=uri))
        model.end(uri, 1 << 50)
    elif what == "oldest":
        gone = index.drop_oldest()
        oldest = sorted(former, key=lambda row: (int(row[4] or 0), int(row[1] or 0)))[:1]
        assert (gone is None) == (not oldest)
        model.drop(oldest)
        return gone or ()
    elif what == "former":
        due = [
            row
            for row in former
            if int(row[4] or 0) < moment and _count_later(former, row) > number
        ]
        model.drop(due)
        return index.drop_superseded(moment, number)
    else:
        model.drop([row for row in model.rows if int(row[1] or 0) < number])
        return index.drop_stored_before(number)
    return ()


def add_in_vain(catalogue: SourceCatalogue, index: VersionIndex) -> None:
    with catalogue.record(ManualClock().now()):
        index.add(version(A, 1, 5))
        raise StorageError("the disk is gone")


def test_what_is_added_in_a_recording_that_fails_was_never_there(tmp_path: Path) -> None:
    with opened(tmp_path) as catalogue:
        index = catalogue.versions()
        with pytest.raises(StorageError):
            add_in_vain(catalogue, index)

        assert index.newest(A) is None
        assert not index.is_needed(sha(5))


def test_a_version_of_a_moment_is_the_last_one_before_it_or_else_the_first(tmp_path: Path) -> None:
    with opened(tmp_path) as catalogue:
        for moment in (10, 20, 30):
            catalogue.versions().add(version(A, moment, moment))
        past = CatalogueReader(tmp_path / "catalogue.db")

        found = [past.version_at(A, moment) for moment in (5, 10, 19, 20, 99, None)]
        assert [version and version.moment for version in found] == [10, 10, 10, 20, 30, 30]
        assert past.version_at(B, 10) is None
        assert found[2] is not None
        ends = past.first_and_last(found[2])
        assert [end and end.moment for end in ends] == [10, 30]
        assert [version.moment for version in past.versions(A, 10, 1)] == [20]
