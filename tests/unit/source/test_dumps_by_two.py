"""Dumps that two processes pack: the same packages, and nothing is lost when one of them fails."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resourcesync.documents.packages.planning import PackageSize
from resourcesync.errors import OriginalChangedError
from resourcesync.source import naming
from tests.support.commands.started import python
from tests.support.worlds.dumping import DumpedSource

ROOT = Path(__file__).parents[3]
SIZE = PackageSize(max_entries=2)


class Inline:
    """A second process that is none: it works when it is waited for, or is lost before that.

    Attributes:
        started, stopped: How often it was.
        lost: It never has a result.
    """

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
def test_two_processes_write_what_one_writes(lost: bool) -> None:
    second = Inline(lost=lost)
    alone, together = made(None), made(second)

    first, outcome = alone.dump(), together.dump()

    assert documents(together) == documents(alone)
    assert [package.name for package in outcome.packages] == [
        package.name for package in first.packages
    ]
    assert (second.started, second.stopped) == (2, 0)  # five packages, and the fifth is alone


@pytest.mark.parametrize(("numbers", "started"), [((3,), 0), ((0, 8), 1)])
def test_only_what_changed_is_packed_again_in_the_order_of_its_uris(
    numbers: tuple[int, ...], started: int
) -> None:
    second, alone = Inline(), made(None)
    together = made(second)
    for source in (alone, together):
        source.dump()
        for number in numbers:
            source.put(f"{number}.txt", "new")
        source.publish()
    second.started = 0
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
