"""What a list promises of a version can be had: through changes, retention, bounds and kills."""

import hashlib
import random
from collections.abc import Callable, Container
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from resourcesync.adapters.folder_documents import FolderDocuments
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.catalogue import version_files
from resourcesync.catalogue.reader import CatalogueReader
from resourcesync.catalogue.version_files import FolderVersions
from resourcesync.documents.reader import read
from resourcesync.errors import DiskFullError
from resourcesync.model.entries import Change, Resource
from resourcesync.source.versions.versions_and_patches import parse_stamp
from tests.support.in_memory import ManualClock
from tests.support.sources.publishing import BASE, Reader, content_of

PLACE = BASE + "resourcesync/versions/"
PHASES = (Phase.explicit, Phase.generate)
NAMES = ("a.json", "b.xml", "c.txt", "d.txt")


class Life:
    def __init__(self, root: Path, seed: int, **chosen: object) -> None:
        self.root = root
        self.clock = ManualClock()
        self._chance = random.Random(seed)
        self._chosen: dict[str, object] = {"url": BASE, "versions": True}
        self._chosen |= chosen
        for name in (*NAMES, "e.txt"):
            (root / name).write_text(self._text(name))

    def change(self) -> None:
        for name in self._chance.sample(NAMES, self._chance.randrange(1, 4)):
            path = self.root / name
            if self._chance.random() < 0.2:
                path.unlink(missing_ok=True)
            else:
                path.write_text(self._text(name))

    def _text(self, name: str) -> str:
        number = self._chance.randrange(5)
        if name == "a.json":
            return f'{{"n": {number}, "pad": "{"x" * 200}"}}'
        return f"<r><i>{number}</i>{'<p/>' * 60}</r>" if name == "b.xml" else f"text {number}"

    def publish(self) -> None:
        self.clock.advance(hours=self._chance.choice([1, 30]))
        publish_tree(self.root, self._chosen, clock=self.clock, asked=None)

    def listed(self) -> list[Resource]:
        """Every resource that a list tells of, archived or not, as the lists tell it."""
        documents = FolderDocuments(self.root)
        versions = Reader(documents)
        versions.view()
        found: list[Resource] = []
        for name in set(versions.read):
            entries = read(BytesIO(content_of(documents, name)), uri=name).entries()
            told = [entry.resource if isinstance(entry, Change) else entry for entry in entries]
            found += [item for item in told if isinstance(item, Resource) and item.digests]
        return found

    def kept(self) -> dict[str, bytes]:
        place = self.root / ".resourcesync/versions"
        return {path.name: path.read_bytes() for path in place.rglob("*") if path.is_file()}

    def is_kept(self, resource: Resource, kept: Container[str]) -> bool:
        """Whether the memento of an entry is there, with the bytes that the entry tells."""
        link = resource.memento
        if link is None:
            return False
        stamp, _, path = link.href.removeprefix(PLACE).partition("/")
        moment = parse_stamp(stamp)
        assert moment is not None
        assert resource.uri == BASE + path
        past = CatalogueReader(self.root / ".resourcesync/catalogue.db")
        version = past.version(resource.uri, moment)
        if version is None or version.sha256 not in kept:
            return False
        assert [(digest.algorithm, digest.value) for digest in resource.digests] == [
            ("sha-256", version.sha256)
        ]
        for patch in resource.patches:
            assert version.patch is not None
            assert [digest.value for digest in patch.digests] == [version.patch.sha256]
            assert version.patch.sha256 in kept
            assert 0 < version.patch.length < version.length
        return True

    def check(self) -> None:
        kept = self.kept()
        assert all(self.is_kept(resource, kept) for resource in self.listed())
        for name, body in kept.items():
            if name.startswith(".tmp-"):
                continue  # what a killed run began has no name
            assert hashlib.sha256(body).hexdigest() == name


seeds = st.integers(0, 2**32)


@settings(max_examples=4, deadline=None, phases=PHASES)
@given(
    seed=seeds, keep=st.sampled_from([0, 3_600, 86_400]), archive=st.sampled_from([0, 3 * 86_400])
)
def test_what_a_list_tells_of_can_be_had(
    tmp_path_factory: pytest.TempPathFactory, seed: int, keep: float, archive: float
) -> None:
    life = Life(
        tmp_path_factory.mktemp("life"),
        seed,
        keep=keep,
        rotate=3_600,
        rebase_every=2 * 86_400,
        archive=archive,
        patches=True,
    )
    for _ in range(6):
        life.publish()
        life.check()
        life.change()


def test_a_version_that_no_list_tells_of_goes_after_a_day(tmp_path: Path) -> None:
    life = Life(tmp_path, 0, keep=3_600, rotate=3_600, rebase_every=3_600)
    for number in range(6):
        (tmp_path / "c.txt").write_text(f"version {number}")
        life.clock.advance(hours=60)
        life.publish()

    former = {f"version {number}".encode() for number in range(6)}
    kept = set(life.kept().values())
    assert b"version 5" in kept
    assert 0 < len(former & kept) < 5


@settings(max_examples=5, deadline=None, phases=PHASES)
@given(seed=seeds, most=st.sampled_from([20, 280, 450, 700]))
def test_versions_never_take_more_than_they_may(
    tmp_path_factory: pytest.TempPathFactory, seed: int, most: int
) -> None:
    life = Life(tmp_path_factory.mktemp("life"), seed, versions_max_bytes=most)
    for _ in range(5):
        life.publish()
        assert sum(map(len, life.kept().values())) <= most
        life.change()
    unpromised = [resource for resource in life.listed() if resource.memento is None]
    assert unpromised or len(life.kept()) > 0


def test_room_for_a_patch_is_not_made_of_the_version_that_it_leads_to(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    text = '{"n": %d, "pad": "' + "x" * 200 + '"}'
    path.write_text(text % 1)
    length = path.stat().st_size
    life = Life(tmp_path, 0, versions_max_bytes=2 * length + 20, patches=True)
    for name in (*NAMES, "e.txt"):
        (tmp_path / name).unlink()
    for number in (1, 2, 1):  # what it was is what it is again, and is kept once
        path.write_text(text % number)
        life.publish()

    [memento] = {
        resource.memento.href for resource in life.listed()[-1:] if resource.memento is not None
    }
    newest = CatalogueReader(tmp_path / ".resourcesync/catalogue.db").version_at(
        BASE + "a.json", None
    )
    assert newest is not None
    assert newest.sha256 in life.kept(), memento


class Dying(FolderVersions):
    """A store whose process is killed before, or after, one of its steps."""

    left, is_after = 0, False

    def store(self, stream: BinaryIO, sha256: str, length: int) -> bool:
        return bool(self._step(lambda: FolderVersions.store(self, stream, sha256, length)))

    def flush(self) -> None:
        self._step(lambda: FolderVersions.flush(self))

    def remove(self, contents: Any) -> None:
        self._step(lambda: FolderVersions.remove(self, contents))

    def _step(self, deed: Callable[[], object]) -> object:
        kind = type(self)
        kind.left -= 1
        if kind.left == 0 and kind.is_after:
            deed()
        if kind.left == 0:
            raise KeyboardInterrupt
        return deed()


@settings(max_examples=8, deadline=None, phases=PHASES)
@given(seed=seeds, step=st.integers(1, 14), is_after=st.booleans())
def test_a_run_that_is_killed_while_it_keeps_leaves_every_promise_true(
    tmp_path_factory: pytest.TempPathFactory, seed: int, step: int, is_after: bool
) -> None:
    life = Life(tmp_path_factory.mktemp("life"), seed, keep=3_600, rotate=3_600)
    life.publish()
    life.change()
    with pytest.MonkeyPatch.context() as patching:
        Dying.left, Dying.is_after = step, is_after
        patching.setattr(version_files, "FolderVersions", Dying)
        with suppress(KeyboardInterrupt):
            life.publish()
    life.check()
    life.publish()
    life.check()


def test_a_full_disk_while_keeping_publishes_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path, 1)
    life.publish()
    before = [resource.digests for resource in life.listed()]
    (tmp_path / "c.txt").write_text("new")

    def full(*_: object) -> bool:
        raise DiskFullError("no space left")

    with monkeypatch.context() as patching:
        patching.setattr(FolderVersions, "store", full)
        with pytest.raises(DiskFullError):
            life.publish()

    assert [resource.digests for resource in life.listed()] == before
    life.publish()
    life.check()
    assert b"new" in life.kept().values()


def patch_of(life: Life) -> str:
    return next((resource.patches[0].href for resource in life.listed() if resource.patches), "")


def test_a_patch_leads_from_what_was_listed_before_and_from_no_older_version(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.json"
    text = '{"n": %d, "pad": "' + "x" * 200 + '"}'
    life = Life(tmp_path, 0, patches=True)
    path.write_text(text % 101)
    life.publish()
    assert not patch_of(life)
    path.write_text(text % 102)
    publish_tree(tmp_path, {"versions": False, "patches": False}, clock=life.clock)
    path.write_text(text % 103)
    life.publish()
    assert not patch_of(life)

    path.write_text(text % 104)
    life.publish()
    assert patch_of(life)


def test_a_file_that_comes_back_is_a_version_of_its_own_and_stays(tmp_path: Path) -> None:
    life = Life(tmp_path, 0, keep=3_600, rotate=3_600, rebase_every=3_600)
    path = tmp_path / "back.txt"
    mementos = set()
    for is_there in (True, False, True):
        if is_there:
            path.write_text("back")
        else:
            path.unlink()
        life.publish()
        mementos |= {
            resource.memento.href
            for resource in life.listed()
            if resource.memento and resource.uri.endswith("back.txt")
        }
    assert len(mementos) == 2

    for number in range(5):
        (tmp_path / "c.txt").write_text(f"version {number}")
        life.clock.advance(hours=96)
        life.publish()
    assert b"back" in life.kept().values()
    life.check()
