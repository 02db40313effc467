"""Dumps of a Source: what is packed, what is packed again, and what is not (§11, §13)."""

import random
from collections.abc import Callable, Iterable
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.documents.packages.planning import PackageSize
from resourcesync.errors import OriginalChangedError, StorageError
from resourcesync.model.entries import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.source import naming
from tests.support.worlds.dumping import DumpedSource
from tests.support.worlds.network import BASE

SMALL = PackageSize(max_entries=4, max_bytes=40)


@pytest.fixture
def source() -> DumpedSource:
    source = DumpedSource(size=SMALL)
    for number in range(10):
        source.put(f"{number}.txt", f"content {number}")
    source.publish()
    return source


def contents(source: DumpedSource) -> dict[str, bytes]:
    """What the packages of the Resource Dump hold together; each URI once."""
    held = [(entry.uri, data) for _, entry, data in source.members()]
    assert len(dict(held)) == len(held)
    return dict(held)


def changes(source: DumpedSource) -> list[tuple[ChangeKind, str, bytes]]:
    return [
        (entry.kind, entry.uri.removeprefix(BASE), data)
        for _, entry, data in source.members(naming.CHANGE_DUMP)
        if isinstance(entry, Change)
    ]


# --- Resource Dumps ------------------------------------------------------------------------------


def test_a_dump_of_what_did_not_change_writes_nothing(source: DumpedSource) -> None:
    source.dump()
    before = source.documents.writes

    done = source.dump()

    assert (done.packages, done.written, done.reused) == ((), (), 3)
    assert source.documents.writes == before


def test_a_package_that_was_harmed_is_made_anew(source: DumpedSource) -> None:
    source.dump()
    name = source.packages()[1].uri.removeprefix(BASE)
    source.documents.write(name, (b"harm",))

    source.dump()

    assert contents(source) == source.originals.contents()


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_a_dump_is_whole_after_any_changes(seed: int) -> None:
    chance = random.Random(seed)
    source = DumpedSource(size=PackageSize(max_entries=5, max_bytes=60))
    for _ in range(6):
        for _ in range(chance.randrange(12)):
            name = f"{chance.randrange(30):02}.txt"
            if chance.random() < 0.3:
                source.remove(name)
            else:
                source.put(name, "x" * chance.randrange(30))
        source.publish()
        source.dump()

        assert contents(source) == source.originals.contents()
        for package in source.packages():
            entries = list(source.opened(package).manifest().entries())
            sizes = [entry.length or 0 for entry in entries if isinstance(entry, Resource)]
            assert len(entries) <= 5
            assert sum(sizes) <= 60 or len(sizes) == 1


def test_what_nobody_is_led_to_is_removed_a_day_later(source: DumpedSource) -> None:
    source.dump()
    old = source.packages()[1].uri.removeprefix(BASE)
    source.put("5.txt", "altered")
    source.publish()
    source.dump()
    assert source.documents.open(old) is not None

    source.clock.advance(hours=25)
    source.dump()

    assert source.documents.open(old) is None
    assert contents(source) == source.originals.contents()


@pytest.mark.parametrize("name", ["8.txt", "9.txt"])
def test_a_file_that_only_grew_goes_in_whole(source: DumpedSource, name: str) -> None:
    source.put(name, source.originals.contents()[BASE + name].decode() + ", and more")

    source.dump()

    assert contents(source) == source.originals.contents()


def test_a_file_that_changes_all_the_time_leaves_the_dumps_as_they_were(
    source: DumpedSource,
) -> None:
    source.dump()
    before = source.bytes_of(naming.RESOURCE_DUMP)
    source.put("3.txt", "new")
    source.publish()
    source.restless.add(BASE + "3.txt")

    with pytest.raises(OriginalChangedError):
        source.dump()

    assert source.bytes_of(naming.RESOURCE_DUMP) == before
    source.restless.clear()
    source.dump()
    assert contents(source) == source.originals.contents()


def test_a_package_that_does_not_read_back_is_never_listed(
    source: DumpedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = source.documents.write

    def bad_disk(
        name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None = None
    ) -> int:
        if name.endswith(".zip"):
            data = bytearray(b"".join(chunks))
            data[len(data) // 2] ^= 1
            chunks = (bytes(data),)
        return write(name, chunks, check)

    monkeypatch.setattr(source.documents, "write", bad_disk)

    with pytest.raises(StorageError) as caught:
        source.dump()

    assert caught.value.code == "read-back"
    assert source.documents.open(naming.RESOURCE_DUMP) is None


def test_a_dump_may_come_before_the_lists_that_lead_to_it() -> None:
    source = DumpedSource(size=SMALL)
    source.put("a.txt", "x")
    source.scan()
    source.dump(changes=True)

    source.publish()

    assert contents(source) == source.originals.contents()
    assert changes(source) == []


# --- Change Dumps --------------------------------------------------------------------------------


def test_a_version_that_is_gone_is_left_out_and_the_later_one_stands(source: DumpedSource) -> None:
    for content in ("first", "second"):
        source.put("1.txt", content)
        source.publish()

    source.dump(resources=False, changes=True)

    assert changes(source) == [(ChangeKind.UPDATED, "1.txt", b"second")]
