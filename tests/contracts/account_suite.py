"""Checks of accounts (``resourcesync.ports.accounts.ResourceAccount``)."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import ClassVar, Final

import pytest

from resourcesync.errors import DiscontinuityError, ResourceSyncError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.accounts import ChangeBatch, ResourceAccount

_MAX_BATCH: Final = 10_000
_SHORT_WAIT: Final = 0.2

Contents = dict[str, bytes]
"""The contents of the resources in the other system, by URI."""


class AccountSuite(ABC):
    """The promises of an account, one check each.

    Derive a class whose name begins with ``Test`` in a module of tests; give it a pytest fixture
    ``account`` that returns an account of a system without resources, and the two methods by which
    resources come and go there. Names are short, of letters and digits.
    """

    can_list_resources: ClassVar[bool] = True
    """True if ``resources`` can list them all."""

    has_lengths: ClassVar[bool] = True
    """True if the system knows the length of each resource."""

    has_digests: ClassVar[bool] = True
    """True if the system knows a digest of each resource."""

    many: ClassVar[int] = 120
    """Number of resources that exceeds one answer of the system; make its pages small."""

    @abstractmethod
    def put(self, name: str, content: bytes) -> str:
        """Create a resource, or replace its bytes; return its URI, the same for each name."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a resource from the other system."""

    def wait_until_visible(self) -> None:  # noqa: B027 - most systems need nothing
        """Wait until the system reports all that was put or removed; by default at once."""

    def outage(self) -> AbstractContextManager[object] | None:
        """Make the system unreachable or refuse in the block; ``None`` if impossible."""
        return None

    def partial_failure(self) -> AbstractContextManager[object] | None:
        """Make the system fail after its first answers in the block; ``None`` if impossible."""
        return None

    def expire_changes(self) -> bool:
        """Make the system expire its changes so far; ``False`` if it cannot, or never does."""
        return False

    def test_a_second_listing_reflects_changes(self, account: ResourceAccount) -> None:
        held = self._fill("a", "b", "c")
        self._expect_listed(account, held)

        self.remove("b")
        held = {uri: body for uri, body in held.items() if body != b"first of b"}
        held[self.put("c", b"second of c")] = b"second of c"
        held[self.put("d", b"first of d")] = b"first of d"
        self.wait_until_visible()

        self._expect_listed(account, held)

    def test_unchanged_resources_are_listed_during_concurrent_changes(
        self, account: ResourceAccount
    ) -> None:
        self._require_listing()
        held = self._fill(*(f"r{number:05}" for number in range(self.many)))
        telling = iter(account.resources())

        begun = next(telling)
        gone = {uri for uri in sorted(held)[:: max(1, self.many // 2)] if uri != begun.uri}
        names = {uri: body.decode().rpartition(" ")[2] for uri, body in held.items()}
        for uri in gone:
            self.remove(names[uri])
        held[self.put("r", b"first of r")] = b"first of r"
        self.wait_until_visible()
        found = [begun.uri, *(resource.uri for resource in telling)]

        assert len(found) == len(set(found))
        lacking = set(held) - gone - {self._uri_of(held, "r")} - set(found)
        assert sorted(lacking)[:5] == []
        assert set(found) <= set(held)

    def test_an_outage_raises_an_error(self, account: ResourceAccount) -> None:
        position = self._position(account)
        trouble = self.outage()
        if trouble is None:
            pytest.skip("outage is not given")
        with trouble:
            if self.can_list_resources:
                with pytest.raises(ResourceSyncError):
                    list(account.resources())
            with pytest.raises(ResourceSyncError):
                list(account.changes(position, 0))

    def test_a_truncated_listing_raises_an_error(self, account: ResourceAccount) -> None:
        self._require_listing()
        self._fill(*(f"r{number:05}" for number in range(self.many)))
        trouble = self.partial_failure()
        if trouble is None:
            pytest.skip("partial_failure is not given")
        with trouble, pytest.raises(ResourceSyncError):
            list(account.resources())

    def test_changes_after_a_position_are_reported(self, account: ResourceAccount) -> None:
        before = self._fill("a", "b", "c")
        start = self._position(account)

        held = self._apply_changes()
        told = list(account.changes(start, 0))

        words = _last_reports(told)
        for uri, body in held.items():
            is_news = body is not None or uri in before
            assert uri in words or not is_news, f"the change of {uri} is reported"
            self._expect_reported(words.get(uri), body, uri)
        for batch in told:
            assert batch.position
            assert len(batch.changes) <= _MAX_BATCH
        times = [change.time for lot in told for change in lot.changes if change.time is not None]
        assert all(time.utcoffset() == timedelta(0) for time in times)
        assert times == sorted(times)

    def test_reading_resumes_after_each_position(self, account: ResourceAccount) -> None:
        start = self._position(account)
        held = self._fill(*(f"r{number:05}" for number in range(self.many)))
        told = list(account.changes(start, 0))

        for number, lot in enumerate(told):
            rest = account.changes(lot.position, 0)
            words = _last_reports([*told[: number + 1], *rest])
            for uri, body in held.items():
                self._expect_reported(words.get(uri), body, uri)

    def test_no_new_changes_are_reported_after_the_last_position(
        self, account: ResourceAccount
    ) -> None:
        start = self._position(account)
        held = self._fill("a", "b")
        told = list(account.changes(start, 0))
        position = told[-1].position if told else start

        again = list(account.changes(position, _SHORT_WAIT))

        words = _last_reports(again)
        assert set(words) <= set(held)
        for uri, word in words.items():
            self._expect_reported(word, held[uri], uri)

    def test_an_interrupted_reader_can_read_again(self, account: ResourceAccount) -> None:
        start = self._position(account)
        held = self._fill("a", "b", "c")
        for _ in account.changes(start, 0):
            break

        words = _last_reports(account.changes(start, 0))

        for uri, body in held.items():
            self._expect_reported(words.get(uri), body, uri)

    def test_a_listing_and_the_changes_since_are_complete(self, account: ResourceAccount) -> None:
        self._require_listing()
        self._fill("a", "b", "c")
        start = self._position(account)
        held: dict[str, bytes | None] = dict(self._fill("d"))
        words: dict[str, Resource | None] = {
            resource.uri: resource for resource in account.resources()
        }

        held |= self._apply_changes()
        words |= _last_reports(account.changes(start, 0))

        for uri, body in held.items():
            self._expect_reported(words.get(uri), body, uri)

    def test_expired_changes_raise_a_discontinuity_error(self, account: ResourceAccount) -> None:
        start = self._position(account)
        self._fill("a", "b")
        if not self.expire_changes():
            pytest.skip("expire_changes is not given")
        with pytest.raises(DiscontinuityError):
            list(account.changes(start, 0))

    def _require_listing(self) -> None:
        if not self.can_list_resources:
            pytest.skip("the account cannot list its resources")

    def _position(self, account: ResourceAccount) -> str:
        position = account.position()
        assert position
        return position

    def _fill(self, *names: str) -> Contents:
        held = {}
        for name in names:
            body = f"first of {name}".encode()
            held[self.put(name, body)] = body
        self.wait_until_visible()
        assert len(held) == len(names)
        return held

    def _apply_changes(self) -> dict[str, bytes | None]:
        """Replace ``a`` twice, put and remove ``e``, put ``f``, remove ``b``."""
        held: dict[str, bytes | None] = {}
        for name, body in (
            ("a", b"second of a"),
            ("e", b"first of e"),
            ("f", b"first of f"),
            ("a", b"the third of a"),
        ):
            held[self.put(name, body)] = body
        held[self.put("b", b"the end of b")] = None
        held[self.put("e", b"the end of e")] = None
        self.remove("b")
        self.remove("e")
        self.wait_until_visible()
        return held

    def _uri_of(self, held: Contents, name: str) -> str:
        return next(uri for uri, body in held.items() if body == f"first of {name}".encode())

    def _expect_listed(self, account: ResourceAccount, held: Contents) -> None:
        self._require_listing()
        told = list(account.resources())
        uris = sorted(resource.uri for resource in told)
        assert uris == sorted(held)
        for resource in told:
            self._expect_reported(resource, held[resource.uri], resource.uri)

    def _expect_reported(self, word: Resource | None, body: bytes | None, uri: str) -> None:
        if word is None or body is None:
            assert (word and word.uri) == (body and uri), f"the existence of {uri} is reported"
            return
        if self.has_lengths:
            assert word.length == len(body), f"the length of {uri} is reported"
        if self.has_digests:
            assert _usable(word.digests), f"a digest of {uri} is reported"
            assert _wrong(word.digests, body) == [], f"the digests of {uri} are of its bytes"
        assert word.lastmod is None or word.lastmod.utcoffset() == timedelta(0), (
            f"the time of {uri} is in UTC"
        )


def _last_reports(told: Iterable[ChangeBatch]) -> dict[str, Resource | None]:
    """Return the last report of each resource: ``None`` if it is deleted."""
    return {
        change.uri: None if change.kind is ChangeKind.DELETED else change.resource
        for lot in told
        for change in lot.changes
    }


def _wrong(digests: Iterable[Digest], body: bytes) -> list[Digest]:
    """Return the digests that are not those of the bytes, of the algorithms that we know."""
    found = (
        (digest, hashlib.new(digest.algorithm.replace("-", ""), body))
        for digest in _usable(digests)
    )
    return [digest for digest, hasher in found if hasher.hexdigest() != digest.value]


def _usable(digests: Iterable[Digest]) -> list[Digest]:
    return [digest for digest in digests if digest.is_usable]
