"""Harvests of all records, or the changed ones, over any number of runs (OAI-PMH §3.4, §3.5)."""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from resourcesync.errors import BadResponseError, SourceUnavailableError
from resourcesync.model.timestamps import format_w3c
from resourcesync.ports import Clock
from resourcesync.sqlite_file import write_notes
from resourcesync_oai.documents.records import DAY, ListToken, parse_datestamp
from resourcesync_oai.options import OaiOptions
from resourcesync_oai.provider import (
    BAD_ARGUMENT,
    BAD_TOKEN,
    Provider,
    ProviderError,
    ProviderReply,
    sent_evidence,
)
from resourcesync_oai.records import PageCounts, RecordStore
from resourcesync_oai.repository_state import RepositoryState

_log = logging.getLogger(__name__)

_STATE: Final = "harvest"
_SINCE: Final = "since"
_ATTEMPT: Final = "attempt"
MIN_ALLOWED_LOSS: Final = 10
"""Number of records that may always vanish at once, however few there are."""
_MOST_RESTARTS: Final = 3
_MOST_TRIES: Final = 3
_MOST_STALE: Final = 100
_OLDEST: Final = timedelta(days=1)
_MOST_WINDOWS: Final = 10_000


class _HarvestProgress(msgspec.Struct):
    """The progress of a harvest; stored with each page."""

    is_full: bool  # all records are listed
    since: str  # the ``from`` of an incremental harvest
    began: str  # the provider's time at the start; the next harvest begins from there
    started: str  # the local time at the start
    first: int = 0  # the first attempt of this harvest
    lists: int = 0  # number of completed lists
    attempt: int = 0  # the attempt at the current list
    token: str = ""  # the resumption token of that list; empty for its beginning
    is_blind: bool = False  # A listed record could not be identified, so missing ones are unknown


class RecordList(msgspec.Struct, frozen=True, kw_only=True):
    """A list to request."""

    prefix: str  # the format
    spec: str = ""  # the set; empty for all
    begin: str = ""  # ``from``, as sent; empty for none
    end: str = ""  # ``until``, as sent; empty for none

    def arguments(self, token: str, *, by_days: bool) -> dict[str, str]:
        """Return the request arguments of its next page."""
        if token:
            return {"verb": "ListRecords", "resumptionToken": token}
        told = {"set": self.spec, "from": self.begin, "until": self.end}
        cut = len("2026-01-31") if by_days else None
        times = {key: value[:cut] if key != "set" else value for key, value in told.items()}
        return {
            "verb": "ListRecords",
            "metadataPrefix": self.prefix,
            **{key: value for key, value in times.items() if value},
        }


class Harvest:
    """A harvest of a provider's records into the state."""

    def __init__(
        self,
        provider: Provider,
        choice: OaiOptions,
        memory: RepositoryState,
        records: RecordStore,
        clock: Clock,
    ) -> None:
        self._endpoint, self._identity = provider.endpoint, provider.identity
        self._prefixes = provider.prefixes
        self._choice, self._memory, self._records = choice, memory, records
        self._clock = clock
        self._by_days = provider.identity.granularity.strip().upper() == DAY

    def run(self, *, is_full: bool, allow_empty: bool = False) -> None:
        """List all records, or those changed since the last harvest; resume a stopped one."""
        is_full = is_full or not self._memory.note(_SINCE)
        state = self._load_progress(is_full=is_full)
        lists = list(self._lists(state))
        try:
            while state.lists < len(lists):
                self._read_list(lists[state.lists], state)
        except BadResponseError:
            self._save(None)  # resuming there would end the same way
            raise
        with self._memory.writing() as connection:
            if is_full and state.is_blind:
                _log.warning("deletions are not detected: records cannot be identified")
            elif is_full:
                if not allow_empty:
                    self._check_lost(state.first)
                lost = self._records.withdraw_missing(connection, state.first)
                _log.info("%d records are no longer listed", lost)
            write_notes(connection, {_SINCE: state.began, _STATE: ""})

    def _check_lost(self, first: int) -> None:
        """Refuse that most records of a format vanish: an index that is rebuilt looks so."""
        for prefix in self._prefixes:
            query = "SELECT count(*) FROM record WHERE NOT is_gone AND prefix = ?"
            known: int = self._memory.rows(query, prefix)[0][0]
            lost: int = self._memory.rows(f"{query} AND attempt < ?", prefix, first)[0][0]
            if lost > MIN_ALLOWED_LOSS and lost * 2 > known:
                raise BadResponseError(
                    f"{lost:,} of {known:,} records in {prefix} are no longer listed",
                    uri=self._endpoint.address,
                    status=200,
                    evidence=(
                        sent_evidence(self._endpoint.address),
                        ("kept", "no record was withdrawn"),
                    ),
                    hint="run it again when the repository is complete; if intended, allow it: "
                    "--allow-empty",
                    code="oai-many-gone",
                )

    def _load_progress(self, *, is_full: bool) -> _HarvestProgress:
        """Return the progress of a stopped harvest of the kind, or of a new one."""
        now = self._clock.now()
        left = self._memory.note(_STATE)
        if left:
            state = msgspec.json.decode(left, type=_HarvestProgress)
            age = now - (parse_datestamp(state.started) or now)
            if state.is_full == is_full and timedelta(0) <= age < _OLDEST:
                return state
        began = parse_datestamp(self._identity.moment) or now
        return _HarvestProgress(
            is_full=is_full,
            since="" if is_full else self._memory.note(_SINCE),
            began=format_w3c(began.replace(microsecond=0)),
            started=format_w3c(now),
            first=self._memory.number(_ATTEMPT) + 1,
        )

    def _lists(self, state: _HarvestProgress) -> Iterator[RecordList]:
        for prefix in self._prefixes:
            for spec in self._choice.sets or ("",):
                for begin, end in self._windows(state):
                    yield RecordList(prefix=prefix, spec=spec, begin=begin, end=end)

    def _windows(self, state: _HarvestProgress) -> Iterator[tuple[str, str]]:
        """Yield ``from`` and ``until`` of the lists that make the whole."""
        earliest = parse_datestamp(self._identity.earliest)
        began = parse_datestamp(state.began) or self._clock.now()
        least = parse_datestamp(self._choice.begin)
        if not state.is_full:
            since = parse_datestamp(state.since) or began
            again = max(
                moment for moment in (_before(since, self._choice.overlap), least) if moment
            )
            if earliest is not None and earliest <= since:  # some refuse an earlier date
                again = max(again, earliest)
            yield _stamp(again), ""
            return
        begin = least or earliest
        told = _stamp(least) if least is not None else ""
        if self._choice.window and begin is not None:
            step = timedelta(days=self._choice.window)
            for _ in range(_MOST_WINDOWS):
                end = begin + step
                if end >= began:
                    break
                yield told, _stamp(end - timedelta(seconds=1))
                begin, told = end, _stamp(end)
        yield told, ""

    def _read_list(self, wanted: RecordList, state: _HarvestProgress) -> None:
        """Read a list to its end; restart one whose token expired."""
        restarts = 0
        while True:
            try:
                if not state.token:
                    with self._memory.writing() as connection:
                        state.attempt = self._memory.number(_ATTEMPT) + 1
                        write_notes(connection, {_ATTEMPT: str(state.attempt)})
                self._read_pages(wanted, state)
            except ProviderError as error:
                if not self._prepare_restart(error, state, restarts):
                    raise
                _log.info("a list is restarted: %s", error.fault.code)
                restarts += 1
                state.token = ""
            else:
                return

    def _prepare_restart(
        self, error: ProviderError, state: _HarvestProgress, restarts: int
    ) -> bool:
        if restarts >= _MOST_RESTARTS:
            return False
        if error.fault.code == BAD_TOKEN:
            return bool(state.token)
        if error.fault.code == BAD_ARGUMENT and not state.token and not self._by_days:
            self._by_days = True  # it announces granularity of seconds, and refuses it
            return True
        return False

    def _read_pages(self, wanted: RecordList, state: _HarvestProgress) -> None:
        met: set[str] = set()
        stale, done = 0, state.lists
        while state.lists == done:
            met.add(state.token)
            taken, token = self._read_page(wanted, state)
            stale = stale + 1 if not taken.fresh else 0
            if token is None or self._is_end(token, taken, state, met):
                state.lists, state.token = done + 1, ""
                self._save(state)
            elif stale > _MOST_STALE:
                raise self._endless(f"{stale} pages without a new record")

    def _is_end(
        self, token: ListToken, taken: PageCounts, state: _HarvestProgress, met: set[str]
    ) -> bool:
        """True if a token that was seen before is the last one."""
        if token.value not in met or taken.fresh:
            return False
        query = "SELECT count(*) FROM record WHERE attempt = ?"
        count = self._memory.rows(query, state.attempt)[0][0]
        if token.size is not None and count >= token.size:
            return True
        raise self._endless(f"the token {token.value[:200]!r} once more, and no new record")

    def _endless(self, got: str) -> BadResponseError:
        return BadResponseError(
            "the list of records loops",
            uri=self._endpoint.address,
            status=200,
            evidence=(
                ("got", got),
                sent_evidence(self._endpoint.address),
                ("kept", "no record was withdrawn"),
            ),
            hint="read shorter lists by the option window: --with window=30d",
            code="oai-endless",
        )

    def _read_page(
        self, wanted: RecordList, state: _HarvestProgress
    ) -> tuple[PageCounts, ListToken | None]:
        """Read one page; request a truncated one again."""
        arguments = wanted.arguments(state.token, by_days=self._by_days)
        for tries in range(1, _MOST_TRIES + 1):
            try:
                with self._endpoint.answer(arguments) as reply:
                    return self._store_page(wanted, state, reply)
            except SourceUnavailableError as error:
                if error.code != "truncated" or tries == _MOST_TRIES:
                    raise
                _log.info("a page was truncated, and is requested again")
        raise AssertionError("the last try returned or raised")

    def _store_page(
        self, wanted: RecordList, state: _HarvestProgress, reply: ProviderReply
    ) -> tuple[PageCounts, ListToken | None]:
        with self._memory.writing() as connection:
            taken = self._records.store_page(
                connection, wanted.prefix, reply.records(goes_on=bool(state.token)), state.attempt
            )
            self._endpoint.read["record"] += taken.records
            token = reply.token
            state.is_blind = state.is_blind or bool(taken.unnamed)
            state.token = token.value if token is not None else ""
            if token is not None:
                write_notes(connection, {_STATE: msgspec.json.encode(state).decode()})
        return taken, token

    def _save(self, state: _HarvestProgress | None) -> None:
        with self._memory.writing() as connection:
            told = "" if state is None else msgspec.json.encode(state).decode()
            write_notes(connection, {_STATE: told})


def _before(moment: datetime, seconds: float) -> datetime:
    try:
        return moment - timedelta(seconds=seconds)
    except OverflowError:
        return moment


def _stamp(moment: datetime) -> str:
    return format_w3c(moment.replace(microsecond=0))
