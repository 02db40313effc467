"""Each check of the suite of stores finds a store that breaks its promise."""

import io
import secrets
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import BinaryIO

import pytest

from resourcesync.errors import LockedError, StorageError
from resourcesync.ports.stores import ObjectContent, ReclaimableStore, Store, StoredObject
from resourcesync.testing import StoreSuite
from tests.support.breaking import checks_of, finds
from tests.support.storage.storing import ShelfStore

PAUSE = 0.01


def pause() -> None:
    Event().wait(PAUSE)


class Trial(StoreSuite):
    checks_digests = True
    many = 30

    def reopen(self, store: Store) -> Store:
        assert isinstance(store, ShelfStore)
        return type(store)(store.folder)

    def leave_stale_lock(self, store: Store) -> float:
        self.left = store.lock("who dies").__enter__()  # as a lease that nobody gives back
        return 0.0

    def die_holding_as(self, store: ReclaimableStore, holder: str) -> bool:
        self.guard = store.lock_as("who dies", holder)
        self.guard.__enter__()
        return True


class Able(ShelfStore):
    """Takes several calls at a time, and knows its holder again."""

    max_in_flight = 4

    @contextmanager
    def lock_as(self, who: str, holder: str) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        lease = self.folder / "held as"
        if lease.exists() and not self.may_take_over(lease.read_text(), holder):
            raise LockedError(f"{lease.read_text()} holds it")
        lease.write_text(holder)
        yield
        lease.unlink()

    def may_take_over(self, held: str, holder: str) -> bool:
        return held == holder


class TakenOverByAll(Able):
    def may_take_over(self, held: str, holder: str) -> bool:
        return True


class TakenOverByNobody(Able):
    def may_take_over(self, held: str, holder: str) -> bool:
        return False


class OneAtATime(Able):
    """Knows only of the last call what it is about."""

    key = ""

    def put(self, key: str, content: ObjectContent, replaces: str | None) -> str | None:
        self.key = key
        pause()
        return super().put(self.key, content, replaces)


class OfItsOwn(ShelfStore):
    """What is put is seen by the program that put it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / secrets.token_hex(4))


class WithoutNone(ShelfStore):
    def open(self, key: str) -> BinaryIO | None:
        return super().open(key) or io.BytesIO()


class Named(ShelfStore):
    """Keys are changed into names."""

    def name(self, key: str) -> str:
        raise NotImplementedError

    def put(self, key: str, content: ObjectContent, replaces: str | None) -> str | None:
        return super().put(self.name(key), content, replaces)

    def stat(self, key: str) -> StoredObject | None:
        return super().stat(self.name(key))

    def open(self, key: str) -> BinaryIO | None:
        return super().open(self.name(key))


class WithoutCase(Named):
    def name(self, key: str) -> str:
        return key.lower()


class Decomposed(Named):
    def name(self, key: str) -> str:
        return unicodedata.normalize("NFD", key)


class Short(Named):
    def name(self, key: str) -> str:
        return key[:255]


class FirstBlock(ShelfStore):
    def open(self, key: str) -> BinaryIO | None:
        found = super().open(key)
        return found and io.BytesIO(found.read(1 << 20))


class ByLength(ShelfStore):
    """A version tells how long the bytes are, and nothing else."""

    def stat(self, key: str) -> StoredObject | None:
        found = super().stat(key)
        return found and StoredObject(str(found.length), found.length)

    def put(self, key: str, content: ObjectContent, replaces: str | None) -> str | None:
        there = ShelfStore.stat(self, key)
        stale = there is not None and replaces != str(there.length)
        done = super().put(key, content, None if there is None or stale else there.version)
        return done and str(content.length)


class Unconditional(ShelfStore):
    def put(self, key: str, content: ObjectContent, replaces: str | None) -> str | None:
        there = self.stat(key)
        return super().put(key, content, None if there is None else there.version)


class LooksFirst(ShelfStore):
    """Decides, and then replaces whatever is there."""

    def put(self, key: str, content: ObjectContent, replaces: str | None) -> str | None:
        there = self.stat(key)
        if (None if there is None else there.version) != replaces:
            return None
        pause()
        self.spoil(key, content.stream.read())
        found = self.stat(key)
        return found and found.version


class TakesParts(ShelfStore):
    def put(self, key: str, content: ObjectContent, replaces: str | None) -> str | None:
        body = content.stream.read()
        return super().put(key, ObjectContent(io.BytesIO(body), len(body), ()), replaces)


class ClearsFirst(ShelfStore):
    """Removes what is replaced, and then puts."""

    def put(self, key: str, content: ObjectContent, replaces: str | None) -> str | None:
        there = self.stat(key)
        if (None if there is None else there.version) != replaces:
            return None
        self.remove(key)
        pause()
        return super().put(key, content, None)


class Trusting(ShelfStore):
    def put(self, key: str, content: ObjectContent, replaces: str | None) -> str | None:
        return super().put(key, content._replace(digests=()), replaces)


class ByRanges(ShelfStore):
    """Reads each block of what is at the key then."""

    def open(self, key: str) -> BinaryIO | None:
        whole = super().open
        if whole(key) is None:
            return None

        class Blocks(io.RawIOBase):
            at = 0

            def readable(self) -> bool:
                return True

            def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # of 3.11
                stream = whole(key) or io.BytesIO()
                stream.seek(self.at)
                count = stream.readinto(buffer)  # type: ignore[attr-defined]  # it is BytesIO
                self.at += count
                return int(count)

        return io.BufferedReader(Blocks(), 1 << 16)  # type: ignore[type-var]  # of 3.11


class Copies(ShelfStore):
    def move(self, key: str, to: str, version: str) -> bool:
        there, stream = self.stat(key), self.open(key)
        if there is None or stream is None or there.version != version:
            return False
        self.spoil(to, stream.read())
        return True


class MovesAnything(ShelfStore):
    def move(self, key: str, to: str, version: str) -> bool:
        there = self.stat(key)
        return super().move(key, to, there.version if there else "")


class RemovesFirst(ShelfStore):
    def move(self, key: str, to: str, version: str) -> bool:
        stream = self.open(key)
        assert stream is not None
        self.remove(key)
        pause()
        self.spoil(to, stream.read())
        return True


class RemovesMore(ShelfStore):
    def remove(self, key: str) -> None:
        for other in list(self.keys(key)):
            super().remove(other)


class RemovesOnce(ShelfStore):
    def remove(self, key: str) -> None:
        if self.stat(key) is None:
            raise StorageError(key)
        super().remove(key)


class ByFolder(ShelfStore):
    def keys(self, prefix: str) -> Iterator[str]:
        folder = prefix if prefix.endswith("/") or not prefix else f"{prefix}/"
        return (key for key in super().keys(prefix) if key.startswith(folder))


class FirstPage(ShelfStore):
    def keys(self, prefix: str) -> Iterator[str]:
        return iter([*super().keys(prefix)][:20])


class ByOffset(ShelfStore):
    """Lists pages by number: what is removed meanwhile hides others."""

    def keys(self, prefix: str) -> Iterator[str]:
        done = 0
        while page := [*super().keys(prefix)][done : done + 10]:
            yield from page
            done += len(page)


class HeldByAll(ShelfStore):
    @contextmanager
    def lock(self, who: str) -> Iterator[None]:
        yield


class HeldByNobody(ShelfStore):
    @contextmanager
    def lock(self, who: str) -> Iterator[None]:
        try:
            with super().lock(who):
                yield
        except LockedError:
            raise LockedError("it is held") from None


class HeldForEver(ShelfStore):
    """A file says that it is held, and only who ends in good order takes it away."""

    @contextmanager
    def lock(self, who: str) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        lease = self.folder / "held"
        if lease.exists():
            raise LockedError(f"{lease.read_text()} holds it")
        lease.write_text(who)
        yield
        lease.unlink()


BROKEN: list[tuple[str, type[ShelfStore]]] = [
    ("test_a_stored_object_is_visible_to_all_clients", OfItsOwn),
    ("test_a_key_never_written_does_not_exist", WithoutNone),
    ("test_every_kind_of_key_is_stored_unchanged", WithoutCase),
    ("test_every_kind_of_key_is_stored_unchanged", Decomposed),
    ("test_every_kind_of_key_is_stored_unchanged", Short),
    ("test_empty_and_large_objects_are_stored", FirstBlock),
    ("test_the_named_version_is_replaced", ByLength),
    ("test_an_unknown_version_is_not_replaced", Unconditional),
    ("test_one_of_several_concurrent_writers_succeeds", LooksFirst),
    ("test_a_failed_put_leaves_the_old_version", TakesParts),
    ("test_a_failed_put_leaves_the_old_version", ClearsFirst),
    ("test_bytes_that_do_not_match_their_digests_are_refused", Trusting),
    ("test_a_reader_always_sees_a_whole_version", ClearsFirst),
    ("test_an_open_version_does_not_change", ByRanges),
    ("test_a_moved_object_has_only_its_new_key", Copies),
    ("test_another_version_is_not_moved", MovesAnything),
    ("test_an_object_being_moved_always_has_a_key", RemovesFirst),
    ("test_only_the_named_key_is_removed", RemovesMore),
    ("test_only_the_named_key_is_removed", RemovesOnce),
    ("test_keys_are_listed_by_prefix", ByFolder),
    ("test_all_keys_are_listed_during_concurrent_changes", FirstPage),
    ("test_all_keys_are_listed_during_concurrent_changes", ByOffset),
    ("test_a_lock_excludes_a_second_holder", HeldByAll),
    ("test_a_lock_excludes_a_second_holder", HeldByNobody),
    ("test_a_lock_is_released_when_its_block_fails", HeldForEver),
    ("test_a_stale_lock_expires", HeldForEver),
    ("test_a_restarted_holder_reclaims_its_lock", TakenOverByAll),
    ("test_a_restarted_holder_reclaims_its_lock", TakenOverByNobody),
    ("test_concurrent_calls_do_not_interfere", OneAtATime),
]


@pytest.mark.parametrize(("check", "kind"), BROKEN, ids=lambda item: getattr(item, "__name__", ""))
def test_a_store_that_breaks_a_promise_is_found(
    check: str, kind: type[ShelfStore], tmp_path: Path
) -> None:
    assert finds(Trial(), check, kind(tmp_path))


@pytest.mark.parametrize("check", sorted(checks_of(StoreSuite)))
@pytest.mark.parametrize("kind", [ShelfStore, Able])
def test_a_store_that_keeps_its_promises_is_not(
    check: str, kind: type[ShelfStore], tmp_path: Path
) -> None:
    assert not finds(Trial(), check, kind(tmp_path))


def test_each_check_of_stores_has_a_store_that_fails_it() -> None:
    assert {check for check, _ in BROKEN} == checks_of(StoreSuite)
