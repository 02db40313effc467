"""Checks of stores (``resourcesync.ports.stores.Store``)."""

import hashlib
import unicodedata
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from io import BufferedReader, BytesIO, RawIOBase
from threading import Barrier, Event
from typing import Any, ClassVar, Final

import pytest

from resourcesync.errors import LockedError
from resourcesync.ports.stores import ObjectContent, Store, StoredObject
from tests.contracts.readers import digests_of, read_and_close, read_rest, run_repeatedly

_KEYS: Final = (
    "plain.txt",
    "a folder/with blanks.txt",
    "a/b/c/d/e/f/g.bin",
    "Case.txt",
    "case.txt",
    "100%25?x=1&y=%41#z+;,~'(){}[]!@$^.txt",
    unicodedata.normalize("NFC", "Ünïcödé/日本語/🙂.txt"),
    ".resourcesync/trash/20260301T120000.000000-0123456789abcdef-x",
    f"{'l' * 250}/{'o' * 250}/{'n' * 250}/{'g' * 247}",
)
_LARGE: Final = (1 << 20) + 4_321
_TIMES: Final = 15
_AT_ONCE: Final = 4
_MOST_AT_ONCE: Final = 64


class StoreSuite(ABC):
    """The promises of a store of copies, one check each.

    Derive a class whose name begins with ``Test`` in a module of tests; give it a pytest fixture
    ``store`` that returns an empty store, a prefix of its own in a shared one will do, and the
    methods below.
    """

    many: ClassVar[int] = 1_100
    """Number of keys that exceeds one page of a listing."""

    @abstractmethod
    def reopen(self, store: Store) -> Store:
        """Return the same store as another program would open it."""

    @abstractmethod
    def leave_stale_lock(self) -> float:
        """Leave a lock as a killed program does; return after how many seconds it has expired."""

    @abstractmethod
    def die_holding(self, holder: str) -> None:
        """Leave the lock of a named holder behind as a killed program does."""

    def test_a_stored_object_is_visible_to_all_clients(self, store: Store) -> None:
        version = _put(store, "a/b.txt", b"some bytes")

        assert version
        for eyes in (store, self.reopen(store)):
            there = StoredObject(version or "", 10)
            assert eyes.stat("a/b.txt") == there
            assert read_and_close(eyes.open("a/b.txt")) == b"some bytes"
            assert list(eyes.keys("")) == ["a/b.txt"]

    def test_a_key_never_written_does_not_exist(self, store: Store) -> None:
        assert store.stat("a.txt") is None
        assert store.open("a.txt") is None
        assert list(store.keys("")) == []
        assert not store.move("a.txt", "b.txt", "1")
        store.remove("a.txt")
        assert store.stat("b.txt") is None

    def test_every_kind_of_key_and_length_is_stored_unchanged(self, store: Store) -> None:
        bodies = {key: key.encode() for key in _KEYS} | {"empty": b"", "large": _pattern(_LARGE)}
        for key, body in bodies.items():
            assert _put(store, key, body), f"{key!r} is accepted"

        assert sorted(store.keys("")) == sorted(bodies)
        for key, body in bodies.items():
            there = store.stat(key)
            assert (there and there.length) == len(body), f"stat returns the length of {key!r}"
            assert read_and_close(store.open(key)) == body, f"{key!r} has its own bytes"

    def test_the_named_version_is_replaced_and_no_other(self, store: Store) -> None:
        first = _put(store, "a.txt", b"one")

        second = _put(store, "a.txt", b"two", replaces=first)

        assert second
        assert second != first
        for replaces in (None, first):
            assert _put(store, "a.txt", b"three", replaces=replaces) is None
        assert _put(store, "b.txt", b"three", replaces=second) is None
        assert store.stat("a.txt") == StoredObject(second, 3)
        assert read_and_close(store.open("a.txt")) == b"two"
        assert list(store.keys("")) == ["a.txt"]
        assert store.stat("b.txt") is None

    def test_one_of_several_concurrent_writers_succeeds(self, store: Store) -> None:
        eyes = [self.reopen(store) for _ in range(_AT_ONCE)]
        version: str | None = None
        for turn in range(_TIMES):
            bodies = [b"%d of turn %d" % (number, turn) for number in range(_AT_ONCE)]

            versions = _put_at_once(eyes, bodies, version)

            won = [number for number in range(_AT_ONCE) if versions[number] is not None]
            assert len(won) == 1
            version = versions[won[0]]
            assert read_and_close(store.open("a.txt")) == bodies[won[0]]

    def test_a_failed_put_leaves_the_old_version(self, store: Store) -> None:
        first = _put(store, "a.txt", b"old")
        body = _pattern(_LARGE)
        for content in (
            ObjectContent(BufferedReader(_FailingBytes(body)), len(body), digests_of(body)),
            ObjectContent(BytesIO(body[:-1]), len(body), digests_of(body)),
            ObjectContent(BytesIO(b"neW"), 3, digests_of(b"new")),
        ):
            for key, replaces in (("a.txt", first), ("b.txt", None)):
                content.stream.seek(0)
                with pytest.raises(Exception):  # noqa: B017, PT011 - each store has its own
                    store.put(key, content, replaces)

        assert store.stat("a.txt") == StoredObject(first or "", 3)
        assert read_and_close(store.open("a.txt")) == b"old"
        assert list(store.keys("")) == ["a.txt"]

    def test_a_reader_always_sees_a_whole_version(self, store: Store) -> None:
        bodies = [bytes([number]) * 200_000 for number in (1, 2)]
        version = _put(store, "a.txt", bodies[0])
        eyes = self.reopen(store)

        def read_whole() -> None:
            assert read_and_close(eyes.open("a.txt")) in bodies
            assert eyes.stat("a.txt") is not None

        with run_repeatedly(read_whole):
            for number in range(_TIMES):
                version = _put(store, "a.txt", bodies[number % 2], replaces=version)

    def test_an_open_version_does_not_change(self, store: Store) -> None:
        old, new = (bytes([number]) * _LARGE for number in (1, 2))
        version = _put(store, "a.txt", old)
        readers = [self.reopen(store).open("a.txt") for _ in range(2)]
        begun = [stream.read(10) for stream in readers if stream is not None]

        _put(store, "a.txt", new, replaces=version)
        ends = [read_rest(readers[0])]
        store.remove("a.txt")
        ends.append(read_rest(readers[1]))

        assert begun == [old[:10]] * 2
        assert all(end in (None, old[10:]) for end in ends)

    def test_a_moved_object_has_only_its_new_key(self, store: Store) -> None:
        _put(store, "other.txt", b"other")
        first = _put(store, "a/b.txt", b"first")
        version = _put(store, "a/b.txt", b"bytes", replaces=first)

        assert not store.move("a/b.txt", "c/d.txt", first or "")
        assert store.stat("a/b.txt") == StoredObject(version or "", 5)
        assert store.stat("c/d.txt") is None
        assert store.move("a/b.txt", "c/d.txt", version or "")

        assert store.stat("a/b.txt") is None
        there = store.stat("c/d.txt")
        assert (there and there.length) == 5
        assert read_and_close(store.open("c/d.txt")) == b"bytes"
        assert sorted(store.keys("")) == ["c/d.txt", "other.txt"]
        assert _put(store, "a/b.txt", b"next")

    def test_an_object_being_moved_always_has_a_key(self, store: Store) -> None:
        version = _put(store, "0.txt", b"precious" * 10_000)
        eyes = self.reopen(store)
        last = [0]

        def find_key() -> None:
            # The key it is at last is looked at last: so it cannot slip through between two looks.
            first = last[0]
            found = [eyes.stat(f"{number}.txt") for number in range(first, first + 2)]
            passed = first != last[0]
            assert passed or any(found)

        with run_repeatedly(find_key):
            for number in range(_TIMES):
                done = store.move(f"{number}.txt", f"{number + 1}.txt", version or "")
                assert done
                last[0] = number + 1
                there = store.stat(f"{number + 1}.txt")
                version = there and there.version

    def test_keys_are_listed_by_prefix_and_only_the_named_one_is_removed(
        self, store: Store
    ) -> None:
        for key in ("a/b/1", "a/b/2", "a/b/2.old", "a/bc", "b/a/b/1"):
            _put(store, key, b"x")

        store.remove("a/b/2")
        store.remove("a/b/2")

        assert store.stat("a/b/2") is None
        assert store.open("a/b/2") is None
        for prefix, expected in {
            "": ["a/b/1", "a/b/2.old", "a/bc", "b/a/b/1"],
            "a/b": ["a/b/1", "a/b/2.old", "a/bc"],
            "a/b/": ["a/b/1", "a/b/2.old"],
            "a/b/1": ["a/b/1"],
            "c": [],
        }.items():
            found = sorted(store.keys(prefix))
            assert found == expected, f"keys({prefix!r}) yields the keys with this prefix"

    def test_all_keys_are_listed_during_concurrent_changes(self, store: Store) -> None:
        names = [f"many/{number:05}" for number in range(self.many)]
        for key in names:
            _put(store, key, b"")
        listing = iter(store.keys("many/"))

        begun = next(listing)
        gone = {begun, names[len(names) // 2]}
        for key in gone:
            store.remove(key)
        _put(store, "many/zzz", b"")
        found = [begun, *listing]
        lacking = set(names) - set(found) - gone
        assert sorted(lacking)[:5] == []
        assert len(found) == len(set(found))
        assert set(found) <= {*names, "many/zzz"}

    def test_a_lock_excludes_a_second_holder_until_its_block_ends(self, store: Store) -> None:
        other = self.reopen(store)
        with pytest.raises(_LockBlockError), store.lock("the first"):  # noqa: PT012 - the block fails
            with pytest.raises(LockedError) as refusal, other.lock("the second holder"):
                pass
            assert "the first" in f"{refusal.value} {refusal.value.evidence}"
            assert _put(store, "a.txt", b"x")
            raise _LockBlockError

        with other.lock("the second holder"):
            pass
        with store.lock("the first"):
            pass

    def test_a_stale_lock_expires(self, store: Store) -> None:
        Event().wait(self.leave_stale_lock())

        with self.reopen(store).lock("who comes later"):
            pass

    def test_a_restarted_holder_reclaims_its_lock(self, store: Store) -> None:
        self.die_holding("the first")
        other = self.reopen(store)

        with pytest.raises(LockedError), other.lock("who comes later", "the second"):
            pass
        with other.lock("who comes again", "the first"):
            assert _put(other, "a.txt", b"x")

    def test_concurrent_calls_do_not_interfere(self, store: Store) -> None:
        threads = min(store.max_in_flight, _MOST_AT_ONCE)
        assert threads > 0
        bodies = {f"{number}.txt": b"%d" % number * 999 for number in range(_TIMES * threads)}

        def put_and_read(key: str) -> bytes | None:
            _put(store, key, bodies[key])
            return read_and_close(store.open(key))

        with ThreadPoolExecutor(threads) as pool:
            found = dict(zip(bodies, pool.map(put_and_read, bodies), strict=True))

        assert found == bodies


class _LockBlockError(Exception):
    """An error that no store raises by itself."""


class _FailingBytes(RawIOBase):
    """Bytes of which only the first half can be read, however they are read."""

    def __init__(self, body: bytes) -> None:
        self._bytes = BytesIO(body[: len(body) // 2])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._bytes.seek(offset, whence)

    def readinto(self, buffer: Any, /) -> int:
        count: int = self._bytes.readinto(buffer)
        if not count:
            raise OSError(5, "the disk cannot be read")
        return count


def _put(store: Store, key: str, body: bytes, replaces: str | None = None) -> str | None:
    return store.put(key, ObjectContent(BytesIO(body), len(body), digests_of(body)), replaces)


def _put_at_once(eyes: list[Store], bodies: list[bytes], replaces: str | None) -> list[str | None]:
    """Replace one version from several threads, all at the same moment."""
    together = Barrier(len(eyes))

    def one(number: int) -> str | None:
        together.wait(60)
        return _put(eyes[number], "a.txt", bodies[number], replaces)

    with ThreadPoolExecutor(len(eyes)) as pool:
        return list(pool.map(one, range(len(eyes))))


def _pattern(length: int) -> bytes:
    return hashlib.shake_128(b"any").digest(length)
