"""Follows a stream of activities that is in memory, and says what it finds in short."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime

from resourcesync.adapters.in_memory import ManualClock
from resourcesync.backends.iiif import open_account
from resourcesync.model.resources import Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.accounts import AccountOptions, ResourceAccount
from tests.support.accounts.activity_stream import ALL, HOME, ActivityStream, Json

NOW = datetime(2026, 3, 7, tzinfo=UTC)


@contextmanager
def opened(stream: ActivityStream, address: str = ALL, **values: str) -> Iterator[ResourceAccount]:
    options = AccountOptions(
        address=f"iiif:{address}",
        base_uri="https://mine.example/",
        memory="unused",
        out="unused",
        clock=ManualClock(NOW),
        fetcher=lambda _: nullcontext(stream.fetcher),
        values=values,
    )
    with open_account(options) as account:
        yield account


def listed(stream: ActivityStream, **values: str) -> list[str]:
    with opened(stream, **values) as account:
        return names(account.resources())


def names(resources: Iterator[Resource]) -> list[str]:
    return [
        resource.uri.removeprefix(f"{HOME}iiif/").removesuffix("/manifest")
        for resource in resources
    ]


def position_of(stream: ActivityStream) -> str:
    with opened(stream) as account:
        return account.position()


def changed(stream: ActivityStream, after: str, **values: str) -> list[tuple[str, str]]:
    with opened(stream, **values) as account:
        changes = [change for batch in account.changes(after, 0) for change in batch.changes]
    kinds = {ChangeKind.UPDATED: "+", ChangeKind.DELETED: "-"}
    return [(kinds[change.kind], names(iter([change.resource]))[0]) for change in changes]


def stream_of(*activities: Json, size: int = 3) -> ActivityStream:
    stream = ActivityStream(size)
    stream.activities.extend(activities)
    return stream


def plain(*kinds_and_names: str, size: int = 3) -> ActivityStream:
    """Return a stream of such activities as ``Create a``, a minute apart."""
    stream = ActivityStream(size)
    for text in kinds_and_names:
        kind, _, name = text.partition(" ")
        stream.add(kind, name)
    return stream


def reference(uri: str) -> Json:
    return {"id": uri, "type": "OrderedCollection"}
