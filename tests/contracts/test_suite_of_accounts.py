"""An account in memory keeps what every account must, and each check finds one that does not."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice

import pytest
from msgspec.structs import replace

from resourcesync.errors import SourceUnavailableError
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.accounts import ChangeBatch
from resourcesync.ports.catalogue import Posted
from resourcesync.testing import AccountSuite
from tests.support.accounts.telling import TellingAccount, TellingSystem
from tests.support.breaking import checks_of, finds


class TestTellingAccount(AccountSuite):
    is_writable = True
    many = 50
    system: TellingSystem

    @pytest.fixture
    def account(self) -> TellingAccount:
        self.system = TellingSystem()
        return TellingAccount(self.system)

    def put(self, name: str, content: bytes) -> str:
        return self.system.put(name, content)

    def remove(self, name: str) -> None:
        self.system.remove(name)

    def outage(self) -> AbstractContextManager[None]:
        return self.system.failing(0)

    def partial_failure(self) -> AbstractContextManager[None]:
        return self.system.failing(1)

    def expire_changes(self) -> bool:
        self.system.forgotten = len(self.system.log)
        return True


class TellsTwice(TellingAccount):
    def resources(self) -> Iterator[Resource]:
        for resource in super().resources():
            yield from (resource, resource)


class TellsNoLength(TellingAccount):
    def resources(self) -> Iterator[Resource]:
        return (replace(resource, length=None) for resource in super().resources())


class TellsWrongDigests(TellingAccount):
    def resources(self) -> Iterator[Resource]:
        other = self.system.resources
        return (
            replace(resource, digests=other[min(other)].digests)
            for resource in list(super().resources())
        )


class TellsLocalTime(TellingAccount):
    def resources(self) -> Iterator[Resource]:
        return (
            replace(resource, lastmod=resource.lastmod and resource.lastmod.replace(tzinfo=None))
            for resource in super().resources()
        )


class FailsWhenEmpty(TellingAccount):
    def resources(self) -> Iterator[Resource]:
        if not self.system.resources:
            raise SourceUnavailableError("it has nothing", uri="https://h/")
        return super().resources()


class RemembersResources(TellingAccount):
    known: list[Resource] | None = None

    def resources(self) -> Iterator[Resource]:
        self.known = self.known or list(super().resources())
        return iter(self.known)


class FirstAnswer(TellingAccount):
    def resources(self) -> Iterator[Resource]:
        return islice(super().resources(), self.page)


class ByNumber(TellingAccount):
    """Asks for pages by number: what vanishes meanwhile hides others."""

    def resources(self) -> Iterator[Resource]:
        done = 0
        while page := [
            self.system.resources[resource] for resource in sorted(self.system.resources)
        ][done:]:
            yield from page[: self.page]
            done += self.page


class SaysThatItCannot(TellingAccount):
    can_list_resources = False


class EmptyWhenDown(TellingAccount):
    """Takes a failure for the end."""

    def resources(self) -> Iterator[Resource]:
        try:
            yield from super().resources()
        except SourceUnavailableError:
            return


class SilentWhenDown(TellingAccount):
    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        try:
            yield from super().changes(after, wait)
        except SourceUnavailableError:
            return


class WithoutPosition(TellingAccount):
    def position(self) -> str:
        return ""


class Changed(TellingAccount):
    """Spoils what is told of changes."""

    def spoiled(self, changes: Sequence[Change]) -> Sequence[Change]:
        raise NotImplementedError

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        for lot in super().changes(after, wait):
            yield ChangeBatch(lot.position, self.spoiled(lot.changes))


class WithoutDeletions(Changed):
    def spoiled(self, changes: Sequence[Change]) -> Sequence[Change]:
        return [change for change in changes if change.kind is not ChangeKind.DELETED]


class Backwards(Changed):
    def spoiled(self, changes: Sequence[Change]) -> Sequence[Change]:
        return changes[::-1]


class FirstWord(Changed):
    """Tells each resource once, as it was first."""

    def spoiled(self, changes: Sequence[Change]) -> Sequence[Change]:
        return list({change.uri: change for change in reversed(changes)}.values())[::-1]


class WithoutUpdates(Changed):
    def spoiled(self, changes: Sequence[Change]) -> Sequence[Change]:
        return [change for change in changes if change.kind is not ChangeKind.UPDATED]


class AtTheEnd(TellingAccount):
    """Tells the end's position with the first changes."""

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        for lot in super().changes(after, wait):
            yield ChangeBatch(self.position(), lot.changes)


class InventsChanges(TellingAccount):
    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        yield from super().changes(after, wait)
        yield ChangeBatch(
            after, [Change(kind=ChangeKind.UPDATED, resource=Resource(uri="https://h/q"))]
        )


class ForgetsWhatItTold(TellingAccount):
    told = 0

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        start = max(self.told, int(after.removeprefix("after ")))
        for lot in super().changes(f"after {start}", wait):
            self.told = int(lot.position.removeprefix("after "))
            yield lot


class LastChanges(TellingAccount):
    """Has room for two changes, and says nothing of the others."""

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        number = max(len(self.system.log) - 2, int(after.removeprefix("after ")))
        return super().changes(f"after {number}", wait)


class GoesOnAnyhow(TellingAccount):
    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        number = max(self.system.forgotten, int(after.removeprefix("after ")))
        return super().changes(f"after {number}", wait)


class PostsOnlyNew(TellingAccount):
    def post(self, changes: Sequence[Change]) -> Posted:
        return super().post([change for change in changes if change.kind is ChangeKind.CREATED])


BROKEN: list[tuple[str, type[TellingAccount]]] = [
    ("test_every_resource_is_listed_once_with_its_metadata", TellsTwice),
    ("test_every_resource_is_listed_once_with_its_metadata", TellsNoLength),
    ("test_every_resource_is_listed_once_with_its_metadata", TellsWrongDigests),
    ("test_every_resource_is_listed_once_with_its_metadata", TellsLocalTime),
    ("test_an_empty_system_lists_no_resources", FailsWhenEmpty),
    ("test_a_second_listing_reflects_changes", RemembersResources),
    ("test_all_pages_of_resources_are_listed", FirstAnswer),
    ("test_unchanged_resources_are_listed_during_concurrent_changes", ByNumber),
    ("test_can_list_resources_is_reported_correctly", SaysThatItCannot),
    ("test_an_outage_raises_an_error", EmptyWhenDown),
    ("test_an_outage_raises_an_error", SilentWhenDown),
    ("test_a_truncated_listing_raises_an_error", EmptyWhenDown),
    ("test_only_a_change_log_has_a_position", WithoutPosition),
    ("test_changes_after_a_position_are_reported", WithoutDeletions),
    ("test_changes_after_a_position_are_reported", Backwards),
    ("test_changes_after_a_position_are_reported", FirstWord),
    ("test_reading_resumes_after_each_position", AtTheEnd),
    ("test_no_new_changes_are_reported_after_the_last_position", InventsChanges),
    ("test_an_interrupted_reader_can_read_again", ForgetsWhatItTold),
    ("test_a_listing_and_the_changes_since_are_complete", LastChanges),
    ("test_a_listing_and_the_changes_since_are_complete", WithoutUpdates),
    ("test_expired_changes_raise_a_discontinuity_error", GoesOnAnyhow),
    ("test_posted_changes_are_listed_and_posting_is_idempotent", PostsOnlyNew),
]


@pytest.mark.parametrize(("check", "kind"), BROKEN, ids=lambda item: getattr(item, "__name__", ""))
def test_an_account_that_breaks_a_promise_is_found(check: str, kind: type[TellingAccount]) -> None:
    suite = TestTellingAccount()
    suite.system = TellingSystem()

    assert finds(suite, check, kind(suite.system))


def test_each_check_of_accounts_has_an_account_that_fails_it() -> None:
    assert {check for check, _ in BROKEN} == checks_of(AccountSuite)
