"""Publication of other systems (accounts) by way of a catalogue, and posting to them.

Entries that cannot be published are counted and left out.
"""

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import chain, islice
from math import inf
from pathlib import Path
from typing import Final, Protocol, TypeVar

from resourcesync.adapters.catalogue import (
    MIN_ALLOWED_LOSS,
    FileCatalogue,
    LossLimit,
    PostedCatalogue,
)
from resourcesync.app import plugins
from resourcesync.app.document_access import open_fetcher
from resourcesync.app.publishing import catalogues, trees
from resourcesync.app.publishing.account_access import (
    VALUES_NOTE,
    check_account_address,
    closing_changes,
    encode_values,
    initial_notes,
    open_account,
    read_values,
    resolve_values,
)
from resourcesync.app.publishing.trees import PublicationResult, PublishRequest
from resourcesync.errors import ConfigurationError, DiscontinuityError
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Clock
from resourcesync.ports.accounts import (
    AccountOptions,
    ChangeBatch,
    PublishedAccount,
    ResourceAccount,
    WritableAccount,
)
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.catalogue import Omission, Posted
from resourcesync.settings.network import Network
from resourcesync.settings.publication import CATALOGUE
from resourcesync.source.round_trip import find_fault
from resourcesync.source.scan import LeftFile

_BATCH: Final = 500
_MOST_OMITTED: Final = 100

_Entry = TypeVar("_Entry", Resource, Change)


class PublishableFilter:
    """Passes entries that can be published, and counts the others."""

    def __init__(self) -> None:
        self._omitted = 0
        self._omissions: list[Omission] = []

    def select(
        self, told: Iterator[_Entry], known: Callable[[str], _Entry | None] = lambda _: None
    ) -> Iterator[_Entry]:
        """Yield the entries that can be published; the others are counted and do not stop the rest.

        Args:
            told: The entries.
            known: Returns the former entry, which stays in place of one that cannot be used.
        """
        while batch := list(islice(told, _BATCH)):
            if not _fault(batch):
                yield from batch
                continue
            for item in batch:
                fault = _fault([item])
                if not fault:
                    yield item
                    continue
                self.omit(Omission(name=item.uri[:300], reason=fault))
                before = known(item.uri)
                if before is not None:
                    yield before

    def omit(self, omission: Omission) -> None:
        """Count an entry that is left out."""
        self._omitted += 1
        if len(self._omissions) < _MOST_OMITTED:
            self._omissions.append(omission)

    def pop_omissions(self) -> tuple[int, tuple[Omission, ...]]:
        """Return the number of omissions since the last call, and the first of them."""
        found = self._omitted, tuple(self._omissions)
        self._omitted, self._omissions = 0, []
        return found


def _fault(entries: Sequence[Resource] | Sequence[Change]) -> str:
    """Return the reason why entries cannot be published; empty when they can."""
    try:
        for entry in entries:
            catalogues.check_resource(entry.resource if isinstance(entry, Change) else entry)
    except ConfigurationError as error:
        return error.message
    return find_fault(entries)


_ADDRESS: Final = re.compile(r"([a-z][a-z0-9+.-]+):[^\x00-\x1f\x7f]+")
_POSITION: Final = "account.position"
_READ: Final = "account.read"
_SYSTEM: Final = "account.system"
_BASE: Final = "account.base"
_PUBLISHED: Final = "account.published"
_MAX_GONE_SHARE: Final = 0.5
_SECOND: Final = 1_000_000
FULL_READ_INTERVAL: Final = 7 * 86_400.0
"""Seconds between two full reads of an account with changes."""
POLL_INTERVAL: Final = 4 * 3_600.0
"""Seconds between two full reads of an account without changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedAccount:
    """The settings for following an account.

    Attributes:
        address: Address of the other system.
        values: Values for its adapter: ``KEY=VALUE``, with ``env:NAME`` and ``file:PATH``.
        out: The folder for the documents; the catalogue is there too.
        store: The address of the store that the documents go to instead; empty for none.
        read_again: Seconds between two full reads of all resources, whatever changes came
            meanwhile; ``None`` is `FULL_READ_INTERVAL`, or `POLL_INTERVAL` without changes.
        network: PublicationSettings for requests over http.
    """

    address: str
    values: Mapping[str, str]
    out: Path
    store: str = ""
    read_again: float | None = None
    network: Network = field(default_factory=Network)


def is_account_address(text: str) -> bool:
    """True if an address names another system, not a folder."""
    match = _ADDRESS.fullmatch(text)
    return match is not None and match[1] in plugins.names(plugins.ACCOUNTS)


def publish_account(
    followed: FollowedAccount, chosen: Mapping[str, object], *, clock: Clock, asked: PublishRequest
) -> PublicationResult:
    """Update our catalogue from another system, and publish it.

    Args:
        followed: The other system and its settings.
        chosen: As for ``publishing.publish_tree``.
        clock: Time.
        asked: Options of this run alone.

    Raises:
        ConfigurationError: No plug-in handles it, a value cannot work, or most of the known
            resources are gone. Published documents stay.
        SourceError: The other system does not answer, refuses, or was cut short; the same.
        StorageError: The catalogue or a document cannot be written.
    """
    with _open_follower(followed, chosen, clock, asked) as follower:
        return follower.publish(follower.synchronize(allow_empty=asked.allow_empty), asked)


def publish_continuously(
    followed: FollowedAccount,
    chosen: Mapping[str, object],
    *,
    clock: Clock,
    asked: PublishRequest,
    every: float,
) -> Iterator[PublicationResult]:
    """Publish, follow the changes, and publish them, again and again.

    This ends by itself only when the other system closed its feed. A busy feed is published
    while changes still come.

    Args:
        followed: The other system and its settings.
        chosen: As for ``publish_account``.
        clock: Time.
        asked: Options of the first run.
        every: Seconds from one publication to the next.

    Raises:
        ResourceSyncError: As for ``publish_account``. What was yielded is public; a new call
            continues from what was recorded.
    """
    with _open_follower(followed, chosen, clock, asked) as follower:
        counts = follower.synchronize(allow_empty=asked.allow_empty, most=every)
        while True:
            yield follower.publish(counts, asked)
            if follower.is_over:
                return
            asked = PublishRequest(allow_empty=asked.allow_empty)
            due = clock.monotonic() + every
            counts = follower.follow(every, allow_empty=asked.allow_empty)
            clock.sleep(max(0.0, due - clock.monotonic()))


@contextmanager
def _open_follower(
    followed: FollowedAccount, chosen: Mapping[str, object], clock: Clock, asked: PublishRequest
) -> Iterator["_AccountFollower"]:
    check_account_address(followed.address)
    if asked.dry_run:
        raise ConfigurationError("another system is recorded while it is read: there is no dry run")
    path = followed.out / CATALOGUE
    with ExitStack() as stack:
        catalogue = stack.enter_context(catalogues.open_catalogue(path)) if path.is_file() else None
        known_url, known_values = ("", {}) if catalogue is None else read_values(catalogue)
        url = str(chosen.get("url") or known_url)
        if not url:
            command = f"resourcesync publish {followed.address} --url https://HOST/"
            raise ConfigurationError(
                "the address of the resources is not known yet",
                hint=f"{command} --out {followed.out}",
            )
        trees.check_address(url)
        followed = replace(followed, values=followed.values or known_values)
        options = AccountOptions(
            address=followed.address,
            base_uri=url if url.endswith("/") else f"{url}/",
            values=resolve_values(followed.values),
            memory=str(path.parent / "account"),
            out=str(followed.out),
            clock=clock,
            fetcher=partial(open_fetcher, network=followed.network, cancel=CancelToken(clock)),
            allow_empty=asked.allow_empty,
        )
        account = stack.enter_context(open_account(options))
        if catalogue is None:
            catalogue = stack.enter_context(catalogues.open_catalogue(path))
        if not known_url:  # stored even if the first run fails
            catalogue.write_notes(initial_notes(url, followed.values))
        chosen = {**chosen, "url": url}
        yield _AccountFollower(
            followed, chosen, account, catalogue, clock, base_uri=options.base_uri
        )


class _AccountFollower:
    """An account, and the catalogue that follows it.

    Attributes:
        is_over: True if the account's feed was closed.
    """

    def __init__(
        self,
        followed: FollowedAccount,
        chosen: Mapping[str, object],
        account: ResourceAccount,
        catalogue: PostedCatalogue,
        clock: Clock,
        *,
        base_uri: str,
    ) -> None:
        self._followed = followed
        self._chosen = chosen
        self._account = account
        self._catalogue = catalogue
        self._clock = clock
        self._path = followed.out / CATALOGUE
        # Each of several feeds has a position of its own: changing between them loses nothing.
        is_feed = not account.can_list_resources
        self._position_note = f"{_POSITION} {followed.address}" if is_feed else _POSITION
        # The entries depend on these: when one changes, all is read again.
        self._kept = {_SYSTEM: followed.address}
        if not is_feed:
            self._kept |= {_BASE: base_uri, VALUES_NOTE: encode_values(followed.values)}
        self._sayable = PublishableFilter()
        self._warnings: list[LeftFile] = []
        self._told: Sequence[tuple[str, str]] = ()
        self._left: int | None = None
        self.is_over = False

    def synchronize(self, *, allow_empty: bool = False, most: float = inf) -> Posted:
        """Update the catalogue: by the changes where possible, else by reading all.

        Args:
            allow_empty: True if all resources may be gone.
            most: Seconds after which the changes so far are enough, if there are still more.

        Returns:
            What was recorded.
        """
        position = self._position()
        if self._account.can_list_resources and (not position or self._is_due()):
            return self._fill(allow_empty=allow_empty)
        try:
            return self._listen(
                position or self._account.position(), 0.0, most, allow_empty=allow_empty
            )
        except DiscontinuityError as error:
            self._check_can_read_all(error)
        return self._fill(allow_empty=allow_empty)

    def follow(self, seconds: float, *, allow_empty: bool = False) -> Posted:
        """Record the changes of the next seconds, or read all if a full read is due.

        Returns:
            What was recorded.
        """
        position = self._position()
        if self._account.can_list_resources and self._is_due():
            return self._fill(allow_empty=allow_empty)
        if not position:
            return Posted()
        try:
            return self._listen(position, seconds, seconds, allow_empty=allow_empty)
        except DiscontinuityError as error:
            self._check_can_read_all(error)
        return self._fill(allow_empty=allow_empty)

    def _check_can_read_all(self, error: DiscontinuityError) -> None:
        """Warn that all is read again; a mere feed cannot be, so its error is raised."""
        if not self._account.can_list_resources:
            raise error
        self._warn(f"{error.message}: all is read again")

    def _warn(self, reason: str) -> None:
        self._warnings.append(LeftFile(code="log-lost", reason=reason))

    def publish(self, counts: Posted, asked: PublishRequest) -> PublicationResult:
        """Publish the present content of the catalogue.

        Raises:
            ConfigurationError: The feed is closed, and it never had an entry.
        """
        if self.is_over and not (asked.allow_empty or self._catalogue.has_records()):
            raise self._empty_account_error()
        out = self._followed.store or self._followed.out
        done = catalogues.publish(self._path, out, self._chosen, clock=self._clock, asked=asked)
        if isinstance(self._account, PublishedAccount):
            self._account.published()
        self._left = done.scan.files
        self._note(_PUBLISHED, str(self._left))
        found = replace(
            done.scan, **{field.name: getattr(counts, field.name) for field in fields(Posted)}
        )
        omitted, omissions = self._sayable.pop_omissions()
        notified = [LeftFile(code=code, reason=reason) for code, reason in self._told]
        left, self._warnings = (*found.left, *self._warnings, *notified), []
        return replace(done, scan=replace(found, omitted=omitted, left=left), omissions=omissions)

    def _position(self) -> str:
        """Return the recorded position in the changes; empty when they have to start over."""
        return self._catalogue.note(self._position_note) or ""

    def _is_due(self) -> bool:
        """True if a full read is due."""
        if any(self._catalogue.note(name) != value for name, value in self._kept.items()):
            return True
        usual = FULL_READ_INTERVAL if self._position() else POLL_INTERVAL
        most = usual if self._followed.read_again is None else self._followed.read_again
        age = to_microseconds(self._clock.now()) - int(self._catalogue.note(_READ) or 0)
        return not 0 <= age < most * _SECOND

    def _fill(self, *, allow_empty: bool) -> Posted:
        now, position = self._clock.now(), self._account.position()
        if self._position() and not (position or self._warnings):
            self._warn(f"{self._followed.address} no longer has a change log")
        notes = {_POSITION: position, _READ: str(to_microseconds(now)), **self._kept}
        resources = self._sayable.select(self._account.resources(), self._catalogue.find)
        self._left, self._told = None, ()
        return self._catalogue.fill(
            self._require_any(resources, allow_empty=allow_empty),
            now,
            notes=notes,
            most_gone=1.0 if allow_empty else _MAX_GONE_SHARE,
        )

    def _listen(self, position: str, wait: float, most: float, *, allow_empty: bool) -> Posted:
        until = self._clock.monotonic() + most
        done = (
            Posted()
            if self._position()
            else self._record(ChangeBatch(position, ()), allow_empty=True)
        )
        self._told = ()
        with closing_changes(self._account.changes(position, wait)) as lots:
            for batch in lots:
                if batch.changes or batch.position != position:
                    done = _add_counts(done, self._record(batch, allow_empty=allow_empty))
                    position = batch.position
                for omission in batch.omissions:
                    self._sayable.omit(omission)
                self.is_over, self._told = batch.is_last, batch.warnings
                if self._clock.monotonic() >= until:
                    break
        return done

    def _record(self, batch: ChangeBatch, *, allow_empty: bool) -> Posted:
        done = self._catalogue.post(
            self._sayable.select(iter(batch.changes)),
            self._clock.now(),
            notes={self._position_note: batch.position, **self._kept},
            keeps_times=True,
            loss=None if allow_empty or not batch.changes else self._loss(),
        )
        if self._left is not None:
            self._left += done.created - done.deleted
        return done

    def _loss(self) -> LossLimit | None:
        """Return the limit on losses relative to the last publication, half of which may go.

        A mere feed names each deletion, and cannot be read in full: it is trusted.
        """
        if not self._account.can_list_resources:
            return None
        if self._left is None:
            self._left = self._catalogue.count()
        known = int(self._catalogue.note(_PUBLISHED) or self._left)
        return LossLimit(
            known, known - self._left, max(MIN_ALLOWED_LOSS, int(known * _MAX_GONE_SHARE))
        )

    def _note(self, key: str, value: str) -> None:
        if self._catalogue.note(key) != value:
            self._catalogue.write_notes({key: value})

    def _require_any(
        self, resources: Iterator[Resource], *, allow_empty: bool
    ) -> Iterable[Resource]:
        first = next(resources, None)
        if first is not None:
            return chain((first,), resources)
        if allow_empty:
            return ()
        raise self._empty_account_error()

    def _empty_account_error(self) -> ConfigurationError:
        return ConfigurationError(
            f"{self._followed.address} lists no resource",
            evidence=(("kept", "what was recorded before"),),
            hint="if it is really empty: --allow-empty",
            code="empty-account",
        )


def _add_counts(posted: Posted, other: Posted) -> Posted:
    return Posted(
        **{
            field.name: getattr(posted, field.name) + getattr(other, field.name)
            for field in fields(Posted)
        }
    )


def post_to_account(
    address: str, values: Mapping[str, str], lines: str, *, clock: Clock
) -> Iterator[Posted]:
    """Post changes from lines to another system; yield the counts of each batch.

    Args:
        address: The other system.
        values: Values for its adapter: ``KEY=VALUE``, with ``env:NAME`` and ``file:PATH``.
        lines: A file, or ``-`` for standard input.
        clock: Time.

    Raises:
        ConfigurationError: The system is read-only, or a value cannot work.
        DocumentError: A line is not a change. What was yielded is posted, nothing else.
        SourceError: The other system does not answer, or refuses; part of the batch may be posted,
            and posting it again is safe.
    """
    with (
        catalogues.read_change_lines(lines) as batches,
        _writable(address, values, clock) as account,
    ):
        for batch in batches:
            yield account.post(batch)


def import_into_account(
    address: str,
    values: Mapping[str, str],
    lines: str,
    *,
    clock: Clock,
    is_all: bool = True,
    allow_empty: bool = False,
) -> Posted:
    """Import the resources of lines into another system, by posting the differences.

    Args:
        address: The other system; a new one is set up.
        values: As for ``post_to_account``.
        lines: A file, or ``-`` for standard input.
        clock: Time.
        is_all: True if known resources without a line are gone.
        allow_empty: True if all are gone when there is no line.

    Raises:
        ConfigurationError: As for ``post_to_account``; or there are no lines.
        DocumentError: A line is not a resource. Nothing was posted.
        SourceError: As for ``post_to_account``.
        StorageError: The lines cannot be read, or there is no space to compare them.
    """
    is_enough = allow_empty or not is_all
    with (
        catalogues.read_resource_lines(lines, allow_empty=is_enough) as resources,
        _writable(address, values, clock) as account,
        tempfile.TemporaryDirectory(prefix="resourcesync-") as folder,
    ):
        account.post(())
        path = Path(folder, "catalogue.db")
        with PostedCatalogue(path) as catalogue:
            catalogue.fill(account.resources(), clock.now())
            catalogue.fill(resources, clock.now(), is_all=is_all)
        with closing(FileCatalogue(path, clock)) as known, known.snapshot() as snapshot:
            differing = map(_change, snapshot.edits())
            every = list(map(account.post, _change_batches(differing)))
            return Posted(
                **{
                    field.name: sum(getattr(posted, field.name) for posted in every)
                    for field in fields(Posted)
                }
            )


class _ReadWriteAccount(ResourceAccount, WritableAccount, Protocol):
    """An account that can be read and written."""


@contextmanager
def _writable(address: str, values: Mapping[str, str], clock: Clock) -> Iterator[_ReadWriteAccount]:
    check_account_address(address)
    with tempfile.TemporaryDirectory(prefix="resourcesync-") as memory:
        options = AccountOptions(
            address=address,
            base_uri="",
            values=resolve_values(values),
            memory=memory,
            out=memory,
            clock=clock,
            fetcher=partial(open_fetcher, network=Network(), cancel=CancelToken(clock)),
        )
        with open_account(options) as account:
            if not isinstance(account, WritableAccount):
                raise ConfigurationError(
                    f"{address} is read-only", hint="resourcesync publish follows it"
                )
            yield account


def _change(edit: tuple[str, Resource | None]) -> Change:
    """Return the change of a resource; the receiver knows whether it is new."""
    uri, resource = edit
    if resource is None:
        return Change(kind=ChangeKind.DELETED, resource=Resource(uri=uri))
    return Change(kind=ChangeKind.UPDATED, resource=resource)


def _change_batches(changes: Iterable[Change]) -> Iterator[list[Change]]:
    remaining = iter(changes)
    while batch := list(islice(remaining, catalogues.BATCH)):
        yield batch
