"""A system that tells of its resources, and forgets, fails and is slow when it is told to."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from resourcesync.errors import DiscontinuityError, SourceUnavailableError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.accounts import ChangeBatch, ResourceAccount

BEGINNING = datetime(2026, 3, 1, tzinfo=UTC)


def described(uri: str, body: bytes) -> Resource:
    digest = Digest("sha-256", hashlib.sha256(body).hexdigest())
    return Resource(uri=uri, length=len(body), digests=(digest,), lastmod=BEGINNING)


class TellingSystem:
    def __init__(self) -> None:
        self.resources: dict[str, Resource] = {}
        self.log: list[Change] = []
        self.forgotten = 0
        self.answers: int | None = None
        """After how many answers it fails."""

    def tell(self, kind: ChangeKind, resource: Resource) -> None:
        time = BEGINNING + timedelta(seconds=len(self.log))
        self.log.append(Change(kind=kind, time=time, resource=resource))
        if kind is ChangeKind.DELETED:
            self.resources.pop(resource.uri, None)
        else:
            self.resources[resource.uri] = resource

    def put(self, name: str, body: bytes) -> str:
        uri = f"https://h/{name}"
        known = uri in self.resources
        self.tell(ChangeKind.UPDATED if known else ChangeKind.CREATED, described(uri, body))
        return uri

    def remove(self, name: str) -> None:
        self.tell(ChangeKind.DELETED, Resource(uri=f"https://h/{name}"))

    @contextmanager
    def failing(self, after: int) -> Iterator[None]:
        self.answers = after
        yield
        self.answers = None

    def answer(self) -> None:
        if self.answers is not None:
            if not self.answers:
                raise SourceUnavailableError("it does not answer", uri="https://h/")
            self.answers -= 1


class TellingAccount(ResourceAccount):
    """An account of such a system, which answers some resources or changes at a time."""

    can_list_resources = True
    page = 20

    def __init__(self, system: TellingSystem) -> None:
        self.system = system

    def position(self) -> str:
        self.system.answer()
        return f"after {len(self.system.log)}"

    def resources(self) -> Iterator[Resource]:
        last = ""
        while page := self._after(last):
            yield from page
            last = page[-1].uri

    def _after(self, last: str) -> list[Resource]:
        self.system.answer()
        later = sorted(uri for uri in self.system.resources if uri > last)
        return [self.system.resources[uri] for uri in later[: self.page]]

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        number = int(after.removeprefix("after "))
        if number < self.system.forgotten:
            raise DiscontinuityError("these changes are forgotten")
        while True:
            self.system.answer()
            some = self.system.log[number : number + self.page]
            if not some:
                return
            number += len(some)
            yield ChangeBatch(f"after {number}", some)
