"""Files of tables: whole or not there, and what is wrong with one is told with its name."""

import resource
import runpy
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import repeat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.cluster.tables import (
    ParquetTables,
    arrow,
    copies_to_parts,
)
from resourcesync.cluster.tables.parquet import GROUP
from resourcesync.errors import (
    ConfigurationError,
    DiskFullError,
    StateError,
    StorageError,
)
from resourcesync.ports.mirror import Copy
from resourcesync.ports.tables import DoneRow, ListedRow, TablePart


def row(uri: str, length: int | None = 1) -> ListedRow:
    return ListedRow(uri, uri, "path", "", length, None, "", "")


def copy(uri: str) -> Copy:
    return Copy(uri, "path", 1, "", "", 5, "", "", "", "weak", 0)


@pytest.fixture
def tables(tmp_path: Path) -> ParquetTables:
    return ParquetTables(tmp_path / "scratch", memory=256 << 20, threads=1)


@pytest.fixture
def parts(tmp_path: Path) -> list[tuple[TablePart, str]]:
    held = (copy(f"http://a.example/{number:04}") for number in range(3_000))
    return copies_to_parts(held, into=tmp_path, stem="p", rows=1_000)


def test_a_file_that_is_not_written_to_its_end_is_not_there(
    tables: ParquetTables, tmp_path: Path
) -> None:
    def rows() -> Iterator[ListedRow]:
        yield from repeat(row("a"), GROUP + 1)
        assert [found.suffix for found in tmp_path.iterdir()] == [".tmp"]
        raise KeyError("the list is over")

    with pytest.raises(KeyError):
        tables.write_listed(str(tmp_path / "listed"), rows())

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("bad", [row("\ud800"), row("a", 1 << 70)])
def test_what_no_table_can_hold_is_refused(
    tables: ParquetTables, tmp_path: Path, bad: ListedRow
) -> None:
    with pytest.raises(StorageError, match="cannot be stored in a table"):
        tables.write_listed(str(tmp_path / "listed"), [row("a"), bad])

    assert not list(tmp_path.iterdir())


def test_no_room_is_told_and_leaves_nothing(tables: ParquetTables, tmp_path: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(DiskFullError, match=r"no space left while writing .*listed\.parquet"):
            tables.write_listed(str(tmp_path / "listed.parquet"), [row("a")])
        with pytest.raises(DiskFullError):
            copies_to_parts([copy("a"), copy("b"), copy("c")], into=tmp_path, stem="p", rows=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_told(tables: ParquetTables, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        tables.write_done(str(tmp_path / "no" / "done"), [DoneRow("a", None, None)])


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def rot(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[200] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("harm", [cut, empty, rot, Path.unlink])
def test_a_part_that_is_damaged_is_named(
    tables: ParquetTables,
    parts: list[tuple[TablePart, str]],
    tmp_path: Path,
    harm: Callable[[Path], None],
) -> None:
    files = [file for _, file in parts]
    harm(Path(files[1]))
    done = str(tmp_path / "done")
    tables.write_done(done, [DoneRow(parts[1][0].first, None, None)])
    (tmp_path / "into").mkdir()

    for work in (
        lambda: list(tables.read_copies(files)),
        lambda: tables.find(files, [parts[1][0].last]),
        lambda: tables.merge(parts, [done], into=str(tmp_path / "into"), stem="q", rows=1_000),
        lambda: tables.join([], [], files, [], into=str(tmp_path / "into"), rows=9),
    ):
        with pytest.raises(StateError) as found:
            work()
        assert parts[1][0].name in found.value.message
        assert ("file", files[1]) in found.value.evidence
    assert not list((tmp_path / "scratch").iterdir())
    assert not list((tmp_path / "into").glob("q*"))


def test_a_file_of_another_kind_is_no_part(tables: ParquetTables, tmp_path: Path) -> None:
    tables.write_listed(str(tmp_path / "listed"), [row("a")])

    with pytest.raises(StateError, match="has no column digests, or"):
        list(tables.read_copies([str(tmp_path / "listed")]))


def test_a_join_without_enough_memory_is_told(
    parts: list[tuple[TablePart, str]], tmp_path: Path
) -> None:
    tables = ParquetTables(tmp_path / "scratch", memory=1 << 10, threads=1)

    with pytest.raises(StorageError, match="could not be joined") as found:
        tables.join([], [], [file for _, file in parts], [], into=str(tmp_path), rows=9)

    assert "memory" in found.value.hint
    assert not list((tmp_path / "scratch").iterdir())


def test_only_the_columns_that_are_named_are_read(
    tables: ParquetTables, parts: list[tuple[TablePart, str]]
) -> None:
    found = list(tables.read_copies([file for _, file in parts], columns=("lastmod", "uri")))

    assert len(found) == 3_000
    assert found[-1] == Copy("http://a.example/2999", "", 0, "", "", 5, "", "", "", "", 0)


def test_workers_need_no_duckdb(
    tables: ParquetTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    tables.write_listed(str(tmp_path / "listed"), [row("a")])

    assert list(tables.read_listed(str(tmp_path / "listed"))) == [row("a")]
    with pytest.raises(ConfigurationError) as found:
        tables.join([str(tmp_path / "listed")], [], [], [], into=str(tmp_path), rows=9)
    assert found.value.hint == "pip install 'resourcesync[tables]'"


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(ConfigurationError) as found:
        runpy.run_path(str(arrow.__file__))

    assert found.value.hint == "pip install 'resourcesync[tables]'"


@settings(max_examples=60)
@given(place=st.integers(0, 4_000), bit=st.integers(0, 7))
def test_a_part_in_which_a_bit_is_wrong_is_refused_or_says_the_same(place: int, bit: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        held = [copy(f"http://a.example/{number:03}") for number in range(400)]
        [(part, file)] = copies_to_parts(held, into=Path(name), stem="p", rows=1_000)
        content = bytearray(Path(file).read_bytes())
        content[place % part.size] ^= 1 << bit
        Path(file).write_bytes(content)

        with suppress(StateError):
            assert list(ParquetTables(Path(name)).read_copies([file])) == held


@pytest.mark.parametrize(("touched", "sizes"), [(0, [12, 10]), (29, [10, 12])])
def test_a_small_part_goes_with_a_neighbour_that_is_written_anew(
    tables: ParquetTables, tmp_path: Path, touched: int, sizes: list[int]
) -> None:
    uris = [f"{number:02}" for number in range(30)]
    table = copies_to_parts(map(copy, uris), into=tmp_path, stem="a", rows=10)
    middle, name = str(tmp_path / "middle"), str(tmp_path / "one")
    tables.write_done(middle, [DoneRow(uri, None, None) for uri in uris[11:19]])
    tables.write_done(name, [DoneRow(uris[touched], copy(uris[touched]), None)])

    small = tables.merge(table, [middle], into=str(tmp_path), stem="b", rows=10)
    joined = tables.merge(small, [name], into=str(tmp_path), stem="c", rows=10)

    assert [part.rows for part, _ in small] == [10, 2, 10]
    assert [part.rows for part, _ in joined] == sizes
    assert [part for part, _ in joined if part.rows == 10] == [
        part
        for part, _ in small
        if part.rows == 10 and not part.first <= uris[touched] <= part.last
    ]
