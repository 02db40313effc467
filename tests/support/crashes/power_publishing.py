"""A publication whose power is cut: what is done, and what must hold afterwards."""

import random
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Final

from resourcesync.adapters.folder_documents import FolderDocuments
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import ResourceSyncError
from resourcesync.source.naming import DESCRIPTION
from resourcesync.source.paging import PageLimits
from resourcesync.source.publication_settings import Policy
from tests.support.crashes.crash_states import State, files_of
from tests.support.crashes.renumbered import Numbers, both, signature
from tests.support.in_memory import MemoryDocuments
from tests.support.sources.publishing import Reader, Source, View

_OWN: Final = ".resourcesync/"
_CATALOGUE: Final = ".resourcesync/catalogue.db"
_HOUR: Final = 3_600


class _Documents(FolderDocuments):
    def __init__(self, root: Path, numbers: Numbers) -> None:
        super().__init__(root)
        self._numbers = numbers

    def signature(self, name: str) -> str | None:
        found = super().signature(name)
        return None if found is None else signature(found, self._numbers)


class Publishing:
    """A publication: the first one, or one of changes, with or without new Resource Lists."""

    def __init__(self, folder: Path, seed: int) -> None:
        luck = random.Random(f"publish {seed}")
        self._where = luck.choice(("tree", "new/place/tree"))
        self._root = folder / self._where
        (folder / "tree").mkdir()  # that is where the originals are; what is below `new` is made
        policy = Policy(
            rotate=luck.choice((0, _HOUR / 100, _HOUR)),
            rebase_every=luck.choice((0, 0, _HOUR / 50)),
            archive=luck.choice((0, 0, _HOUR)),
            keep=luck.choice((0, 0, _HOUR / 30)),
        )
        self._source = Source(
            limits=PageLimits(max_entries=luck.choice((3, 5, 50_000))), policy=policy
        )
        self._before: dict[str, str] | None = None
        self._since: datetime | None = None
        self._numbers: Numbers = {}
        for _ in range(luck.choice((0, 1, 2, 4))):
            self._change(luck)
            self.do()
            self._before, self._since = self._source.truth(), self._latest
        self._change(luck)
        self._seen: dict[int, View] = {}
        self._end: View | None = None
        self._read_on: set[tuple[int, int]] = set()

    def _change(self, luck: random.Random) -> None:
        names = "abcdefghi"
        for name in luck.sample(names, luck.randrange(1, 6)):
            if luck.random() < 0.3:
                self._source.remove(name)
            else:
                self._source.put(name, content=str(luck.random()))
        self._source.put("always", content=str(luck.random()))

    def do(self) -> None:
        self._begun = self._source.clock.now()
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

    def set_before(self) -> None:
        self._source.clock.set(self._begun)

    def set_after(self) -> None:
        self._source.clock.set(self._moment)

    def attempt(self, folder: Path, numbers: Numbers) -> bool:
        root = folder / self._where
        self._publish(root, _Documents(root, both(numbers, self._numbers)))
        return True

    def begin_again(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def _publish(self, root: Path, documents: FolderDocuments) -> datetime | None:
        with closing(SourceCatalogue(root / _CATALOGUE, self._source.clock)) as catalogue:
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
            self._seen[hash((view.at, repr(view.changes)))] = view

    def wrong(self, folder: Path, numbers: Numbers, *, is_done: bool) -> Iterator[str]:
        root = folder / self._where
        documents = _Documents(root, both(numbers, self._numbers))
        self._end = None
        truth = self._source.truth()
        yield from self._wrong_view(documents, [truth] if is_done else self._between)
        try:
            known = self._publish(root, documents)
        except ResourceSyncError as error:
            yield f"the next publication ended with: {error}"
            return
        if is_done and self._latest and (known is None or known < self._latest):
            yield "the publication had ended well, and the catalogue does not know it"
        found = list(self._wrong_view(documents, [truth]))
        yield from found
        if not found:
            self._end = Reader(documents).view()
            yield from self.wrong_for_readers(self._end)

    def end(self) -> View | None:
        return self._end

    def wrong_for_readers(self, end: object) -> Iterator[str]:
        if isinstance(end, View):
            for name, seen in self._seen.items():
                if (name, id(end)) not in self._read_on:
                    yield from _wrong_sequel(seen, end)
                    self._read_on.add((name, id(end)))

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
    reached = max([seen.at, *(each.time for each in seen.changes if each.time is not None)])
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
