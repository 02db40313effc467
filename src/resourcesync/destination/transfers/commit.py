"""Commit of fetched resources in groups: files durable first, then one state transaction."""

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

import msgspec

from resourcesync import ports
from resourcesync.destination import pending_tasks, planner
from resourcesync.destination.pull_session import SyncSession
from resourcesync.destination.reports import TransferTally
from resourcesync.destination.sync_state import encode_notes, question_notes
from resourcesync.destination.transfers.verification import SharedAnswers, installed_content
from resourcesync.errors import DiskFullError, StorageError
from resourcesync.mirror_state import rows
from resourcesync.model.timestamps import DAY, SECOND, to_microseconds
from resourcesync.ports.validators_and_dates import served_at, validators_of

_GROUP: Final = 256
_NO_FIELDS: Final[Mapping[str, str]] = MappingProxyType({})
_GROUP_SECONDS: Final = 1.0
_PROGRESS_SECONDS: Final = 1.0
_MAX_FAILURES: Final = 1_000
_MAX_QUARANTINE_WARNINGS: Final = 100
_SIGNATURE: Final = rows.Copy._fields.index("signature")


class StagedResource(msgspec.Struct):
    """Resource with verified bytes that waits for its group.

    ``staged`` is ``None`` if the bytes are in place. ``counts`` is false if the Source answered
    that the copy is still good. ``local``: of another copy in the mirror. ``patched`` are the bytes
    of the patch. ``contradicts`` is the difference from the list, where bytes are kept all the
    same. ``has_bad_digest``: the server's digest cannot be read, and was ignored. ``served_by``,
    of what a server answered, is another page, without its query, to which it was redirected.
    """

    fetch: planner.Fetch
    copy: rows.Copy
    staged: ports.StagedCopy | None
    counts: bool = True
    local: bool = False
    patched: int | None = None
    contradicts: str = ""
    has_bad_digest: bool = False
    served_by: str | None = None

    @property
    def unproven_answers(self) -> tuple[str, ...]:
        """What takes the place of a good copy and no list proves: its bytes, and another page."""
        before = self.fetch.before
        if self.served_by is None or before is None or before.is_damaged or self.copy.listed:
            return ()
        is_same = before.digests == self.copy.digests
        return () if is_same else tuple(filter(None, (self.copy.digests, self.served_by)))


class CommitBatch:
    """Batch of finished fetches of a plan up to ``at``, installed and recorded group by group."""

    def __init__(self, pull: SyncSession, at: int) -> None:
        equipment = pull.dependencies
        self._pull, self._at = pull, at
        self._copies, self._state = equipment.copies, equipment.state
        self._clock, self._report = equipment.clock, equipment.report
        self._group: list[StagedResource] = []
        self._waiting = 0
        self._failed: list[rows.Pending] = []
        self._finished: list[str] = []
        self._patched: list[rows.PatchRow] = []
        self._unconfirmed: list[str] = []
        self._opened_at = self._progress_at = self._clock.monotonic()
        self._total = self._size = 0
        self._quarantine_count = 0
        self._shared: SharedAnswers | None = None
        self.tally = TransferTally()

    def expect(self, total: int, size: int) -> None:
        """Set the number of fetches and, as far as known, their bytes, for progress."""
        self._total, self._size = total, size

    def now(self) -> int:
        """Return the present moment in microseconds."""
        return to_microseconds(self._clock.now())

    def new_copy(
        self,
        listed: planner.ListedEntry,
        length: int,
        digests: str,
        fixity: rows.Fixity,
        headers: Mapping[str, str] = _NO_FIELDS,
    ) -> rows.Copy:
        """Return the copy to record for a resource with verified bytes.

        Its time of installation is the start of the run, until ``flush`` has installed the bytes.
        """
        uri, _, path, hash_, _, lastmod, *_ = listed
        served = served_at(headers)
        if not hash_:
            lastmod = self.lastmod_to_record(listed, served)
        known, kind = validators_of(headers), str(fixity)  # SQLite stores plain text sooner
        began, evidence = self._pull.now, self.evidence_of(listed, served)
        row = (uri, path, length, digests, hash_, lastmod, *known, "", kind, began, evidence)
        return rows.make_copy(row)

    def evidence_of(self, listed: planner.ListedEntry, served: int | None) -> int:
        """Return the Source's time at which lists and an answer show that a resource exists.

        A change may be later than what its list reports as a whole; one in whole seconds may be of
        the end of its second. Its server's clock may be behind that of the lists; one that is far
        ahead of ours proves nothing for its own future, nor does a file that is dated ahead.
        """
        changed = (listed.lastmod or 0) if listed.change else 0
        changed += 0 if changed % SECOND else SECOND - 1
        now, listed_at = self._pull.now, self._pull.list_clock
        answered = now if served is None else min(served, now + DAY)
        return max(listed_at, answered if served else 0, min(changed, max(listed_at, answered)))

    def lastmod_to_record(self, listed: planner.ListedEntry, served: int | None) -> int | None:
        """Return the ``lastmod`` to record with an answer, or with one that said "not modified".

        The bytes are of the moment when the server made the answer, if it gives one; else of the
        start of the run.
        """
        return planner.recordable_lastmod(listed, self._pull.now if served is None else served)

    def add(self, ready: StagedResource) -> None:
        """Add a resource with verified bytes."""
        self._waiting += 1
        self._group.append(ready)
        listed = ready.fetch.listed
        if ready.copy.lastmod != listed.lastmod:
            self.tally.open_dates += 1
        self.tally.undecided += planner.is_undecided(listed, ready.copy)
        self.tally.by_request += not (ready.counts or ready.copy.listed)

    def add_unconfirmed(self, uri: str) -> None:
        """Add a copy of which the Source said "not modified" though its date moved."""
        self._unconfirmed.append(uri)

    def add_unchanged(self, fetch: planner.Fetch) -> None:
        """Add a resource that stays unchanged."""
        self._waiting += 1
        self.tally.by_request += fetch.before is not None and not fetch.before.listed
        self._finished.append(fetch.listed.uri)
        self.tally.undecided += planner.is_undecided(fetch.listed, fetch.before)
        if fetch.before is not None:
            self.tally.open_dates += fetch.before.lastmod != fetch.listed.lastmod

    def add_failure(self, fetch: planner.Fetch, code: str, reason: str, tries: int) -> bool:
        """Add a resource that could not be fetched; its present copy stays."""
        listed = fetch.listed
        self._waiting += 1
        if listed.change in planner.MAY_BE_GONE and code in pending_tasks.ABSENT_CODES:
            if planner.is_gone_by_answer(fetch, is_old_reading=self._pull.is_old_reading):
                self._record_as_gone(fetch)
                return False
            code, reason = pending_tasks.OLD_ANSWER, pending_tasks.OLD_ANSWER_REASON
        self.tally.undecided += listed.undated
        status = self._status_of(code)
        self.tally.absent += status == "absent"
        self.tally.skipped += status == "skipped"
        self.tally.failed += status == "error"
        self._failed.append(self._fetch_task(listed, code, reason, tries))
        action, kept = ("create", False) if fetch.creates else ("update", True)
        found = (action, listed.loc, listed.path, code, reason)
        item = pending_tasks.failed_item(*found, kept=kept, tries=tries, status=status)
        self._report("item", item)
        return status == "error"

    def _record_as_gone(self, fetch: planner.Fetch) -> None:
        self.tally.gone += 1
        if fetch.before is None:
            self._finished.append(fetch.listed.uri)
            return
        delete = "never" if self._pull.options.delete == "never" else "auto"
        policy = planner.DecisionPolicy(absence=planner.Absence.UNCHANGED, delete=delete)
        decision = planner.decide_gone(fetch.before, planner.ABSENT, policy)
        generation = self._pull.generation
        row = pending_tasks.task_of(decision, now=self.now(), at=self._at, generation=generation)
        self._failed.append(row)

    def _status_of(self, code: str) -> str:
        if not self._pull.accepts_missing:
            return "error"
        if code in pending_tasks.ABSENT_CODES:
            return "absent"
        return "skipped" if code in pending_tasks.SKIPPED_CODES else "error"

    def _fetch_task(
        self, listed: planner.ListedEntry, code: str, reason: str, tries: int
    ) -> rows.Pending:
        task = pending_tasks.pending_fetch(
            listed,
            known=self._state.pending_of(listed.uri),
            now=self.now(),
            at=self._at,
            generation=self._pull.generation,
            code=code,
            reason=reason,
            failed=bool(tries),
        )
        if self._status_of(code) == "error" and len(self.tally.failures) < _MAX_FAILURES:
            self.tally.failures.append(pending_tasks.failing(task, listed.uri))
        return task

    def add_failed_patch(self, fetch: planner.Fetch, reason: str) -> None:
        """Add a patch that failed; the whole resource is fetched instead."""
        self.tally.unpatched += 1
        listed = fetch.listed
        self._patched.append(rows.PatchRow(listed.uri, self.now(), reason))
        self._report("patch", {"uri": listed.loc, "path": listed.path, "reason": reason})

    def flush_when_due(self) -> None:
        """Flush the group when it is large or old enough; then report progress, if that is due."""
        now = self._clock.monotonic()
        if self._waiting < _GROUP and (not self._waiting or now - self._opened_at < _GROUP_SECONDS):
            return
        self.flush()
        self._pull.dependencies.cancel.raise_if_cancelled()
        if now - self._progress_at >= _PROGRESS_SECONDS:
            self._progress_at = now
            self.report_progress()

    def report_progress(self) -> None:
        """Report how much is done."""
        tally = self.tally
        sizes = {"bytes_done": tally.useful, "bytes_total": self._size}
        counts = {"done": tally.done, "total": self._total, **sizes, "failed": tally.failed}
        self._report("progress", counts)

    def flush(self) -> None:
        """Make the group durable, then record it."""
        self._opened_at = self._clock.monotonic()  # first: an exception here must lose nothing
        group, self._group = self._group, []
        staged = self._without_shared([ready for ready in group if ready.staged is not None])
        # After a kill in the middle it is unknown which files are old and which new.
        befores = {
            ready.copy.uri: self._state.copy(ready.copy.uri)
            for ready in staged
            if ready.fetch.before is not None
        }
        suspects = [befores.get(ready.copy.uri) or ready.copy for ready in staged]
        self._state.commit(rows.StateTransaction(suspect=tuple(map(planner.as_unknown, suspects))))
        results = self._copies.install([_installation_of(ready) for ready in staged])
        moment = self.now() if staged else 0  # one reading of the clock for a group
        self._report_quarantined()
        installed = [ready for ready in group if ready.staged is None]
        refused: dict[str, rows.Copy | None] = {}
        broken: StorageError | None = None
        for ready, result in zip(staged, results, strict=True):
            if isinstance(result, str):
                fixity = ready.copy.fixity
                ready.copy = rows.make_copy(
                    (*ready.copy[:_SIGNATURE], result, fixity, moment, ready.copy.evidence)
                )
                installed.append(ready)
            elif result.code in ports.ONE_COPY:
                refused[ready.copy.uri] = befores.get(ready.copy.uri)
                self.add_failure(ready.fetch, result.code, result.message, 1)
            else:
                broken = result if isinstance(result, DiskFullError) else broken or result
                before = befores.get(ready.copy.uri)
                if self._is_untouched(ready.copy.path, before):
                    refused[ready.copy.uri] = before
        self._commit(installed, refused)
        for ready in installed:
            if ready.counts:
                self._count(ready)
        if broken is not None:
            raise broken

    def _is_untouched(self, path: str, before: rows.Copy | None) -> bool:
        with suppress(StorageError):
            return self._copies.signature(path) == (before and before.signature)
        return False

    def _without_shared(self, staged: list[StagedResource]) -> list[StagedResource]:
        unproven = [(ready, found) for ready in staged if (found := ready.unproven_answers)]
        if not unproven:
            return staged
        shared = self._shared = self._shared or SharedAnswers(self._pull.sync_state.shared_answers)
        is_accepted = self._pull.options.mode == "baseline"
        for ready, answers in unproven:
            assert ready.fetch.before is not None
            for answer in answers:
                shared.add(answer, ready.fetch.before.digests, is_accepted=is_accepted)
        held = {id(ready) for ready, answers in unproven if any(map(shared.holds, answers))}
        for ready, _ in unproven:
            if id(ready) in held:
                assert ready.staged is not None
                ready.staged.discard()
                self.add_failure(ready.fetch, pending_tasks.SHARED, pending_tasks.SHARED_REASON, 1)
        return [ready for ready in staged if id(ready) not in held]

    def _report_quarantined(self) -> None:
        for path, place in self._copies.newly_quarantined():
            self._quarantine_count += 1
            if self._quarantine_count <= _MAX_QUARANTINE_WARNINGS:
                self._report("warning", pending_tasks.quarantine_warning(path, place))

    def _commit(
        self, installed: list[StagedResource], refused: dict[str, rows.Copy | None]
    ) -> None:
        self._waiting = 0
        failed, self._failed = self._failed, []
        completed, self._finished = self._finished, []
        patched, self._patched = self._patched, []
        unconfirmed, self._unconfirmed = self._unconfirmed, []
        patched += (
            rows.PatchRow(ready.copy.uri, ready.copy.installed, "")
            for ready in installed
            if ready.patched is not None
        )
        failed += (
            self._fetch_task(ready.fetch.listed, pending_tasks.CONTRADICTING, ready.contradicts, 1)
            for ready in installed
            if ready.contradicts
        )
        undecided = question_notes(self._pull.cursor) if self.tally.undecided else {}
        if installed or refused or failed or completed or patched:
            self._state.commit(
                rows.StateTransaction(
                    suspect=[before for before in refused.values() if before is not None],
                    removed=[uri for uri, before in refused.items() if before is None],
                    installed=[ready.copy for ready in installed],
                    pending=failed,
                    completed=completed,
                    patched=patched,
                    unconfirmed=unconfirmed,
                    now=self.now() if unconfirmed else 0,
                    notes=encode_notes(
                        unsure=True if self.tally.open_dates else None,
                        shared_answers=self._shared and self._shared.known,
                    )
                    | undecided,
                )
            )

    def _count(self, ready: StagedResource) -> None:
        fetch, copy, tally = ready.fetch, ready.copy, self.tally
        before = fetch.before
        creates = fetch.creates
        is_equal = not (creates or ready.contradicts) and planner.has_bytes(before, copy.digests)
        if is_equal:
            tally.same += 1
            tally.refetched += 1
        elif creates:
            tally.created += 1
        else:
            tally.updated += 1
        tally.useful += copy.length if ready.staged is not None else 0
        tally.patched += ready.patched is not None
        tally.contradicting += bool(ready.contradicts)
        tally.by_request += not copy.listed
        tally.fixity[copy.fixity] = tally.fixity.get(copy.fixity, 0) + 1
        code, reason = pending_tasks.CONTRADICTING, ready.contradicts
        more: dict[str, object] = {"code": code, "reason": reason} if reason else {}
        if ready.has_bad_digest:
            more["bad_digest"] = True
        self._report(
            "item",
            {
                "status": "notneeded" if is_equal else "ok",
                "action": "create" if creates else "update",
                "uri": fetch.listed.loc,
                "path": copy.path,
                "bytes": copy.length,
                "was_bytes": None if before is None or before.is_damaged else before.length,
                "hash": copy.digests,
                "verified": copy.fixity == rows.Fixity.VERIFIED,
                "fixity": copy.fixity,
                "adopted": ready.staged is None,
                "local": ready.local,
                "patched": ready.patched,
                **more,
            },
        )


def _installation_of(ready: StagedResource) -> ports.CopyInstallation:
    assert ready.staged is not None
    before = ready.fetch.before
    path, lastmod = ready.copy.path, ready.fetch.listed.lastmod
    if before is None:
        return ports.CopyInstallation(ready.staged, path, lastmod)
    known = before.signature, installed_content(before), before.installed
    return ports.CopyInstallation(ready.staged, path, lastmod, *known)
