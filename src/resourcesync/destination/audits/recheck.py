"""Rechecks: copies that no listed hash proves are requested again, a few in each pull."""

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Final

from msgspec.structs import replace

from resourcesync.destination.lists import recheck_plan
from resourcesync.destination.planner import Fetch, ListedEntry
from resourcesync.destination.pull_session import SyncOutcome, SyncSession, timed_phase
from resourcesync.destination.transfers.transfer import ResourceTransfer
from resourcesync.mirror_state.rows import Copy, RecheckState
from resourcesync.model.vocabulary import Capability

_PAGE: Final = 1_000


class Recheck:
    """Rechecks of one pull, after all else is done."""

    def __init__(self, pull: SyncSession) -> None:
        self._pull = pull
        self._state = RecheckState(base=0, period=0, began=0, paced=0, pulled=0)
        # Where no Change List is followed, each pull requests copies without a date.
        self._only_dated = pull.found.change_list is None

    def run(self, pulled: SyncOutcome) -> None:
        """Request the copies that are due, if the pull came to its end; correct its outcome."""
        pull, now = self._pull, self._pull.now
        if not self._is_allowed(pulled):
            return
        base = recheck_plan.base_period(pull.options.recheck, is_sitemap=pull.discovered.is_sitemap)
        known = pull.sync_state.rechecks
        self._state = recheck_plan.with_base(known or recheck_plan.first_state(base, now), base)
        seconds = recheck_plan.time_limit(self._state, now, pull.options.max_duration)
        counts, _ = pull.sync_state.unhashed()
        number = counts.dated if self._only_dated else counts.copies
        due, self._state = recheck_plan.pace(self._state, number, now)
        if due:
            with timed_phase(pull.dependencies, "recheck"):
                self._request(pulled, due, seconds)
        counts, counted = pull.sync_state.unhashed()
        self._state = replace(
            self._state, by_request=pulled.tally.by_request, counts=counts, counted=counted
        )
        pull.sync_state.write(rechecks=self._state)

    def _is_allowed(self, pulled: SyncOutcome) -> bool:
        options = self._pull.options
        is_written = not (options.dry_run or options.lists_only)
        # What only a dump has need not be at its own address.
        is_served = Capability.RESOURCE_DUMP not in self._pull.listing_dumps
        return is_written and is_served and pulled.is_complete and not pulled.spent

    def _request(self, pulled: SyncOutcome, due: int, seconds: float) -> None:
        transfer = ResourceTransfer(self._pull, self._pull.cursor.checkpoint or 0)
        with closing(self._in_time(self._fetches(due), seconds)) as fetches:
            tally = transfer.execute(fetches, total=due, size=0)
        self._state = recheck_plan.with_result(self._state, tally.same, tally.updated)
        pulled.rechecked = tally.done
        pulled.stale_dates = tally.updated
        # The copies were counted as unchanged before.
        others = tally.updated + tally.failed + tally.absent + tally.skipped
        pulled.plan = replace(pulled.plan, same=max(0, pulled.plan.same - others))
        pulled.tally = pulled.tally.plus(tally, without="same")
        if tally.updated:
            were = "copy was" if tally.updated == 1 else "copies were"
            self._pull.warn(
                "stale-dates",
                f"{tally.updated:,} stale {were} found among {tally.done:,} requested again: the"
                " Source changed them without a new date, so its dates prove little",
            )

    def _in_time(self, fetches: Iterator[Fetch], seconds: float) -> Generator[Fetch, None, None]:
        clock = self._pull.dependencies.clock
        end = clock.monotonic() + seconds
        for fetch in fetches:
            yield fetch
            if clock.monotonic() >= end:
                return

    def _fetches(self, due: int) -> Iterator[Fetch]:
        for copy in self._walk(due):
            is_chosen, self._state = recheck_plan.with_visit(self._state, copy)
            if not is_chosen or copy.installed >= self._pull.now or copy.is_suspect:
                continue
            doubted = self._pull.state.unconfirmed_since(copy.uri)
            if doubted is None or doubted < self._pull.now:  # else it was requested just now
                yield Fetch(self._listed(copy), copy, is_conditional=doubted is None)

    def _walk(self, due: int) -> Iterator[Copy]:
        """Yield the next copies; at the end of a round the next one begins."""
        is_new = False
        while due > 0:
            limit = min(due, _PAGE)
            page = self._pull.state.unhashed(self._state.after, limit, dated=self._only_dated)
            yield from page
            due -= len(page)
            if len(page) == limit:
                continue
            if is_new and not page:
                return
            is_new = True
            self._state = recheck_plan.with_next_round(self._state, self._pull.now)

    def _listed(self, copy: Copy) -> ListedEntry:
        return ListedEntry(
            uri=copy.uri,
            loc=self._pull.selection.addresses.source_uri(copy.uri),
            path=copy.path,
            hash="",
            length=None,
            lastmod=copy.lastmod,
            change="",
        )
