"""Following of another system (account) in a catalogue: by its changes, or by reading it all.

Entries that cannot be published are counted and left out.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import chain, islice
from math import inf
from typing import Final, TypeVar

from msgspec.structs import replace

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.catalogue.filling import MIN_ALLOWED_LOSS, LossLimit
from resourcesync.errors import ConfigurationError, DiscontinuityError
from resourcesync.model.entries import Change, Resource
from resourcesync.model.timestamps import SECOND, to_microseconds
from resourcesync.ports.accounts import AccountOptions, ChangeBatch, Posted, ResourceAccount
from resourcesync.ports.originals import Omission
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from resourcesync.source.round_trip import check_resource, find_fault
from resourcesync.source.scan_for_changes import LeftFile
from resourcesync.source.stored_plan import SYSTEM_NOTE, CatalogueNote

VALUES_NOTE: Final = "account.values"
"""The note of the values that were last given."""
_POSITION: Final = "account.position"
_READ: Final = "account.read"
_BASE: Final = "account.base"
_PUBLISHED: Final = "account.published"
_MAX_GONE_SHARE: Final = 0.5
FULL_READ_INTERVAL: Final = 7 * 86_400.0
"""Seconds between two full reads of an account with changes."""
POLL_INTERVAL: Final = 4 * 3_600.0
"""Seconds between two full reads of an account without changes."""


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
        """Yield the entries that can be published; the others are counted."""
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
    try:
        for entry in entries:
            check_resource(entry.resource if isinstance(entry, Change) else entry)
    except ConfigurationError as error:
        return error.message
    return find_fault(entries)


class AccountFollower:
    """An account, and the catalogue that follows it.

    ``values`` are the options of its adapter, encoded without secrets; ``read_again`` the seconds
    between two full reads.
    """

    def __init__(
        self,
        options: AccountOptions,
        account: ResourceAccount,
        catalogue: SourceCatalogue,
        publish: Callable[[PublishRequest], PublicationResult],
        *,
        values: str,
        read_again: float | None,
    ) -> None:
        self._options = options
        self._account = account
        self._catalogue = catalogue
        self._publish = publish
        self._clock = options.clock
        self._read_again = read_again
        # Each of several streams has a position of its own: changing between them loses nothing.
        tells_only_changes = not account.can_list_resources
        self._position_note = f"{_POSITION} {options.address}" if tells_only_changes else _POSITION
        # The entries depend on these: when one changes, all is read again.
        self._kept = {SYSTEM_NOTE: options.address}
        if not tells_only_changes:
            self._kept |= {_BASE: options.base_uri, VALUES_NOTE: values}
        self._publishable = PublishableFilter()
        self._warnings: list[LeftFile] = []
        self._batch_warnings: Sequence[tuple[str, str]] = ()
        self._left: int | None = None
        self.is_prompt = False
        """True if the system announced the last changes, so that they can be published at once."""

    def synchronize(self, *, most: float = inf) -> Posted:
        """Update the catalogue: by the changes where possible, else by reading all."""
        position = self._position()
        if self._account.can_list_resources and (not position or self._is_due()):
            return self._fill()
        return self._follow(position or self._account.position(), 0.0, most)

    def follow(self, seconds: float) -> Posted:
        """Record the changes of the next seconds, or read all if a full read is due."""
        position = self._position()
        if self._account.can_list_resources and self._is_due():
            return self._fill()
        return self._follow(position, seconds, seconds) if position else Posted()

    def follow_rest(self, counts: Posted, most: float) -> Posted:
        """Record also what was committed meanwhile, and the rest of a large transaction."""
        warnings = self._batch_warnings
        rest = self.synchronize(most=most)
        self._batch_warnings = self._batch_warnings or warnings
        return _add_counts(counts, rest)

    def _follow(self, position: str, wait: float, most: float) -> Posted:
        try:
            return self._listen(position, wait, most)
        except DiscontinuityError as error:
            if not self._account.can_list_resources:
                raise
            self._warn(f"{error.message}: all is read again")
        return self._fill()

    def _warn(self, reason: str) -> None:
        self._warnings.append(LeftFile(code="log-lost", reason=reason))

    def publish(self, counts: Posted, asked: PublishRequest) -> PublicationResult:
        """Publish the present content of the catalogue."""
        done = self._publish(asked)
        self._account.published()
        self._left = done.scan.files
        if self._catalogue.note(_PUBLISHED) != str(self._left):
            self._catalogue.write_notes({_PUBLISHED: str(self._left)})
        found = replace(
            done.scan, **{name: getattr(counts, name) for name in Posted.__struct_fields__}
        )
        omitted, omissions = self._publishable.pop_omissions()
        notified = [LeftFile(code=code, reason=reason) for code, reason in self._batch_warnings]
        left, self._warnings = (*found.left, *self._warnings, *notified), []
        scan = replace(found, omitted=omitted, left=left)
        return replace(done, scan=scan, omissions=omissions, read=self._account.pop_counts())

    def _position(self) -> str:
        return self._catalogue.note(self._position_note) or ""

    def _is_due(self) -> bool:
        if any(self._catalogue.note(name) != value for name, value in self._kept.items()):
            return True
        usual = FULL_READ_INTERVAL if self._position() else POLL_INTERVAL
        most = usual if self._read_again is None else self._read_again
        age = to_microseconds(self._clock.now()) - (
            CatalogueNote(_READ, int).read(self._catalogue) or 0
        )
        return not 0 <= age < most * SECOND

    def _fill(self) -> Posted:
        now, position = self._clock.now(), self._account.position()
        if self._position() and not (position or self._warnings):
            self._warn(f"{self._options.address} no longer has a change log")
        notes = {_POSITION: position, _READ: str(to_microseconds(now)), **self._kept}
        resources = self._publishable.select(self._account.resources(), self._catalogue.find)
        self._left, self._batch_warnings = None, ()
        allow_empty = self._options.allow_empty
        return self._catalogue.fill(
            resources if allow_empty else self._require_any(resources),
            now,
            notes=notes,
            most_gone=1.0 if allow_empty else _MAX_GONE_SHARE,
            allow_empty=allow_empty,
        )

    def _listen(self, position: str, wait: float, most: float) -> Posted:
        until = self._clock.monotonic() + most
        done = Posted() if self._position() else self._record(ChangeBatch(position, ()))
        self._batch_warnings, self.is_prompt = (), False
        batches = self._account.changes(position, wait)
        try:
            for batch in batches:
                if batch.changes or batch.position != position:
                    done = _add_counts(done, self._record(batch))
                    position = batch.position
                for omission in batch.omissions:
                    self._publishable.omit(omission)
                self._batch_warnings, self.is_prompt = batch.warnings, batch.is_announced
                is_news = wait > 0 and self.is_prompt and batch.changes
                if is_news or self._clock.monotonic() >= until:
                    break
        finally:
            if isinstance(batches, Generator):  # it may have a connection
                batches.close()
        return done

    def _record(self, batch: ChangeBatch) -> Posted:
        done = self._catalogue.post(
            self._publishable.select(iter(batch.changes)),
            self._clock.now(),
            notes={self._position_note: batch.position, **self._kept},
            keeps_times=True,
            loss=self._loss() if batch.changes else None,
        )
        if self._left is not None:
            self._left += done.created - done.deleted
        return done

    def _loss(self) -> LossLimit | None:
        if self._options.allow_empty or not self._account.can_list_resources:
            return None
        if self._left is None:
            self._left = self._catalogue.count()
        known = CatalogueNote(_PUBLISHED, int).read(self._catalogue) or self._left
        return LossLimit(
            known, known - self._left, max(MIN_ALLOWED_LOSS, int(known * _MAX_GONE_SHARE))
        )

    def _require_any(self, resources: Iterator[Resource]) -> Iterable[Resource]:
        first = next(resources, None)
        if first is not None:
            return chain((first,), resources)
        raise ConfigurationError(
            f"{self._options.address} lists no resource",
            evidence=(("kept", "what was recorded before"),),
            hint="if it is really empty, allow that: --allow-empty",
            code="empty-account",
        )


def _add_counts(posted: Posted, other: Posted) -> Posted:
    return Posted(
        **{name: getattr(posted, name) + getattr(other, name) for name in Posted.__struct_fields__}
    )
