"""Transfer: fetch, verify and commit many resources, each from its locations in turn.

A group is made durable as a whole and then recorded in one transaction. After a kill in between,
the next run finds the files in place and adopts those whose bytes are as listed. A patch is applied
to the version before; on any fault the whole resource is fetched.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from resourcesync import errors
from resourcesync.destination import pending_tasks, planner
from resourcesync.destination.pull_session import SyncSession
from resourcesync.destination.reports import TransferTally
from resourcesync.destination.transfers.commit import CommitBatch, StagedResource
from resourcesync.destination.transfers.verification import (
    ReceivedBytes,
    describe_mismatch,
    proof_of,
    verify_answer,
    verify_staged,
    wanted_fields,
)
from resourcesync.mirror_state.rows import LARGE
from resourcesync.model.digests import has_strong, parse_digests
from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse, Proof, StagedCopy
from resourcesync.ports.validators_and_dates import served_at

if TYPE_CHECKING:
    from resourcesync.destination.transfers.derived_bytes import PatchApplication
    from resourcesync.destination.transfers.present_files import PresentFiles

_MAX_DEFERRED: Final = 1_000
_MAX_FAILED_PATCHES: Final = 16
"""Failed patches after which a run tries no more: they cost time."""
_MIN_RESUMABLE: Final = 1 << 20
_NOT_MODIFIED: Final = 304


class FetchLocation(NamedTuple):
    """Location of a resource's bytes.

    ``after_mismatch``: it helps only after the resource's own URI gave other bytes. ``is_patch``:
    of the present copy. A TimeGate gets ``Accept-Datetime`` among the ``fields`` (RFC 7089).
    """

    uri: str
    is_own: bool = True
    uncached: bool = False
    after_mismatch: bool = False
    is_patch: bool = False
    fields: tuple[tuple[str, str], ...] = ()


_new_location: Final[Callable[[tuple[Any, ...]], FetchLocation]] = partial(
    tuple.__new__, FetchLocation
)


class FetchAttempt(msgspec.Struct):
    """Fetch with its locations and the present one; it is never changed.

    ``has_mismatch`` and ``last_failure`` are of the resource's own URI. ``has_waited``: for the
    same bytes of another resource.
    """

    fetch: planner.Fetch
    locations: tuple[FetchLocation, ...]
    location: FetchLocation
    position: int = 0
    has_mismatch: bool = False
    tries: int = 0
    last_failure: tuple[str, str] = ("", "")
    has_waited: bool = False

    def after_failure(
        self, code: str, reason: str, *, mismatch: bool, tries: int
    ) -> "FetchAttempt":
        """Return the attempt after a failure at its location."""
        own = self.location.is_own
        return replace(
            self,
            has_mismatch=self.has_mismatch or (own and mismatch),
            tries=self.tries + tries,
            last_failure=(code, reason) if own else self.last_failure,
        )

    def next_attempt(self) -> "FetchAttempt | None":
        """Return the attempt at the next location that may help, or ``None``."""
        for at in range(self.position + 1, len(self.locations)):
            if self.has_mismatch or not self.locations[at].after_mismatch:
                return replace(self, position=at, location=self.locations[at])
        return None


def _first_attempt(fetch: planner.Fetch) -> FetchAttempt:
    """Return a fetch at its first location: patch, mirrors by priority, the resource's own URI.

    If that gives other bytes than listed, a cache may be stale, or the resource may have changed;
    then it is requested again, uncached, and then the memento of the listed version. Where the
    Source decides between lists, only the Source itself is requested, past all caches.
    """
    listed = fetch.listed
    loc = listed.loc
    if listed.undated:
        locations: tuple[FetchLocation, ...] = (FetchLocation(loc, uncached=True),)
    else:
        own = _new_location((loc, True, False, False, False, ()))
        locations = (own, _new_location((loc, True, True, True, False, ())))
        if listed.mirrors or listed.memento or listed.patch is not None:
            locations = tuple(_around(fetch, locations))
    return FetchAttempt(fetch, locations, locations[0])


def _around(fetch: planner.Fetch, own: tuple[FetchLocation, ...]) -> Iterator[FetchLocation]:
    listed = fetch.listed
    if listed.patch is not None and not listed.patch.path and fetch.before is not None:
        yield FetchLocation(listed.patch.uri, is_own=False, is_patch=True)
    yield from (FetchLocation(uri, is_own=False) for uri in listed.mirrors)
    yield from own
    if listed.memento:
        uri, _, moment = listed.memento.partition(" ")
        when = (("Accept-Datetime", moment),)
        yield FetchLocation(uri, is_own=False, after_mismatch=True, fields=when)


class ResourceTransfer:
    """Executor of fetches, for a plan that is complete up to ``at``, microseconds."""

    def __init__(self, pull: SyncSession, at: int) -> None:
        equipment = pull.dependencies
        self._fetcher = equipment.workers or equipment.resource_fetcher or equipment.fetcher
        self._copies = equipment.copies
        self._options, self._own_algorithm = pull.options, pull.options.own_algorithm
        self._is_lenient = pull.options.verify == "lenient"
        self._pull, self._budget = pull, pull.budget
        self._under_way: dict[FetchRequest, FetchAttempt] = {}
        self._digest_fields = wanted_fields(self._own_algorithm)
        self._commit_batch = CommitBatch(pull, at)
        self._retries: deque[FetchAttempt] = deque()
        self._deferred: list[FetchAttempt] = []
        self._stop = False
        # In an empty folder there is no file to adopt: no check for each resource.
        self._may_adopt = next(iter(self._copies.paths()), None) is not None

    @property
    def stopped(self) -> bool:
        """True if it ended early: by a failure with ``fail_fast``, or at a limit of the run."""
        return self._stop or bool(self._budget.spent)

    @cached_property
    def _patching(self) -> "PatchApplication":
        from resourcesync.destination.transfers.derived_bytes import PatchApplication  # noqa: PLC0415 - rarely

        return PatchApplication(self._pull, self._commit_batch)

    @cached_property
    def _present_files(self) -> "PresentFiles":
        from resourcesync.destination.transfers.present_files import PresentFiles  # noqa: PLC0415 - as above

        return PresentFiles(self._pull, self._commit_batch, adopts=self._may_adopt)

    def execute(self, fetches: Iterable[planner.Fetch], *, total: int, size: int) -> TransferTally:
        """Execute the fetches; return their counts."""
        self._commit_batch.expect(total, size)
        try:
            self._pull.dependencies.cancel.raise_if_cancelled()
            self._run(map(_first_attempt, fetches))
            while (self._retries or self._deferred) and not self.stopped:
                self._commit_batch.flush()  # some wait for the bytes of others
                late, self._deferred = self._deferred, []
                self._run(iter(late))
        except errors.BudgetError:
            self._budget.expire()
        except errors.StorageError:
            self._abandon(keep=False)  # partial downloads would only take space
            raise
        finally:
            self._abandon(keep=True)
            self._commit_batch.flush()
        self._commit_batch.report_progress()
        return self._commit_batch.tally

    def _run(self, attempts: Iterator[FetchAttempt]) -> None:
        with closing(self._fetcher.fetch(self._requests(attempts))) as outcomes:
            for outcome in outcomes:
                attempt = self._under_way.pop(outcome.request)
                if self._budget.is_limited:
                    self._budget.release(attempt.fetch.listed.length)
                if isinstance(outcome, FetchFailure):
                    self._handle_failure(attempt, outcome)
                elif outcome.status == _NOT_MODIFIED:
                    self._handle_unchanged(attempt.fetch, outcome)
                elif attempt.location.is_patch:
                    self._handle_patch(attempt, _staged(outcome.request))
                else:
                    moved = outcome.uri != attempt.location.uri
                    served_by = _other_page(attempt.location.uri, outcome.uri) if moved else ""
                    staged = _staged(outcome.request)
                    self._handle_bytes(attempt, staged, outcome.headers, served_by)
                self._commit_batch.flush_when_due()
                if self._stop:
                    return

    def _requests(self, attempts: Iterator[FetchAttempt]) -> Iterator[FetchRequest]:
        budget = self._budget
        while not (self._stop or budget.spent):
            attempt = self._retries.popleft() if self._retries else next(attempts, None)
            if attempt is None:
                return
            request = self._begin(attempt)
            if request is None:
                self._commit_batch.flush_when_due()
                continue
            self._under_way[request] = attempt
            if budget.is_limited and not budget.reserve(attempt.fetch.listed.length):
                return
            yield request

    def _begin(self, attempt: FetchAttempt) -> FetchRequest | None:
        fetch, place, listed = attempt.fetch, attempt.location, attempt.fetch.listed
        is_small = listed.length is not None and listed.length < LARGE
        may_use = (self._may_adopt or not is_small) and not attempt.position
        if may_use and self._present_files.use(fetch, partial(self._wait, attempt)):
            return None
        if place.is_patch:
            return self._begin_patch(attempt)
        of = "" if is_small or place.uncached else _part_name(place.uri, listed)
        staged = self._copies.stage(planner.algorithms_for(listed, self._own_algorithm), of)
        if staged.part is not None and staged.part.length == listed.length:
            self._handle_bytes(attempt, staged, {})  # the download was complete, but not committed
            return None
        asks = fetch.is_conditional and place.is_own and not place.uncached
        before = fetch.before if asks else None
        keeps_all = self._is_lenient and place.is_own  # then nothing is checked
        return FetchRequest(
            uri=place.uri,
            sink=staged,
            etag=before.etag if before else "",
            last_modified=before.last_modified if before else "",
            limit=None if keeps_all else listed.length,
            uncached=place.uncached,
            part=staged.part,
            proof=Proof.NONE if keeps_all else proof_of(listed),
            as_sent=True,
            on_start=staged.record_validator if of else None,
            fields=place.fields or (() if listed.hash else self._digest_fields),
        )

    def _wait(self, attempt: FetchAttempt) -> bool:
        return not attempt.has_waited and self._defer(replace(attempt, has_waited=True))

    def _defer(self, attempt: FetchAttempt) -> bool:
        has_room = len(self._deferred) < _MAX_DEFERRED
        if has_room:
            self._deferred.append(attempt)
        return has_room

    def _begin_patch(self, attempt: FetchAttempt) -> FetchRequest | None:
        if self._commit_batch.tally.unpatched >= _MAX_FAILED_PATCHES:
            fetch = attempt.fetch._replace(listed=planner.without_patch(attempt.fetch.listed))
            self._try_next_location(replace(attempt, fetch=fetch))
            return None
        try:
            return self._patching.request(attempt.fetch)
        except errors.PatchError as error:
            self._try_next_location(self._without_patch(attempt, error, tries=0))
            return None

    def _handle_failure(self, attempt: FetchAttempt, outcome: FetchFailure) -> None:
        error: errors.ResourceSyncError = outcome.error
        staged = _staged(outcome.request)
        if isinstance(error, errors.SourceUnavailableError):
            staged.suspend()
        else:
            staged.discard()
        if isinstance(error, errors.StorageError):
            raise error
        if attempt.location.is_patch:
            self._try_next_location(self._without_patch(attempt, error, tries=outcome.tries))
            return
        code, reason, length = error.code, error.cause, attempt.fetch.listed.length
        if attempt.location.is_own:
            code, reason = pending_tasks.failure_of(error, outcome.request.uri)
        is_tried = bool(outcome.tries) or not isinstance(error, errors.SourceUnavailableError)
        reason = reason if is_tried else f"not requested: {reason}"  # the server is paused
        mismatch = code == "too-big" and length is not None
        if mismatch:
            code = "length-mismatch"
            got = error.cause.removeprefix(error.message)
            reason = f"the list says {length} B, the Source served more{got}"
        tries = max(outcome.tries, is_tried)
        self._try_next_location(attempt.after_failure(code, reason, mismatch=mismatch, tries=tries))

    def _try_next_location(self, attempt: FetchAttempt) -> None:
        following = attempt.next_attempt()
        if following is not None and not following.location.after_mismatch:
            self._retries.append(following)
        elif following is None or not self._defer(following):
            self._fail(attempt.fetch, *attempt.last_failure, attempt.tries)

    def _handle_unchanged(self, fetch: planner.Fetch, outcome: FetchResponse) -> None:
        _staged(outcome.request).discard()
        assert fetch.before is not None, "only a conditional request is answered with 304"
        self._commit_batch.tally.same += 1
        if planner.has_moved_date(fetch.before, fetch.listed):
            self._commit_batch.add_unconfirmed(fetch.listed.uri)
        served = served_at(outcome.headers)
        lastmod = self._commit_batch.lastmod_to_record(fetch.listed, served)
        evidence = self._commit_batch.evidence_of(fetch.listed, served)
        if fetch.before.lastmod != lastmod or fetch.before.evidence < evidence:
            copy = fetch.before._replace(lastmod=lastmod, evidence=evidence)
            self._commit_batch.add(StagedResource(fetch, copy, None, counts=False))
        else:
            self._commit_batch.add_unchanged(fetch)

    def _handle_bytes(
        self,
        attempt: FetchAttempt,
        staged: StagedCopy,
        headers: Mapping[str, str],
        served_by: str = "",
    ) -> None:
        fetch, own = attempt.fetch, attempt.location.is_own
        try:
            received = self._check(attempt, staged, headers)
        except errors.BadResponseError as error:
            staged.discard()
            self._try_next_location(
                attempt.after_failure(error.code, error.cause, mismatch=False, tries=1)
            )
            return
        staged, length, _, digests, fixity, wrong, has_bad_digest = received
        if wrong is not None and not (self._is_lenient and own):
            staged.discard()
            self._try_next_location(
                attempt.after_failure(wrong[0], describe_mismatch(wrong), mismatch=True, tries=1)
            )
            return
        if self._keeps_copy(fetch, received):
            staged.discard()
            return
        listed = fetch.listed if wrong is None else fetch.listed._replace(hash="")
        # The validators of another server are useless for the resource's own URI.
        copy = self._commit_batch.new_copy(listed, length, digests, fixity, headers if own else {})
        contradicts = (
            "" if wrong is None else f"{describe_mismatch(wrong)}; kept (`verify` is lenient)"
        )
        if contradicts and planner.has_bytes(fetch.before, copy.digests):
            staged.discard()
            self._commit_batch.add_failure(fetch, pending_tasks.CONTRADICTING, contradicts, 1)
        else:
            ready = StagedResource(fetch, copy, staged, contradicts=contradicts)
            ready.has_bad_digest = has_bad_digest
            ready.served_by = served_by
            self._commit_batch.add(ready)

    def _keeps_copy(self, fetch: planner.Fetch, received: ReceivedBytes) -> bool:
        if planner.has_unlisted_bytes(fetch.listed, fetch.before, received.digests):
            self._commit_batch.add_unchanged(fetch)
            return True
        if planner.has_old_bytes(fetch.listed, fetch.before, received.found):
            self._fail(fetch, pending_tasks.OLD_ANSWER, pending_tasks.OLD_ANSWER_REASON, 1)
            return True
        return False

    def _check(
        self, attempt: FetchAttempt, staged: StagedCopy, headers: Mapping[str, str]
    ) -> ReceivedBytes:
        listed = attempt.fetch.listed
        sent = verify_staged(listed, staged)
        served = None if listed.hash else verify_answer(headers, staged, sent.found)
        coding = headers.get("content-encoding")
        received = self._in_listed_form(attempt, sent, coding) if coding else sent
        return received if served is None else received.with_answer(served)

    def _in_listed_form(
        self, attempt: FetchAttempt, sent: ReceivedBytes, coding: str
    ) -> ReceivedBytes:
        from resourcesync.destination.transfers.derived_bytes import (  # noqa: PLC0415 - rarely
            decode_staged,
            is_to_be_decoded,
        )
        from resourcesync.model.content_codings import content_codings  # noqa: PLC0415 - rarely

        listed, codings = attempt.fetch.listed, content_codings(coding)
        is_open = is_to_be_decoded(listed, attempt.location.uri, codings)
        if not codings or (sent.wrong is None and not is_open):
            return sent
        algorithms = planner.algorithms_for(listed, self._own_algorithm)
        try:
            content = decode_staged(self._copies, sent.staged, codings, algorithms, listed.length)
        except errors.BadResponseError:
            if is_open:
                raise
            return sent
        decoded = verify_staged(listed, content)
        (sent if decoded.wrong is None else decoded).staged.discard()
        return decoded if decoded.wrong is None else sent

    def _handle_patch(self, attempt: FetchAttempt, patch: StagedCopy) -> None:
        try:
            self._patching.apply(attempt.fetch, patch)
        except errors.PatchError as error:
            self._try_next_location(self._without_patch(attempt, error, tries=1))
        finally:
            patch.discard()

    def _without_patch(
        self, attempt: FetchAttempt, error: errors.ResourceSyncError, *, tries: int
    ) -> FetchAttempt:
        self._commit_batch.add_failed_patch(attempt.fetch, error.message)
        fetch = attempt.fetch._replace(listed=planner.without_patch(attempt.fetch.listed))
        failed = attempt.after_failure("patch", error.message, mismatch=False, tries=tries)
        return replace(failed, fetch=fetch)

    def _fail(self, fetch: planner.Fetch, code: str, reason: str, tries: int) -> None:
        failed = self._commit_batch.add_failure(fetch, code, reason, tries)
        self._stop = self._stop or (failed and self._options.fail_fast)

    def _abandon(self, *, keep: bool) -> None:
        for staged in map(_staged, self._under_way):
            if keep:
                staged.suspend()
            else:
                staged.discard()
        self._under_way.clear()


def _other_page(asked: str, answered: str) -> str:
    page = answered.partition("?")[0]
    return "" if page == asked.partition("?")[0] else page


def _staged(request: FetchRequest) -> StagedCopy:
    # Every request of this module has a staged copy as its sink.
    staged: StagedCopy = request.sink  # type: ignore[assignment]  # see above
    return staged


def _part_name(uri: str, listed: planner.ListedEntry) -> str:
    """Only a strong digest of the whole can prove bytes assembled from parts."""
    large = listed.length is None or listed.length >= _MIN_RESUMABLE
    return f"{uri} {listed.hash}" if large and has_strong(parse_digests(listed.hash)) else ""
