"""Carry out a plan: fetch, verify, put in place, remember; many at a time, in groups.

A group is made durable as a whole and then remembered in one transaction. Whatever is killed in
between is found in place by the next run and taken over when its bytes are what the Source lists.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Final

from resourcesync.destination.landing import Landing, Ready, Tally, TransferPolicy
from resourcesync.destination.plan import (
    Fetch,
    Listed,
    algorithms_for,
    judge_bytes,
)
from resourcesync.errors import ResourceSyncError, StorageError
from resourcesync.model.digests import STRONG, agree, format_digests, parse_digests, usable
from resourcesync.ports import (
    Clock,
    Copies,
    Failure,
    Fetcher,
    Purpose,
    Reporter,
    Request,
    Response,
    Staged,
)
from resourcesync.ports.mirror import Copy, Fixity, MirrorState

_SECOND_TRIES: Final = 1_000
_PROGRESS_SECONDS: Final = 1.0


class Transfer:
    """Carries out fetches.

    Args:
        fetcher: The network.
        copies: The mirror's files.
        state: The mirror's memory.
        clock: Time.
        policy: How strict.
        report: Takes events.
    """

    def __init__(
        self,
        *,
        fetcher: Fetcher,
        copies: Copies,
        state: MirrorState,
        clock: Clock,
        policy: TransferPolicy,
        report: Reporter,
    ) -> None:
        self._fetcher = fetcher
        self._copies = copies
        self._clock = clock
        self._policy = policy
        self._report = report
        self._under_way: dict[Request, Fetch] = {}
        self._landing = Landing(
            copies=copies, state=state, clock=clock, policy=policy, report=report
        )
        self._told = 0.0
        self._again: list[Fetch] = []
        self._stop = False
        self._totals = (0, 0)
        # In a folder without a file there is nothing to take over: not worth a look each time.
        self._may_adopt = next(iter(copies.paths()), None) is not None

    @property
    def stopped(self) -> bool:
        """Whether it ended early, because a failure was to end it."""
        return self._stop

    def carry_out(self, fetches: Iterable[Fetch], *, total: int, size: int) -> Tally:
        """Carry out the fetches; return what was done.

        Args:
            fetches: What to fetch; read lazily.
            total: How many there are, for progress.
            size: Bytes to fetch as far as known, for progress.

        Raises:
            DiskFullError: No room is left; what was complete is kept and remembered.
            StorageError: The mirror cannot be written; the same holds.
        """
        self._totals = (total, size)
        self._told = self._clock.monotonic()
        try:
            self._run(fetches, second_try=False)
            if self._again and not self._stop:
                again, self._again = self._again, []
                self._run(again, second_try=True)
        finally:
            self._abandon()
            self._landing.flush()
        self._progress(force=True)
        return self._landing.tally

    def _run(self, fetches: Iterable[Fetch], *, second_try: bool) -> None:
        outcomes = self._fetcher.fetch(self._requests(fetches, uncached=second_try))
        with closing(_closable(outcomes)) as ends:
            for outcome in ends:
                fetch = self._under_way.pop(outcome.request)
                match outcome:
                    case Failure():
                        self._take_failure(fetch, outcome)
                    case Response(status=304):
                        self._take_unchanged(fetch, outcome)
                    case Response():
                        self._take_bytes(fetch, outcome, second_try=second_try)
                self._landing.flush_when_due()
                self._progress()
                if self._stop:
                    return

    def _requests(self, fetches: Iterable[Fetch], *, uncached: bool) -> Iterator[Request]:
        for fetch in fetches:
            if self._stop:
                return
            if not uncached and self._adopt(fetch):
                self._landing.flush_when_due()
                continue
            listed, before = fetch.listed, fetch.before
            ask = fetch.ask and before is not None and not uncached
            request = Request(
                uri=listed.loc,
                sink=self._copies.stage(algorithms_for(listed, self._policy.own_algorithm)),
                purpose=Purpose.RESOURCE,
                etag=before.etag if ask and before else "",
                last_modified=before.last_modified if ask and before else "",
                limit=None if self._policy.lenient else listed.length,
                uncached=uncached,
            )
            self._under_way[request] = fetch
            yield request

    # --- how a fetch may end ---

    def _adopt(self, fetch: Fetch) -> bool:
        """Take over a file that is already in place and proven to be what the Source lists."""
        listed, before = fetch.listed, fetch.before
        if not self._may_adopt:
            return False
        signature = self._copies.signature(listed.path)
        if signature is None or (before is not None and before.signature == signature):
            return False
        claims = [d for d in usable(parse_digests(listed.hash)) if d.algorithm in STRONG]
        if not claims:
            return False
        found = self._copies.digest(listed.path, algorithms_for(listed, self._policy.own_algorithm))
        if found is None or not agree(found[1], claims):
            return False
        copy = self._copy(listed, found[0], format_digests(found[1]), {}, Fixity.VERIFIED)
        self._landing.add(Ready(fetch, copy._replace(signature=signature), None))
        return True

    def _take_failure(self, fetch: Fetch, outcome: Failure) -> None:
        _staged(outcome.request).discard()
        error: ResourceSyncError = outcome.error
        if isinstance(error, StorageError):
            raise error
        code = error.code
        if code == "too-big" and fetch.listed.length is not None:
            code = "length-mismatch"
        self._fail(fetch, code, error.message, outcome.tries)

    def _take_unchanged(self, fetch: Fetch, outcome: Response) -> None:
        _staged(outcome.request).discard()
        assert fetch.before is not None, "only a conditional request is answered with 304"
        self._landing.tally.same += 1
        if fetch.before.lastmod != fetch.listed.lastmod:
            copy = fetch.before._replace(lastmod=fetch.listed.lastmod)
            self._landing.add(Ready(fetch, copy, None, counts=False))
        else:
            self._landing.settle(fetch.listed.uri)

    def _take_bytes(self, fetch: Fetch, outcome: Response, *, second_try: bool) -> None:
        staged = _staged(outcome.request)
        length, found = staged.seal()
        digests = format_digests(found)
        fixity, wrong = judge_bytes(fetch.listed, length, digests)
        if wrong is not None and not self._policy.lenient:
            staged.discard()
            if not second_try and len(self._again) < _SECOND_TRIES:
                self._again.append(fetch)
                return
            code, expected, actual = wrong
            reason = f"the list says {expected}, the Source served {actual}"
            self._fail(fetch, code, reason, 2 if second_try else 1)
            return
        listed = fetch.listed if wrong is None else fetch.listed._replace(hash="")
        copy = self._copy(listed, length, digests, outcome.headers, fixity)
        self._landing.add(Ready(fetch, copy, staged))

    def _copy(
        self,
        listed: Listed,
        length: int,
        digests: str,
        headers: Mapping[str, str],
        fixity: Fixity,
    ) -> Copy:
        return Copy(
            uri=listed.uri,
            path=listed.path,
            length=length,
            digests=digests,
            listed=listed.hash,
            lastmod=listed.lastmod,
            etag=headers.get("etag", ""),
            last_modified=headers.get("last-modified", ""),
            signature="",
            fixity=fixity,
            installed=self._landing.now(),
        )

    def _fail(self, fetch: Fetch, code: str, reason: str, tries: int) -> None:
        self._landing.fail(fetch, code, reason, tries)
        self._stop = self._stop or self._policy.fail_fast

    def _abandon(self) -> None:
        for request in self._under_way:
            _staged(request).discard()
        self._under_way.clear()

    def _progress(self, *, force: bool = False) -> None:
        now = self._clock.monotonic()
        if not force and now - self._told < _PROGRESS_SECONDS:
            return
        self._told = now
        total, size = self._totals
        self._report(
            "progress",
            {
                "done": self._landing.tally.done,
                "total": total,
                "bytes_done": self._landing.tally.useful,
                "bytes_total": size,
                "failed": self._landing.tally.failed,
            },
        )


def _staged(request: Request) -> Staged:
    # Every request of this module is made with a staged copy as its sink.
    staged: Staged = request.sink  # type: ignore[assignment]  # see above
    return staged


def _closable(outcomes: Iterator[Response | Failure]) -> Generator[Response | Failure, None, None]:
    yield from outcomes
