"""What a table says, row by row: in which forms it is read, and what is left out."""

import json
import os
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from resourcesync.adapters.in_memory import ManualClock
from resourcesync.adapters.inventory import open_duckdb, table_files
from resourcesync.errors import ConfigurationError, StorageError
from tests.support.accounts.published_table import BASE, PublishedTable, Row


@pytest.fixture
def world(tmp_path: Path) -> PublishedTable:
    return PublishedTable(tmp_path)


HASH = "md5:" + "0" * 32


def rows(*names: str, length: int = 1) -> list[Row]:
    return [(f"{BASE}{name}", None, length, "", "") for name in names]


def test_rows_that_cannot_be_published_are_left_out_and_told(world: PublishedTable) -> None:
    good = rows("a", "b")
    bad: list[Row] = [
        ("ftp://data.example/c", None, 1, "", ""),
        (f"{BASE}d/../e", None, 1, "", ""),
        (f"{BASE}%2e%2E/f", None, 1, "", ""),
        (f"{BASE}\u00fc", None, 1, "", ""),
        (f"{BASE}g", None, -1, "", ""),
        (f"{BASE}h", 1 << 62, 1, "", ""),
        (f"{BASE}i", None, 1, "", "a\x01b"),
        ("", None, 1, "", ""),
    ]
    world.tell([*bad, *good])

    done = world.publish()

    assert world.listed()[1] == good
    assert done.scan.files == 2
    assert done.scan.omitted == len(bad)
    assert {omission.name for omission in done.omissions} == {row[0] for row in bad}
    assert all(omission.reason for omission in done.omissions)


def test_what_is_not_understood_has_not_gone(world: PublishedTable) -> None:
    world.tell(rows("a", "b"))
    world.publish()
    broken = [(f"{BASE}a", None, -5, "", "")]
    world.tell([*broken, *rows("b", length=2)])
    world.clock.advance(hours=1)

    world.publish()

    assert world.followed() == [*rows("a"), *rows("b", length=2)]
    assert [(change.kind, change.uri) for change in world.changes()] == [("updated", f"{BASE}b")]


def test_of_the_copies_of_a_mirror_those_of_now_are_read(world: PublishedTable) -> None:
    folder = world.table.parent
    folder.mkdir(parents=True)
    for name, uri in (("old", "a"), ("new", "b")):
        columns = {"uri": [f"{BASE}{uri}"], "digests": ["md5:" + "0" * 32], "length": [1]}
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")
    told = {"format": "parquet", "parts": [{"name": "new.parquet", "rows": 1}]}
    (folder / "copies.json").write_text(json.dumps(told))

    world.publish()

    assert world.listed()[1] == [(f"{BASE}b", None, 1, "md5:" + "0" * 32, "")]


def test_a_table_that_is_written_while_it_is_read_is_not_published(world: PublishedTable) -> None:
    class Busy(ManualClock):
        def now(self) -> datetime:
            world.tell(rows("a"))
            return super().now()

    world.tell(rows("b"))
    world.clock = Busy()
    with pytest.raises(StorageError, match="written while it was read"):
        world.publish()
    assert world.files() == {}

    world.clock = ManualClock()
    world.publish()
    assert world.followed() == rows("a")


def test_a_table_that_is_mostly_wrong_is_refused_and_changes_nothing(world: PublishedTable) -> None:
    world.tell(rows("a"))
    world.publish()
    before = world.files()
    world.tell([(f"{number}", None, 1, "", "") for number in range(150)] + rows("a", "b"))

    with pytest.raises(ConfigurationError) as refused:
        world.publish()

    assert refused.value.code == "many-refused"
    assert world.files() == before


def test_of_rows_with_one_uri_the_newest_counts(world: PublishedTable) -> None:
    told: list[Row] = [(f"{BASE}a", moment, moment, "", "") for moment in (5, 9, 7)]
    world.tell([*told, *rows("b")])

    done = world.publish()

    assert world.listed()[1] == [told[1], *rows("b")]
    assert done.scan.omitted == 2
    assert "newest" in done.omissions[-1].reason


def test_a_table_in_any_order_has_the_same_changes(tmp_path: Path) -> None:
    first = [*rows("a", "b", "c", "e"), (f"{BASE}t", 5, 1, HASH, "")]
    second = [
        *rows("0", "b", "d"),
        *rows("c", length=2),
        (f"{BASE}e", None, -1, "", ""),  # it cannot be understood: e stays
        (f"{BASE}t", 6, 1, HASH, ""),  # touched
    ]
    found = []
    for name, order in (("rising", sorted), ("falling", reversed)):
        world = PublishedTable(tmp_path / name)
        world.tell(list(order(first)))
        world.publish()
        world.tell(list(order(sorted(second))))
        world.clock.advance(hours=1)
        done = world.publish()
        assert done.scan.omitted == 1
        found.append([(change.kind, change.uri) for change in world.changes()])

    assert found[0] == found[1]
    assert found[0] == [
        ("created", f"{BASE}0"),
        ("deleted", f"{BASE}a"),
        ("updated", f"{BASE}c"),
        ("created", f"{BASE}d"),
    ]


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (["2026-01-02T03:04:05+01:00", "", None], pa.string()),
        ([1_767_319_445_000_000_000, None, None], pa.timestamp("ns")),
        ([datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
        ([1_767_319_445_000_000, None, None], pa.int64()),
    ],
)
def test_a_moment_is_read_in_each_of_its_forms(
    world: PublishedTable, told: Sequence[object], kind: pa.DataType
) -> None:
    world.table.parent.mkdir(parents=True)
    columns = {
        "page": [f"{BASE}{name}" for name in "abc"],
        "lastmod": pa.array(told, kind),
        "sha256": pa.array([b"\xab" * 32, None, b"\x01" * 32], pa.binary()),
        "length": [1, None, 3],
        "filename": ["one.gz", "two.gz", ""],
    }
    parquet.write_table(pa.table(columns), world.table)
    world.values = {"uri": "page", "memory": "500MB"}

    world.publish()

    moment = 1_767_319_445_000_000
    assert world.listed()[1] == [
        (f"{BASE}a", moment, 1, "sha-256:" + "ab" * 32, ""),
        (f"{BASE}b", None, None, "", ""),
        (f"{BASE}c", None, 3, "sha-256:" + "01" * 32, ""),
    ]
    world.values = {}  # they are remembered
    assert world.publish().publication.written == ()


def test_a_text_that_is_no_moment_is_a_fault_of_its_row(world: PublishedTable) -> None:
    world.table.parent.mkdir(parents=True)
    columns = {"uri": [f"{BASE}a", f"{BASE}b"], "lastmod": ["soon", "2026-01-02"]}
    parquet.write_table(pa.table(columns), world.table)

    done = world.publish()

    midnight = datetime.combine(date(2026, 1, 2), datetime.min.time(), UTC)
    [(uri, moment, *_)] = world.listed()[1]
    assert uri == f"{BASE}b"
    assert moment == int(midnight.timestamp() * 1_000_000)
    assert [omission.reason for omission in done.omissions] == ["its lastmod is no time"]


def test_rows_are_written_in_groups_of_one_size_whatever_pieces_they_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_files, "GROUP", 4)
    monkeypatch.setattr(table_files, "BUFFERED_ROWS", 8)
    batches = pa.table({"number": range(23)}).to_batches(max_chunksize=3)

    with (
        table_files.atomic_write(tmp_path / "rows.parquet") as stream,
        table_files.RowGroupWriter(stream, batches[0].schema) as writer,
    ):
        for batch in batches:
            writer.add(batch)

    with parquet.ParquetFile(tmp_path / "rows.parquet") as found:
        sizes = [
            found.metadata.row_group(number).num_rows for number in range(found.num_row_groups)
        ]
        assert sizes == [4, 4, 4, 4, 4, 3]
        assert found.read().column("number").to_pylist() == list(range(23))


@pytest.mark.parametrize(("memory", "most"), [("100MB", 1), ("600MiB", 2), ("64GiB", 1_024)])
def test_threads_of_duckdb_are_as_few_as_its_memory_allows(
    tmp_path: Path, memory: str, most: int
) -> None:
    with open_duckdb(tmp_path, memory) as connection:
        [(threads,)] = connection.execute("SELECT current_setting('threads')").fetchall()

    assert 1 <= threads <= min(most, len(os.sched_getaffinity(0)))


def test_a_limit_of_memory_that_is_none_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigurationError, match="is not a memory limit"),
        open_duckdb(tmp_path, "much"),
    ):
        pass
