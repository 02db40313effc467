"""What tables call the same, to do, left or next is what the pure functions say of the rows."""

import tempfile
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise, product
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.cluster.tables import ParquetTables, copies_to_parts
from resourcesync.destination.planner import (
    ALTERED,
    Absence,
    DecisionPolicy,
    Delete,
    Fetch,
    ListedEntry,
    Match,
    Retain,
    UpToDate,
    decide_all,
    deduplicate,
    match_copy,
)
from resourcesync.ports.mirror import Copy, Pending
from resourcesync.ports.tables import DoneRow, JoinResult, ListedRow, TablePart, WorkRow

URIS = [
    first + last
    for first in ("", "a", "a\x00", "\xe9", "\uffff", "\U0001f600", "b'c", 'd"e', "z")
    for last in ("", "/", "1", "\U0001f600")
]
HASHES = [f"md5:{digit * 32}" for digit in "12"] + [f"sha-256:{digit * 64}" for digit in "34"]
ODD = ["", *HASHES, f"{HASHES[0]} {HASHES[2]}", "md5:short", "own:1"]

uris = st.sampled_from(URIS)
moments = st.none() | st.sampled_from([-1, 0, 1_700_000_000_000_000])
lengths = st.none() | st.integers(0, 2)


def _listed(changes: list[str]) -> st.SearchStrategy[ListedRow]:
    return st.builds(
        ListedRow,
        uri=uris,
        loc=st.just("loc"),
        path=st.just("path"),
        hash=st.sampled_from(ODD),
        length=lengths,
        lastmod=moments,
        change=st.sampled_from(changes),
        elsewhere=st.sampled_from(["", "\nhttps://elsewhere.example/"]),
    )


copies = st.builds(
    Copy,
    uri=uris,
    path=st.just("path"),
    length=st.integers(-1, 2),
    digests=st.sampled_from(["", HASHES[2], f"{HASHES[2]} {HASHES[0]}"]),
    listed=st.sampled_from(ODD),
    lastmod=moments,
    etag=st.sampled_from(["", '"1"']),
    last_modified=st.just(""),
    signature=st.sampled_from(["as it was", ALTERED]),
    fixity=st.just("verified"),
    installed=st.just(3),
)
here = st.lists(copies, unique_by=lambda copy: copy.uri).map(sorted)
lists = st.lists(_listed(["", "", "", "", "filtered"]), max_size=40)
WORDS = ["filtered", "created", "deleted"]
changes = st.lists(_listed(["created", "updated", "deleted", "filtered"]), max_size=20)
resting = st.lists(_listed([""]), max_size=4)


def test_a_join_says_what_the_plan_says_of_each_pair_of_values() -> None:
    hashes, times = ["", HASHES[2], "own:1"], [None, 5]
    of_copies = product([-1, 0, 1], ["as it was", ALTERED], hashes, ["", *HASHES[2:]], times)
    of_rows = product(hashes, [None, 0], [None, 5, 6])
    listed, held = [], []
    for number, (mine, theirs) in enumerate(product(of_copies, of_rows)):
        uri, (length, signature, told, digests, moment) = f"{number:05}", mine
        held.append(Copy(uri, "", length, digests, told, moment, "", "", signature, "weak", 0))
        listed.append(ListedRow(uri, "", "", *theirs, "", ""))

    _join_and_check(listed, [], held, [], 700)


def test_a_join_says_what_the_plan_says_of_each_way_to_tell_of_a_uri() -> None:
    plain = [("", 1, 1), ("x", 1, 1), ("", None, 1), ("", 2, 1), ("", 1, None), ("", 1, 2)]
    ways = [*(("", 1, 1, word) for word in WORDS), *((*told, "") for told in plain)]
    in_turn = chain(*(product(ways[: (9, 9, 5)[more]], repeat=more + 1) for more in range(3)))
    listed, changed, held, resting = [], [], [], []
    for number, told in enumerate(in_turn):
        for uri in (f"{number:03}", f"{number:03}, here", f"{number:03}, rests"):
            rows = [ListedRow(uri, "", "", *way, "") for way in told]
            listed += [row for row in rows if row.change in {"", "filtered"}]
            changed += [row for row in rows if row.change not in {"", "filtered"}]
            if "," in uri:
                length = 1 if "here" in uri else 2  # what is told of most of them, or not
                held.append(Copy(uri, "", length, "", "", 1, "", "", "", "weak", 0))
            if "rests" in uri:
                resting.append(rows[-1]._replace(change=""))

    listed.sort(key=lambda row: (row.hash, row.length or 0))  # of a URI: not side by side
    _join_and_check(listed, changed, held, resting, 700)


@settings(max_examples=6)
@given(lists, changes, here, resting, st.integers(1, 6), st.data())
def test_a_join_says_what_the_plan_says(
    listed: list[ListedRow],
    changed: list[ListedRow],
    held: list[Copy],
    resting: list[ListedRow],
    rows: int,
    data: st.DataObject,
) -> None:
    resting += data.draw(st.lists(st.sampled_from([*listed, *changed]))) if listed else []
    _join_and_check(listed, changed, held, resting, rows)


def _join_and_check(
    listed: list[ListedRow],
    changed: list[ListedRow],
    held: list[Copy],
    resting: list[ListedRow],
    rows: int,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables = ParquetTables(folder / "scratch", memory=256 << 20, threads=1)
        answer = folder / "answer"
        answer.mkdir()

        joined = tables.join(
            _files(tables, folder, "listed", listed),
            _files(tables, folder, "changed", changed),
            [file for _, file in copies_to_parts(held, into=folder, stem="p", rows=rows)],
            _files(tables, folder, "resting", resting),
            into=str(answer),
            rows=rows,
        )

        assert not list((folder / "scratch").iterdir())
        _check(tables, joined, (listed, changed, held, resting), rows)


def _files(tables: ParquetTables, folder: Path, stem: str, rows: Sequence[ListedRow]) -> list[str]:
    made, size = [], 9 + len(rows) // 4
    for number, start in enumerate(range(0, len(rows), size)):
        made.append(str(folder / f"{stem}-{99 - number}.parquet"))  # names tell no order
        assert tables.write_listed(made[-1], rows[start : start + size]) <= size
        assert list(tables.read_listed(made[-1])) == rows[start : start + size]
    return made


def _check(
    tables: ParquetTables,
    joined: JoinResult,
    told: tuple[list[ListedRow], list[ListedRow], list[Copy], list[ListedRow]],
    rows: int,
) -> None:
    listed, changed, held, resting = told
    conflicts: list[tuple[ListedEntry, ListedEntry]] = []
    everything = sorted([*listed, *changed], key=lambda row: row.uri)  # stable
    settled = list(deduplicate(map(_as_listed, everything), lambda *both: conflicts.append(both)))
    said = {row.uri: row for row in settled}
    policy = DecisionPolicy(absence=Absence.UNPROVEN)
    decisions = list(decide_all(held, settled, (), policy))
    work = [row for part in joined.slices for row in tables.read_work(part.file)]
    rest = list(tables.read_listed(joined.deferred))
    unlisted = list(tables.read_copies([joined.unlisted]))

    to_fetch = [d for d in decisions if isinstance(d, Fetch)]
    to_delete = {d.copy.uri for d in decisions if isinstance(d, Delete)}
    in_step = {d.copy.uri for d in decisions if isinstance(d, UpToDate)}
    looked_at, known = {row.listed.uri for row in work}, {copy.uri: copy for copy in held}
    assert [row.listed.uri for row in work] == sorted(looked_at)
    # Nothing that is to be done is left out; what more is looked at turns out to be in step.
    wanted = {fetch.listed.uri for fetch in to_fetch} | to_delete
    extra = looked_at - wanted
    resting_uris = {row.uri for row in rest}
    assert wanted <= looked_at | resting_uris
    assert extra | (resting_uris - wanted) <= in_step
    assert not to_delete & resting_uris
    assert joined.same == len(in_step - extra - resting_uris)
    for row in work:
        assert _as_listed(row.listed) == said[row.listed.uri]
        assert row.copy == known.get(row.listed.uri)
    _check_resting(work, rest, resting)
    # What is surely the same is not looked at.
    for copy in held:
        if copy.uri in in_step and copy.uri not in resting_uris:
            assert (copy.uri in extra) == (not _surely(copy, said[copy.uri]))
    _check_left(tables, joined, [d for d in decisions if isinstance(d, Retain)], said)
    _check_counts(tables, joined, (work, rest, unlisted), rows)
    changed_since = {row.uri for row in everything if row.change}
    pairs = [both for both in conflicts if both[0].uri not in changed_since]
    _check_conflicts(tables, joined, pairs)


def _check_left(
    tables: ParquetTables, joined: JoinResult, kept: list[Retain], said: dict[str, ListedEntry]
) -> None:
    unlisted = [keep.copy.uri for keep in kept if keep.copy.uri not in said]
    assert [copy.uri for copy in tables.read_copies([joined.unlisted])] == unlisted
    filtered = [keep.copy for keep in kept if keep.listed]
    assert list(tables.read_copies([joined.filtered])) == filtered
    assert joined.filtered_rows == len(filtered)


def _check_resting(work: list[WorkRow], rest: list[ListedRow], resting: list[ListedRow]) -> None:
    """See that what rests does so because its very telling rests; a deletion never does."""
    tried = {(row.uri, *row[3:6]) for row in resting}
    assert all((row.uri, *row[3:6]) in tried for row in rest)
    assert not [
        row
        for row in work
        if (row.listed.uri, *row.listed[3:6]) in tried and row.listed.change != "deleted"
    ]


def _check_conflicts(
    tables: ParquetTables, joined: JoinResult, pairs: list[tuple[ListedEntry, ListedEntry]]
) -> None:
    told = [_as_listed(row) for row in tables.read_listed(joined.conflicts)]
    assert told == [row for pair in pairs for row in pair]


def _check_counts(
    tables: ParquetTables,
    joined: JoinResult,
    found: tuple[list[WorkRow], list[ListedRow], list[Copy]],
    rows: int,
) -> None:
    work, rest, unlisted = found
    assert [len(list(tables.read_work(part.file))) for part in joined.slices] == [
        part.rows for part in joined.slices
    ]
    assert all(part.rows == rows for part in joined.slices[:-1])
    assert all(0 < part.rows <= rows for part in joined.slices)
    fetched = [row for row in work if row.listed.change != "deleted"]
    assert joined.create == sum(row.copy is None for row in fetched)
    assert joined.update == sum(row.copy is not None for row in fetched)
    assert joined.size == sum(row.listed.length or 0 for row in fetched)
    assert joined.size == sum(part.size for part in joined.slices)
    assert joined.unsized == sum(row.listed.length is None for row in fetched)
    assert joined.has_unprovable == any(
        not row.listed.hash and row.listed.lastmod is None for row in fetched
    )
    assert (joined.unlisted_rows, joined.deferred_rows) == (len(unlisted), len(rest))


def _as_listed(row: ListedRow) -> ListedEntry:
    return ListedEntry(*row[:7], memento=row.elsewhere)


def _surely(copy: Copy, row: ListedEntry) -> bool:
    """Say it as the port does."""
    if copy.length < 0 or copy.signature == ALTERED:
        return False
    if row.length is not None and row.length != copy.length:
        return False
    if row.hash:
        return row.hash in (copy.listed, copy.digests)
    return row.lastmod is not None and row.lastmod == copy.lastmod


@given(copies, _listed([""]))
def test_what_is_surely_the_same_is_the_same(copy: Copy, row: ListedRow) -> None:
    if _surely(copy, _as_listed(row)):
        assert match_copy(copy, _as_listed(row)) is Match.SAME


words = st.text("ab\U0001f600é", max_size=3)
held_words = st.dictionaries(words, st.integers(0, 5), max_size=30)
done_words = st.lists(st.tuples(words, st.none() | st.integers(6, 9)), max_size=25)


@settings(max_examples=6)
@given(held_words, st.lists(done_words, max_size=3), st.integers(2, 6))
def test_merging_what_is_done_is_updating_a_dictionary(
    held: dict[str, int], runs: list[list[tuple[str, int | None]]], rows: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables = ParquetTables(folder / "scratch", memory=256 << 20, threads=1)
        table = copies_to_parts(
            (_copy(uri, held[uri]) for uri in sorted(held)), into=folder, stem="s", rows=rows
        )
        _check_parts(tables, table, held, rows)

        for number, run in enumerate(runs):
            files = []
            for start in range(0, len(run), 7):
                files.append(str(folder / f"done-{number}-{99 - start // 7}"))
                done = [_done(uri, length) for uri, length in run[start : start + 7]]
                assert tables.write_done(files[-1], done) == len(done)
                assert list(tables.read_done(files[-1])) == done
            before, table = (
                table,
                tables.merge(table, files, into=str(folder), stem=f"r{number}", rows=rows),
            )

            for uri, length in run:
                held.pop(uri, None)
                held |= {} if length is None else {uri: length}
            _check_parts(tables, table, held, rows)
            _check_kept(before, table, [uri for uri, _ in run], rows)
        assert not list((folder / "scratch").glob("*"))
        assert not list(folder.glob(".*"))


def _copy(uri: str, length: int) -> Copy:
    return Copy(uri, "path", length, "", "", None, "", "", "", "weak", 0)


def _done(uri: str, length: int | None) -> DoneRow:
    if length is None:
        return DoneRow(uri, None, _TASK._replace(uri=uri) if len(uri) > 1 else None)
    return DoneRow(uri, _copy(uri, length), None)


_TASK = Pending("", "loc", "path", "fetch", "", None, 5, "unavailable", "why", 1, 2, 3, 4, 5, "x")


def _check_parts(
    tables: ParquetTables, table: list[tuple[TablePart, str]], held: dict[str, int], rows: int
) -> None:
    files = [file for _, file in table]
    expected = [_copy(uri, held[uri]) for uri in sorted(held)]
    assert list(tables.read_copies(files)) == expected
    for part, file in table:
        uris = [copy.uri for copy in tables.read_copies([file])]
        assert (part.rows, part.first, part.last) == (len(uris), uris[0], uris[-1])
        assert (Path(file).name, Path(file).stat().st_size) == (part.name, part.size)
        assert part.rows <= rows * 3 // 2
    small = [part.rows < rows // 2 for part, _ in table]
    assert not any(both == (True, True) for both in pairwise(small))
    some = sorted(held)[1::2]
    assert tables.find(files, [*some, "not here"]) == [_copy(uri, held[uri]) for uri in some]
    for after in some[:2]:
        late = [_copy(uri, held[uri]) for uri in sorted(held) if uri > after]
        assert list(tables.read_copies(files, after)) == late
        assert [c.uri for c in tables.read_copies(files, after, ("uri",))] == [c.uri for c in late]


def _check_kept(
    before: list[tuple[TablePart, str]],
    after: list[tuple[TablePart, str]],
    done: Iterable[str],
    rows: int,
) -> None:
    """See that only parts that something falls into are new, and small ones beside them."""
    firsts = ["", *(part.first for part, _ in before[1:]), None]
    touched = [
        any((low or "") <= uri and (high is None or uri < high) for uri in done)
        for low, high in pairwise(firsts)
    ]
    for place, kept in enumerate(before):
        beside = any(touched[max(0, place - 1) : place + 2])
        if not touched[place] and not (beside and kept[0].rows < rows // 2):
            assert kept in after
        if touched[place]:
            assert kept not in after
