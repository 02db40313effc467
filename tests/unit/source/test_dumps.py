"""Dumps of a Source: what is packed, by one process or two, what again, and what not (§11, §13)."""

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.documents.packages.planning import PackageSize
from resourcesync.errors import OriginalChangedError, StorageError
from resourcesync.model.entries import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.source import naming
from tests.support.commands.started import python
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
    held = [(entry.uri, data) for _, entry, data in source.members()]
    assert len(dict(held)) == len(held)
    return dict(held)


def changes(source: DumpedSource) -> list[tuple[ChangeKind, str, bytes]]:
    return [
        (entry.kind, entry.uri.removeprefix(BASE), data)
        for _, entry, data in source.members(naming.CHANGE_DUMP)
        if isinstance(entry, Change)
    ]


def test_a_dump_of_what_did_not_change_writes_nothing_but_packages_that_were_harmed(
    source: DumpedSource,
) -> None:
    source.dump()
    before = source.documents.writes

    done = source.dump()

    assert (done.packages, done.written, done.reused) == ((), (), 3)
    assert source.documents.writes == before
    _, altered, copied = (package.uri.removeprefix(BASE) for package in source.packages())
    manifest = copied.replace(".zip", "-manifest.xml")
    held = source.bytes_of(manifest)
    source.documents.delete(manifest)
    source.documents.write(copied, (source.bytes_of(copied),))  # a backup was restored
    source.documents.write(altered, (b"harm",))

    done = source.dump()

    assert (done.harmed, done.reused, source.bytes_of(manifest)) == (1, 2, held)
    assert contents(source) == source.originals.contents()


@pytest.mark.parametrize(
    ("lost", "listed", "new"),
    [("0", "123", 0), ("2", "3", 0), ("3", "0123", 1), ("0123", "0123", 1)],
)
def test_a_change_dump_continues_from_the_newest_packages_that_are_whole(
    lost: str, listed: str, new: int, source: DumpedSource
) -> None:
    for number in range(4):
        source.put(f"{number}.txt", "new")
        source.publish()
        source.dump(resources=False, changes=True)
    packages = source.packages(naming.CHANGE_DUMP)
    for number in map(int, lost):
        source.documents.write(packages[number].uri.removeprefix(BASE), (b"cut",))

    done = source.dump(resources=False, changes=True)

    assert [name[0] for _, name, _ in changes(source)] == list(listed)
    kept = len(source.packages(naming.CHANGE_DUMP)) - new
    assert (done.harmed, len(done.packages), done.reused) == (len(lost), new, kept)


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


def test_a_version_that_is_gone_is_left_out_and_the_later_one_stands(source: DumpedSource) -> None:
    for content in ("first", "second"):
        source.put("1.txt", content)
        source.publish()

    source.dump(resources=False, changes=True)

    assert changes(source) == [(ChangeKind.UPDATED, "1.txt", b"second")]
    assert source.dump(resources=False, changes=True).reused == 1
    assert [source.dump(changes=True).reused for _ in range(2)] == [1, 4]


ROOT = Path(__file__).parents[3]
SIZE = PackageSize(max_entries=2)


class Inline:
    """A second process that is none: it works when it is waited for, or is lost before that."""

    def __init__(self, *, lost: bool = False) -> None:
        self.started = self.stopped = 0
        self.lost = lost
        self._function: Callable[[], Any] | None = None

    def start(self, function: Callable[[], Any]) -> None:
        assert self._function is None, "one at a time"
        self.started += 1
        self._function = function

    def result(self) -> Any:
        assert self._function is not None, "nothing was started"
        function, self._function = self._function, None
        return None if self.lost else function()

    def stop(self) -> None:
        self.stopped += self._function is not None
        self._function = None


def made(second: Inline | None) -> DumpedSource:
    source = DumpedSource(size=SIZE)
    source.second = second
    for number in range(9):
        source.put(f"{number}.txt", f"content {number}")
    source.publish()
    return source


def documents(source: DumpedSource) -> dict[str, bytes]:
    return {name: source.bytes_of(name) for name in source.documents.names() if "dump" in name}


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize(("numbers", "started"), [((3,), 2), ((0, 8), 3)])
def test_two_processes_write_what_one_writes_and_again_only_what_changed(
    numbers: tuple[int, ...], started: int, lost: bool
) -> None:
    second = Inline(lost=lost)
    alone, together = made(None), made(second)
    first, outcome = alone.dump(), together.dump()
    assert documents(together) == documents(alone)
    assert [each.name for each in outcome.packages] == [each.name for each in first.packages]
    assert (second.started, second.stopped) == (2, 0)  # five packages, and the fifth is alone
    for source in (alone, together):
        for number in numbers:
            source.put(f"{number}.txt", "new")
        source.publish()
    alone.dump()

    outcome = together.dump()

    assert documents(together) == documents(alone)
    assert (len(outcome.packages), second.started) == (len(numbers), started)


COPIED = """
import sys
from pathlib import Path
from resourcesync.adapters.folder_documents import FolderDocuments
from resourcesync.adapters.second_process import ForkedProcess
from resourcesync.documents.packages.planning import PackageSize
from resourcesync.source import naming
from tests.support.commands.started import python
from tests.support.worlds.dumping import DumpedSource
source = DumpedSource(size=PackageSize(max_entries=2))
source.documents = FolderDocuments(Path(sys.argv[1]))
source.second = ForkedProcess()
for number in range(4):
    source.put(f"{number}.txt", f"content {number}")
source.publish()
source.documents.remove_leftovers()
source.put("1.txt", "newer, packed here")
source.put("2.txt", "newer, packed by the copy")
made = source.dump()
source.publish()
print(len(made.packages))
print(source.bytes_of(naming.CHANGE_LIST).count(b"<url>"))
"""


def test_what_a_copy_packs_in_a_newer_state_is_recorded_as_a_change(tmp_path: Path) -> None:
    done = python(COPIED, str(tmp_path / "out"), home=tmp_path, PYTHONPATH=f"{ROOT}/src:{ROOT}")

    assert (done.stdout.split(), done.stderr) == (["2", "2"], "")
    names = [path.name for path in (tmp_path / "out/resourcesync").iterdir()]
    assert sum(name.endswith(".zip") for name in names) == 2
    assert not any(name.startswith(".") for name in names)


@pytest.mark.parametrize("is_beside", [False, True])
def test_an_error_in_either_process_stops_the_other_and_is_found_by_the_first(
    is_beside: bool,
) -> None:
    second = Inline(lost=is_beside)
    source = made(second)
    source.restless.add(source.uri("2.txt" if is_beside else "0.txt"))

    with pytest.raises(OriginalChangedError):
        source.dump()

    assert second.stopped == (not is_beside)
    assert source.documents.open(naming.RESOURCE_DUMP) is None
