"""A pull and a publication whose power is cut: what is done, and what must hold afterwards."""

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

from resourcesync.adapters.catalogue import FileCatalogue
from resourcesync.adapters.document_files import FolderDocuments
from resourcesync.adapters.memory import MemoryDocuments
from resourcesync.adapters.mirror import copies, looking, staged
from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.destination.plan import is_doubted, is_forgotten
from resourcesync.destination.reports import MirrorState
from resourcesync.errors import ResourceSyncError
from resourcesync.source.naming import DESCRIPTION
from resourcesync.source.paging import Limits
from resourcesync.source.policy import Policy
from tests.support.crash_states import State, files_of
from tests.support.publishing import Reader, Source, View
from tests.support.world import BASE as SOURCE
from tests.support.world import World

Numbers = Mapping[int, int]
"""The inode number that a file had before the power cut, by the one it has now."""
_OWN: Final = ".resourcesync/"
_CATALOGUE: Final = ".resourcesync/catalogue.db"
_HOUR: Final = 3_600_000_000


class Scene(Protocol):
    """Something that is done to a disk."""

    def do(self) -> None:
        """Do it, below the folder that was given."""
        ...

    def begin_again(self, numbers: Numbers) -> None:
        """Take note of which file was which: the power was cut, and it is done anew."""
        ...

    def seen(self, state: State) -> None:
        """Take note of what everybody could see before the power was cut."""
        ...

    def wrong(self, folder: Path, numbers: Numbers, *, is_done: bool) -> Iterator[str]:
        """Yield what is wrong with a disk after the power cut, and after the next run.

        Args:
            folder: In the place of the one that was given.
            numbers: Which file was which.
            is_done: Whether the run had said that all is well.
        """
        ...


def _content(luck: random.Random, name: str) -> bytes:
    return f"{name} {luck.random()}\n".encode() * luck.choice((0, 1, 1, 3, 90, 300))


class Pulling:
    """A pull: the first one, or one that has files to add, to replace and to delete."""

    def __init__(self, folder: Path, seed: int) -> None:
        luck = random.Random(f"pull {seed}")
        self._where = luck.choice(("mirror", "mirror", "new/place/mirror"))
        self._world = world = World(folder / self._where)
        names = [f"{luck.choice('abc')}/{number}.txt" for number in range(luck.choice((2, 5, 9)))]
        for name in names:
            world.put(name, _content(luck, name))
        world.publish()
        self._before: dict[str, bytes] = {}
        self._altered: dict[str, bytes] = {}
        self._is_first = luck.random() < 0.3
        if not self._is_first:
            world.pull()
            self._change(luck, names)
            world.publish()
            self._alter(luck)
            self._before = world.files_on_disk()
        self._after: dict[str, bytes] = {}
        self._moment = world.clock.now()
        self._numbers: Numbers = {}

    def _change(self, luck: random.Random, names: list[str]) -> None:
        for name in names:
            what = luck.random()
            if what < 0.2:
                self._world.remove(name)
            elif what < 0.6:
                self._world.put(name, _content(luck, name))
        for number in range(luck.randrange(4)):
            name = f"{luck.choice(('a', 'new', 'new/deep'))}/n{number}.txt"
            self._world.put(name, _content(luck, name))

    def _alter(self, luck: random.Random) -> None:
        """Let somebody write into a copy here that the Source has changed as well."""
        now = self._world.originals.contents()
        for path, body in sorted(self._world.files_on_disk().items()):
            if now.get(SOURCE + path, body) != body and luck.random() < 0.3:
                self._altered[path] = f"altered {luck.random()}".encode()
                (self._world.folder / path).write_bytes(self._altered[path])

    def do(self) -> None:
        with _numbered(self._numbers):
            assert self._world.pull().state is MirrorState.IN_SYNC
        self._after = self._world.files_on_disk()

    def begin_again(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def seen(self, state: State) -> None:
        pass

    def wrong(self, folder: Path, numbers: Numbers, *, is_done: bool) -> Iterator[str]:
        self._world.folder = folder / self._where
        self._world.clock.set(self._moment)
        files = self._world.files_on_disk()
        told: list[str] = []
        yield from self._wrong_files(files, is_done=is_done)

        def wake(port: Any) -> Any:
            if isinstance(port, SqliteMirrorState):
                told.extend(_wrong_rows(port, files, self._altered))
            return port

        self._world.before = wake
        try:
            with _numbered(_both(numbers, self._numbers)):
                report = self._world.pull()
        except ResourceSyncError as error:
            yield f"the next pull ended with: {error}"
            return
        yield from told
        if report.state is not MirrorState.IN_SYNC:
            yield f"the next pull left the mirror {report.state}"
        if self._world.files_on_disk() != self._after:
            yield "the next pull did not make the mirror equal"
        if list((self._world.folder / _OWN / "tmp").iterdir()):
            yield "the next pull left temporary files"

    def _wrong_files(self, files: Mapping[str, bytes], *, is_done: bool) -> Iterator[str]:
        for path, body in files.items():
            if body not in (self._before.get(path), self._after.get(path)):
                yield f"{path} holds bytes that it never had"
        thrown = [
            path.read_bytes()
            for name in ("trash", "quarantine")
            for path in (self._world.folder / _OWN / name).glob("*")
        ]
        for path, body in self._before.items():
            is_ours = path not in self._altered  # what is not goes to the quarantine first
            if path not in files and ((is_ours and path in self._after) or body not in thrown):
                yield f"{path} is lost"
            if not is_ours and body != files.get(path) and body not in thrown:
                yield f"what was written here to {path} is lost"
        if is_done and files != self._after:
            yield "the pull had ended well, and the mirror is not as it was"


def _wrong_rows(
    state: SqliteMirrorState, files: Mapping[str, bytes], altered: Mapping[str, bytes]
) -> Iterator[str]:
    state.check()
    for copy in state.copies():
        if is_forgotten(copy) or is_doubted(copy):
            continue
        body = files.get(copy.path)
        if body is not None and body == altered.get(copy.path):
            continue
        if body is None:
            yield f"{copy.path} is known and is not there"
        elif f"sha-256:{hashlib.sha256(body).hexdigest()}" not in copy.digests.split():
            yield f"{copy.path} is known with other bytes"


@contextmanager
def _numbered(numbers: Numbers) -> Iterator[None]:
    """Let each file have the inode number that it had before the power cut."""
    real = staged.signature_of

    def signature_of(info: Any) -> str:
        return _signature(real(info), numbers)

    modules: tuple[Any, ...] = (staged, copies, looking)
    for module in modules:
        module.signature_of = signature_of
    try:
        yield
    finally:
        for module in modules:
            module.signature_of = real


def _signature(found: str, numbers: Numbers) -> str:
    stem, _, number = found.rpartition(":")
    return f"{stem}:{numbers.get(int(number), number)}"


def _both(now: Numbers, before: Numbers) -> Numbers:
    """Return the numbers before the first of two power cuts."""
    return {number: before.get(known, known) for number, known in now.items()}


class _Documents(FolderDocuments):
    """Documents on a disk that was laid out anew."""

    def __init__(self, root: Path, numbers: Numbers) -> None:
        super().__init__(root)
        self._numbers = numbers

    def signature(self, name: str) -> str | None:
        found = super().signature(name)
        return None if found is None else _signature(found, self._numbers)


class Publishing:
    """A publication: the first one, or one of changes, with or without new Resource Lists."""

    def __init__(self, folder: Path, seed: int) -> None:
        luck = random.Random(f"publish {seed}")
        self._where = luck.choice(("tree", "new/place/tree"))
        self._root = folder / self._where
        (folder / "tree").mkdir()  # that is where the originals are; what is below `new` is made
        policy = Policy(
            rotate=luck.choice((0, _HOUR // 100, _HOUR)),
            rebase=luck.choice((0, 0, _HOUR // 50)),
            archive=luck.choice((0, 0, _HOUR)),
            keep=luck.choice((0, 0, _HOUR // 30)),
        )
        self._source = Source(limits=Limits(max_entries=luck.choice((3, 5, 50_000))), policy=policy)
        self._before: dict[str, str] | None = None
        self._since: datetime | None = None
        self._numbers: Numbers = {}
        for _ in range(luck.choice((0, 1, 2, 4))):
            self._change(luck)
            self.do()
            self._before, self._since = self._source.truth(), self._latest
        self._change(luck)
        self._views: dict[int, View] = {}

    def _change(self, luck: random.Random) -> None:
        names = "abcdefghi"
        for name in luck.sample(names, luck.randrange(1, 6)):
            if luck.random() < 0.3:
                self._source.remove(name)
            else:
                self._source.put(name, content=str(luck.random()))
        self._source.put("always", content=str(luck.random()))

    def do(self) -> None:
        self._publish(self._root, _Documents(self._root, self._numbers))
        self._latest = self._told
        self._between = [self._before, *self._states()]
        self._moment = self._source.clock.now()

    def _states(self) -> Iterator[dict[str, str]]:
        """Yield what may be told: changes are listed in their order, and in one list or more."""
        state = dict(self._before or {})
        for change in self._changes:
            assert change.time is not None
            if self._since is not None and change.time > self._since:
                state.pop(change.uri, None)
                for digest in change.resource.digests:
                    state[change.uri] = digest.value
                yield dict(state)
        yield self._source.truth()

    def begin_again(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def _publish(self, root: Path, documents: FolderDocuments) -> datetime | None:
        """Publish; return the last moment that the catalogue knew before."""
        with closing(FileCatalogue(root / _CATALOGUE, self._source.clock)) as catalogue:
            self._source.catalogue, self._source.documents = catalogue, documents
            known = catalogue.latest()
            self._source.publish()
            self._told = catalogue.latest()
            with catalogue.snapshot() as snapshot:
                self._changes = [change for _, change in snapshot.changes()]
        return known

    def seen(self, state: State) -> None:
        documents = MemoryDocuments()
        for path, body in files_of(state):
            name = path.removeprefix(f"{self._where}/")
            if not name.startswith(_OWN) and "/.rs-tmp-" not in name:
                documents.write(name, [body])
        if documents.open(DESCRIPTION) is not None:
            view = Reader(documents).view()
            self._views[hash((view.at, repr(view.changes)))] = view

    def wrong(self, folder: Path, numbers: Numbers, *, is_done: bool) -> Iterator[str]:
        root = folder / self._where
        documents = _Documents(root, _both(numbers, self._numbers))
        self._source.clock.set(self._moment)
        truth = self._source.truth()
        yield from self._wrong_view(documents, [truth] if is_done else self._between)
        try:
            known = self._publish(root, documents)
        except ResourceSyncError as error:
            yield f"the next publication ended with: {error}"
            return
        if is_done and known != self._latest:
            yield "the publication had ended well, and the catalogue does not know it"
        found = list(self._wrong_view(documents, [truth]))
        yield from found
        if not found:
            now = Reader(documents).view()
            for seen in self._views.values():
                yield from _wrong_sequel(seen, now)

    def _wrong_view(
        self, documents: FolderDocuments, truths: list[dict[str, str] | None]
    ) -> Iterator[str]:
        stream = documents.open(DESCRIPTION)
        if stream is None:
            if None not in truths:
                yield "there is no Source Description"
            return
        stream.close()
        try:
            current = Reader(documents).view().current()
        except (AssertionError, ResourceSyncError) as error:
            yield f"the documents do not agree: {error}"
            return
        if current not in truths:
            yield "the documents tell of what never was"


def _wrong_sequel(seen: View, now: View) -> Iterator[str]:
    """Let who had read go on reading."""
    reached = _reached(seen)
    if now.start > reached:
        return  # they will read the Resource List
    state = seen.current()
    for change in now.changes:
        assert change.time is not None
        if change.time > reached:
            state.pop(change.uri, None)
            for digest in change.resource.digests:
                state[change.uri] = digest.value
    if state != now.current():
        yield "who had read before and goes on reading has something else"


def _reached(view: View) -> datetime:
    return max([view.at, *(change.time for change in view.changes if change.time is not None)])


SCENES: Final[dict[str, Callable[[Path, int], Scene]]] = {"pull": Pulling, "publish": Publishing}
