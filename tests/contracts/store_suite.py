"""Checks of stores (``resourcesync.ports.stores.Store``)."""

import hashlib
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from io import BufferedReader, BytesIO, RawIOBase
from threading import Barrier, Event
from typing import Any, BinaryIO, ClassVar, Final

import pytest

from resourcesync.errors import LockedError
from resourcesync.model.digests import Digest
from resourcesync.ports.stores import (
    ObjectContent,
    Store,
    StoredObject,
)
from tests.contracts.expectations import (
    expect,
    expect_equal,
    expect_error,
    read_and_close,
    run_repeatedly,
)

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


class StoreSuite:
    """The promises of a store of copies, one check each.

    Derive a class whose name begins with ``Test`` in a module of tests, and give it a pytest
    fixture ``store`` that returns an empty store; a prefix of its own in a shared one will do.
    """

    has_conditional_writes: ClassVar[bool] = True
    """True if comparison and replacement are one step, as the port requires. Otherwise a second
    program that writes the same keys may be overwritten."""

    checks_digests: ClassVar[bool] = False
    """True if bytes that do not match ``ContentOpener.digests`` are refused."""

    many: ClassVar[int] = 1_100
    """Number of keys that exceeds one page of a listing."""

    def reopen(self, store: Store) -> Store:
        """Return the same store as another program would open it; by default the same object."""
        return store

    def leave_stale_lock(self, store: Store) -> float | None:
        """Leave a lock behind as a killed program does, if possible.

        Returns:
            Seconds after which it must have expired; ``None`` if impossible.
        """
        del store
        return None

    def die_holding_as(self, store: Store, holder: str) -> bool:
        """Leave the lock of a named holder behind as a killed program does.

        Returns:
            True if it was left; ``False`` if impossible.
        """
        del store, holder
        return False

    def test_a_stored_object_is_visible_to_all_clients(self, store: Store) -> None:
        """`put` returns its version; `stat`, `open` and `keys` show it at once, to all clients."""
        version = _put(store, "a/b.txt", b"some bytes")

        expect(version, "put returns a version that is not empty")
        for eyes in (store, self.reopen(store)):
            there = StoredObject(version or "", 10)
            expect_equal(eyes.stat("a/b.txt"), there, "stat returns the stored object")
            expect_equal(
                read_and_close(eyes.open("a/b.txt")), b"some bytes", "open reads the bytes"
            )
            expect_equal(list(eyes.keys("")), ["a/b.txt"], "keys lists the new key")

    def test_a_key_never_written_does_not_exist(self, store: Store) -> None:
        """All methods report a key that was never put as missing; none raises."""
        expect_equal(store.stat("a.txt"), None, "stat returns None for nothing")
        expect(store.open("a.txt") is None, "open returns None for nothing")
        expect_equal(list(store.keys("")), [], "an empty store has no keys")
        expect(not store.move("a.txt", "b.txt", "1"), "nothing can be moved from a missing key")
        store.remove("a.txt")
        expect_equal(store.stat("b.txt"), None, "reading creates nothing")

    def test_every_kind_of_key_is_stored_unchanged(self, store: Store) -> None:
        """Blanks, signs, other scripts, upper case and 1,000 bytes stay unchanged and distinct."""
        for key in _KEYS:
            expect(_put(store, key, key.encode()), f"{key!r} is accepted")

        expect_equal(sorted(store.keys("")), sorted(_KEYS), "keys come back as they were given")
        for key in _KEYS:
            expect_equal(
                read_and_close(store.open(key)), key.encode(), f"{key!r} has its own bytes"
            )

    def test_empty_and_large_objects_are_stored(self, store: Store) -> None:
        """Empty and large objects are read back unchanged."""
        large = _pattern(_LARGE)
        _put(store, "empty", b"")
        _put(store, "large", large)

        for key, body in (("empty", b""), ("large", large)):
            there = store.stat(key)
            expect_equal(there and there.length, len(body), f"stat returns the length of {key}")
            expect(read_and_close(store.open(key)) == body, f"the bytes of {key} are stored")

    def test_the_named_version_is_replaced(self, store: Store) -> None:
        """`put` replaces the named version; other bytes have another version."""
        first = _put(store, "a.txt", b"old")

        second = _put(store, "a.txt", b"new", replaces=first)

        expect(second and second != first, "other bytes of the same length have another version")
        expect_equal(
            store.stat("a.txt"), StoredObject(second or "", 3), "stat returns the new version"
        )
        expect_equal(read_and_close(store.open("a.txt")), b"new", "the new bytes are stored")
        expect_equal(list(store.keys("")), ["a.txt"], "a key is listed once")

    def test_an_unknown_version_is_not_replaced(self, store: Store) -> None:
        """`put` returns `None` and changes nothing if another version, or none, is stored."""
        first = _put(store, "a.txt", b"one")
        second = _put(store, "a.txt", b"two", replaces=first)

        for replaces in (None, first):
            found = _put(store, "a.txt", b"three", replaces=replaces)
            expect_equal(found, None, "put refuses another version")
        gone = _put(store, "b.txt", b"three", replaces=second)

        expect_equal(gone, None, "put refuses to replace a missing version")
        expect_equal(store.stat("a.txt"), StoredObject(second or "", 3), "the version is untouched")
        expect_equal(read_and_close(store.open("a.txt")), b"two", "the bytes are untouched")
        expect_equal(store.stat("b.txt"), None, "nothing was stored at the missing key")

    def test_one_of_several_concurrent_writers_succeeds(self, store: Store) -> None:
        """Comparison and replacement are one atomic step, whoever else writes."""
        if not self.has_conditional_writes:
            pytest.skip("the store has no conditional writes")
        eyes = [self.reopen(store) for _ in range(_AT_ONCE)]
        version: str | None = None
        for turn in range(_TIMES):
            bodies = [b"%d of turn %d" % (number, turn) for number in range(_AT_ONCE)]

            versions = _put_at_once(eyes, bodies, version)

            won = [number for number in range(_AT_ONCE) if versions[number] is not None]
            expect_equal(len(won), 1, "of several who replace one version, one succeeds")
            version = versions[won[0]]
            expect_equal(read_and_close(store.open("a.txt")), bodies[won[0]], "its bytes are read")

    def test_a_failed_put_leaves_the_old_version(self, store: Store) -> None:
        """If the bytes cannot be read, or are too few, nothing is replaced."""
        first = _put(store, "a.txt", b"old")
        body = _pattern(_LARGE)
        short = ObjectContent(BytesIO(body[:-1]), len(body), _digests(body))
        for content in (
            ObjectContent(BufferedReader(_FailingBytes(body)), len(body), _digests(body)),
            short,
        ):
            for key, replaces in (("a.txt", first), ("b.txt", None)):
                content.stream.seek(0)
                with expect_error(Exception, "put raises when bytes are missing"):
                    store.put(key, content, replaces)

        expect_equal(
            store.stat("a.txt"), StoredObject(first or "", 3), "the old version is unchanged"
        )
        expect_equal(read_and_close(store.open("a.txt")), b"old", "its bytes are untouched")
        expect_equal(list(store.keys("")), ["a.txt"], "no part of the failed write is stored")

    def test_bytes_that_do_not_match_their_digests_are_refused(self, store: Store) -> None:
        """A store that verifies uploads refuses bytes that do not match their digests."""
        if not self.checks_digests:
            pytest.skip("the store does not check digests")
        first = _put(store, "a.txt", b"old")

        with expect_error(Exception, "bytes that do not match their digests are refused"):
            store.put("a.txt", ObjectContent(BytesIO(b"neW"), 3, _digests(b"new")), first)

        expect_equal(read_and_close(store.open("a.txt")), b"old", "the old version is unchanged")

    def test_a_reader_always_sees_a_whole_version(self, store: Store) -> None:
        """During a replacement, readers see the whole old version or the whole new one."""
        bodies = [bytes([number]) * 200_000 for number in (1, 2)]
        version = _put(store, "a.txt", bodies[0])
        eyes = self.reopen(store)

        def read_whole() -> None:
            expect(read_and_close(eyes.open("a.txt")) in bodies, "a reader sees one whole version")
            expect(eyes.stat("a.txt") is not None, "the key always exists")

        with run_repeatedly(read_whole):
            for number in range(_TIMES):
                version = _put(store, "a.txt", bodies[number % 2], replaces=version)

    def test_an_open_version_does_not_change(self, store: Store) -> None:
        """A reader of a replaced or removed version gets its rest or fails, never a mixture."""
        old, new = (bytes([number]) * _LARGE for number in (1, 2))
        version = _put(store, "a.txt", old)
        readers = [self.reopen(store).open("a.txt") for _ in range(2)]
        begun = [stream.read(10) for stream in readers if stream is not None]

        _put(store, "a.txt", new, replaces=version)
        ends = [_rest(readers[0])]
        store.remove("a.txt")
        ends.append(_rest(readers[1]))

        expect_equal(begun, [old[:10]] * 2, "a reader begins with the present version")
        expect(all(end in (None, old[10:]) for end in ends), "a reader has one version to its end")

    def test_a_moved_object_has_only_its_new_key(self, store: Store) -> None:
        """`move` moves the bytes to the other key; the old one is free."""
        _put(store, "other.txt", b"other")
        version = _put(store, "a/b.txt", b"bytes")

        expect(store.move("a/b.txt", "c/d.txt", version or ""), "move returns True")

        expect_equal(store.stat("a/b.txt"), None, "the old key is empty")
        there = store.stat("c/d.txt")
        expect_equal(there and there.length, 5, "the new key has it")
        expect_equal(read_and_close(store.open("c/d.txt")), b"bytes", "the new key has its bytes")
        expect_equal(sorted(store.keys("")), ["c/d.txt", "other.txt"], "nothing else moved")
        expect(_put(store, "a/b.txt", b"next"), "the old key is free again")

    def test_another_version_is_not_moved(self, store: Store) -> None:
        """`move` returns `False` and moves nothing if the version was replaced."""
        first = _put(store, "a.txt", b"one")
        second = _put(store, "a.txt", b"two", replaces=first)

        expect(not store.move("a.txt", "b.txt", first or ""), "move refuses another version")

        expect_equal(
            store.stat("a.txt"), StoredObject(second or "", 3), "the object stays in place"
        )
        expect_equal(store.stat("b.txt"), None, "the new key is empty")

    def test_an_object_being_moved_always_has_a_key(self, store: Store) -> None:
        """During a move, a reader finds the object at one key at least."""
        version = _put(store, "0.txt", b"precious" * 10_000)
        eyes = self.reopen(store)
        last = [0]

        def find_key() -> None:
            # The key it is at last is looked at last: so it cannot slip through between two looks.
            first = last[0]
            found = [eyes.stat(f"{number}.txt") for number in range(first, first + 2)]
            passed = first != last[0]
            expect(passed or any(found), "an object being moved always has a key")

        with run_repeatedly(find_key):
            for number in range(_TIMES):
                done = store.move(f"{number}.txt", f"{number + 1}.txt", version or "")
                expect(done, "it is moved")
                last[0] = number + 1
                there = store.stat(f"{number + 1}.txt")
                version = there and there.version

    def test_only_the_named_key_is_removed(self, store: Store) -> None:
        """`remove` removes one key, not those with it as prefix; twice is no error."""
        for key in ("a.txt", "a.txt.old", "b/a.txt"):
            _put(store, key, b"x")

        store.remove("a.txt")
        store.remove("a.txt")

        expect_equal(store.stat("a.txt"), None, "the key is removed")
        expect(store.open("a.txt") is None, "it cannot be opened any more")
        expect_equal(sorted(store.keys("")), ["a.txt.old", "b/a.txt"], "the others still exist")

    def test_keys_are_listed_by_prefix(self, store: Store) -> None:
        """`keys` yields each key with a prefix once, and no others."""
        for key in ("a/b/1", "a/b/2", "a/bc", "b/a/b/1"):
            _put(store, key, b"x")

        for prefix, expected in {
            "": ["a/b/1", "a/b/2", "a/bc", "b/a/b/1"],
            "a/b": ["a/b/1", "a/b/2", "a/bc"],
            "a/b/": ["a/b/1", "a/b/2"],
            "a/b/2": ["a/b/2"],
            "c": [],
        }.items():
            found = sorted(store.keys(prefix))
            expect_equal(found, expected, f"keys({prefix!r}) yields the keys with this prefix")

    def test_all_keys_are_listed_during_concurrent_changes(self, store: Store) -> None:
        """A key that was put before and stays is listed once, however many there are."""
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
        expect_equal(sorted(lacking)[:5], [], "older keys are listed")
        expect_equal(len(found), len(set(found)), "no key is listed twice")
        expect(set(found) <= {*names, "many/zzz"}, "no other key is listed")

    def test_a_lock_excludes_a_second_holder(self, store: Store) -> None:
        """`lock` refuses a second holder and names the first, which can go on."""
        other = self.reopen(store)
        with store.lock("the first holder"):
            with (
                expect_error(LockedError, "a second holder is refused") as refusal,
                other.lock("the second holder"),
            ):
                pass
            expect("the first holder" in refusal.message, "the message names the holder")
            expect(_put(store, "a.txt", b"x"), "the holder can write")

        with other.lock("the second holder"):
            pass

    def test_a_lock_is_released_when_its_block_fails(self, store: Store) -> None:
        """An error of the block propagates, and the next holder gets the lock."""
        with (
            expect_error(_LockBlockError, "an error of the block propagates"),
            store.lock("who fails"),
        ):
            raise _LockBlockError

        with self.reopen(store).lock("who comes next"):
            pass

    def test_a_stale_lock_expires(self, store: Store) -> None:
        """After a program was killed, another gets the lock before long."""
        seconds = self.leave_stale_lock(store)
        if seconds is None:
            pytest.skip("leave_stale_lock is not given")

        Event().wait(seconds)

        with self.reopen(store).lock("who comes later"):
            pass

    def test_a_restarted_holder_reclaims_its_lock(self, store: Store) -> None:
        """A holder of another name is still refused."""
        if not self.die_holding_as(store, "the first"):
            pytest.skip("die_holding_as is not given")
        other = self.reopen(store)

        with (
            expect_error(LockedError, "a holder of another name is refused"),
            other.lock("who comes later", "the second"),
        ):
            pass
        with other.lock("who comes again", "the first"):
            expect(_put(other, "a.txt", b"x"), "the holder can write")

    def test_concurrent_calls_do_not_interfere(self, store: Store) -> None:
        """With `max_in_flight`: that many calls put and read at a time, each its own key."""
        threads = min(store.max_in_flight, _MOST_AT_ONCE)
        expect(threads > 0, "max_in_flight is at least 1")
        bodies = {f"{number}.txt": b"%d" % number * 999 for number in range(_TIMES * threads)}

        def put_and_read(key: str) -> bytes | None:
            _put(store, key, bodies[key])
            return read_and_close(store.open(key))

        with ThreadPoolExecutor(threads) as pool:
            found = dict(zip(bodies, pool.map(put_and_read, bodies), strict=True))

        expect_equal(found, bodies, "each call reads what it put")


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
    return store.put(key, ObjectContent(BytesIO(body), len(body), _digests(body)), replaces)


def _put_at_once(eyes: list[Store], bodies: list[bytes], replaces: str | None) -> list[str | None]:
    """Replace one version from several threads, all at the same moment."""
    together = Barrier(len(eyes))

    def one(number: int) -> str | None:
        together.wait(60)
        return _put(eyes[number], "a.txt", bodies[number], replaces)

    with ThreadPoolExecutor(len(eyes)) as pool:
        return list(pool.map(one, range(len(eyes))))


def _digests(body: bytes) -> tuple[Digest, ...]:
    return (
        Digest("md5", hashlib.md5(body, usedforsecurity=False).hexdigest()),
        Digest("sha-256", hashlib.sha256(body).hexdigest()),
    )


def _pattern(length: int) -> bytes:
    """Bytes whose pieces are not alike."""
    return hashlib.shake_128(b"any").digest(length)


def _rest(stream: BinaryIO | None) -> bytes | None:
    try:
        return read_and_close(stream)
    except Exception:  # noqa: BLE001 - a store may raise anything
        return None
