"""Destination: pull, repair and audit of one mirror (§5)."""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from resourcesync.destination.cursor import Phase
from resourcesync.destination.links import PatchSizeLimits, link_filter
from resourcesync.destination.lists.list_version import is_believed
from resourcesync.destination.lists.selection import Refusals, ResourceSelection
from resourcesync.destination.locate import CapabilityListProbe, ListLocator, report_source
from resourcesync.destination.mapping.names import check_mapper, is_rule, normalise_rule
from resourcesync.destination.mapping.path_mapping import TREE, FileSystemProfile
from resourcesync.destination.options import AuditMethod, Dependencies, PullOptions
from resourcesync.destination.path_assignment import PathAssignment
from resourcesync.destination.planner import ABSENT, Absence
from resourcesync.destination.removal.deletion import purge_old_trash, register_lost_trash
from resourcesync.destination.reports import MirrorState as Word
from resourcesync.destination.reports import Mode, PlanSummary, RunReport
from resourcesync.destination.runs import (
    MAX_SKEW,
    REPORTED_SKEW,
    MirrorRun,
    SkewMeasuringFetcher,
    build_report,
    describe_skew,
    new_run_id,
)
from resourcesync.destination.scope import Filters
from resourcesync.destination.session import CUT_LIST, SyncOutcome, SyncSession, timed_phase
from resourcesync.destination.sync_state import MirrorIdentity, SyncState, gone_rows
from resourcesync.destination.tasks import refused_item
from resourcesync.discovery.sets import SourceLists
from resourcesync.discovery.uris import origin
from resourcesync.errors import (
    BudgetError,
    ConfigurationError,
    NotAListError,
    ResourceMissingError,
    UnexpectedDocumentError,
)
from resourcesync.mirror_state.rows import ProcessedDocument, StateTransaction
from resourcesync.model.timestamps import to_microseconds

if TYPE_CHECKING:
    from resourcesync.destination.audits.explain import Explanation, Findings
    from resourcesync.destination.audits.fixity import AuditRolling
    from resourcesync.destination.audits.reports import AuditFinding, AuditReport
    from resourcesync.destination.baseline import Baseline
    from resourcesync.destination.incremental import Incremental

_log = logging.getLogger(__name__)
_LISTS_MOVED_ERRORS: Final = (ResourceMissingError, UnexpectedDocumentError, NotAListError)
"""Errors at a list's stored address that may mean that the Source moved its lists."""


class Destination:
    """Mirror of one Source."""

    def __init__(self, equipment: Dependencies) -> None:
        self._measuring_fetcher = SkewMeasuringFetcher(equipment.fetcher, equipment.clock)
        equipment = structs.replace(
            equipment, fetcher=self._measuring_fetcher, resource_fetcher=equipment.fetcher
        )
        self._dependencies = equipment
        self._sync_state = SyncState(equipment.state)
        self._locator = ListLocator(equipment, self._sync_state)
        self._moved_identity: MirrorIdentity | None = None
        self._path_assignments: list[PathAssignment] = []
        self._is_first = False

    def pull(self, options: PullOptions) -> RunReport:
        """Synchronize the mirror with its Source; run again to update."""
        run = MirrorRun(self._dependencies)
        self._measuring_fetcher.reset()
        self._path_assignments.clear()
        self._is_first = self._sync_state.identity is None
        try:
            self._dependencies.check_folder()
            if not options.dry_run:
                dependencies = self._dependencies
                register_lost_trash(dependencies.state, dependencies.copies, dependencies.clock)
            pulled = self._pull_within_limit(options)
            if not options.dry_run and abs(self._measuring_fetcher.skew) < MAX_SKEW:
                purge_old_trash(self._dependencies, options.trash_days)
        except BaseException as error:
            if not options.dry_run:
                self._record_failure(run, error)
            raise
        report = build_report(run.id, pulled, self._dependencies, dry_run=options.dry_run)
        renamed = sum(assignment.renamed for assignment in self._path_assignments)
        report = structs.replace(
            run.with_duration(report), lists_only=options.lists_only, renamed=renamed
        )
        report = self._apply_clock_check(report)
        if not options.dry_run:
            run.record(report, report.mode)
            if report.state is Word.IN_SYNC:
                self._dependencies.drop_parts()  # the mirror is complete: no later run needs them
        return report

    def _record_failure(self, run: MirrorRun, error: BaseException) -> None:
        """Record why a pull failed; not a usage error, which says nothing about the mirror."""
        is_kept = self._sync_state.identity is not None or self._dependencies.is_expected
        if is_kept and not isinstance(error, ConfigurationError):
            run.record_failure(error)

    def _apply_clock_check(self, report: RunReport) -> RunReport:
        """Report a clock that differs from the Source's: then the mirror is not in sync."""
        skew, as_of = self._report_skew(), report.as_of
        # Lists of today agree with the local clock: then the server's clock is wrong.
        is_right = as_of is not None and abs(self._dependencies.clock.now() - as_of) <= MAX_SKEW
        if abs(skew) < MAX_SKEW or is_right:
            return report
        state = Word.BEHIND if report.state is Word.IN_SYNC else report.state
        return structs.replace(report, state=state, skew=skew.total_seconds())

    def _report_skew(self) -> timedelta:
        skew = self._measuring_fetcher.skew
        if abs(skew) >= REPORTED_SKEW:
            fields = {"code": "clock-skew", "message": describe_skew(skew), "evidence": ()}
            self._dependencies.report("warning", fields)
        return skew

    def _pull_within_limit(self, options: PullOptions) -> SyncOutcome:
        """Pull until the time limit of the run is reached."""
        try:
            with self._dependencies.cancel.within(options.max_duration):
                return self._pull(options)
        except BudgetError:
            if self._sync_state.identity is None:
                raise
            plan = PlanSummary(mode=Mode.UNCHANGED)
            return SyncOutcome(
                mode=plan.mode, plan=plan, is_complete=False, are_deletions_done=False, spent="time"
            )

    def _pull(self, options: PullOptions) -> SyncOutcome:
        if options.moved:
            return self._follow_move(options)
        address = self._locator.address(self._dependencies.source)
        filters, is_due = self._filters(options)
        options = structs.replace(options, filters=filters, changes={})
        stored = None if options.mode == "baseline" else self._sync_state.discovered
        rediscover = partial(self._locator.rediscover, address, filters, dry_run=options.dry_run)
        self._locator.check_set(address, filters, options.set_name)
        if stored is not None and self._locator.is_rediscovery_due():
            known = stored
            stored = rediscover(known) or known
            # New Change Lists need not have the changes before their start.
            is_due = is_due or (known.change_list is None and stored.change_list is not None)
        try:
            return self._pull_from(address, stored, options, filters, is_due=is_due)
        except _LISTS_MOVED_ERRORS:
            if stored is None:
                raise
            _log.info("the Source moved its lists: discovering them again")
            found = rediscover(stored)
            if found is None or found == stored:
                raise
            return self._pull_from(address, found, options, filters, is_due=is_due)

    def _follow_move(self, options: PullOptions) -> SyncOutcome:
        """Pull from the Source's new address, as given by the operator.

        The mirror knows its resources by their first URIs, so all files stay in place.
        """
        filters, _ = self._filters(options)
        options = structs.replace(options, filters=filters, changes={})
        found, self._moved_identity = self._locator.locate_moved(
            options.moved, filters, options.set_name
        )
        if not options.dry_run:
            now = to_microseconds(self._dependencies.clock.now())
            self._sync_state.write(
                identity=self._moved_identity,
                moved_from=self._locator.previous_address(options.moved),
                found=found,
                found_at=now,
                cursor=self._sync_state.cursor.with_baseline_due(),
            )
        return self._pull_from(options.moved, found, options, filters, is_due=True)

    def _filters(self, options: PullOptions) -> tuple[Filters, bool]:
        known = self._sync_state.filters
        chosen: Any = options.changes
        filters = structs.replace(options.filters or known or Filters(), **chosen)
        return filters, options.prune or known not in (None, filters)

    def _pull_from(
        self,
        address: str,
        found: SourceLists | None,
        options: PullOptions,
        filters: Filters,
        *,
        is_due: bool,
    ) -> SyncOutcome:
        pull = self._prepare(address, found, options, filters)
        known = self._sync_state.filters
        has_new_filters = known not in (None, filters)  # not in sync by these yet
        if known is not None and has_new_filters:
            self._dependencies.report(
                "scope", {"before": structs.asdict(known), "after": structs.asdict(filters)}
            )
        pull.cursor = pull.cursor.with_baseline_due() if is_due else pull.cursor
        if not options.dry_run:
            # One transaction: new filters without a baseline would seem to be in sync after a kill.
            self._sync_state.write(
                filters=filters,
                accept_missing=options.accept_missing,
                missing_accepted=pull.accepts_missing,
                cursor=pull.cursor if is_due else None,
                in_sync_at=0 if has_new_filters else None,
            )
        report_source(pull, first=self._is_first)
        lists = CapabilityListProbe(pull)
        with pull.packages.retaining_packages():
            pulled = self._synchronize(pull, options, lists, is_due=is_due)
            if pulled is not None and pull.sync_state.unhashed()[0].copies:
                from resourcesync.destination.audits.recheck import Recheck  # noqa: PLC0415 - lazy

                Recheck(pull).run(pulled)
        if pulled is not None and pulled.selected_count == 0 and pull.selection.has_filters:
            pull.warn("nothing-selected", "no listed resource matches the filters")
        pull.warn_dropped_values()
        pull.report_leniencies()
        return pulled or self._pull_from(address, lists.found, options, filters, is_due=is_due)

    def _synchronize(
        self, pull: SyncSession, options: PullOptions, lists: CapabilityListProbe, *, is_due: bool
    ) -> SyncOutcome | None:
        """Do what is due; ``None`` if the Source offers other lists now, to be read instead."""
        through, due = pull.cursor.checkpoint, pull.cursor.is_baseline_due or is_due
        # A Resource List that is read for itself leads to no Change List that is newer.
        waiting = not due and self._has_unlisted_copies(pull)
        is_read = due or waiting or pull.cursor.has_gap or self._follows_archive(pull)
        if is_read and lists.probe():
            return None
        if options.mode == "baseline" or through is None or due:
            pulled = _baseline(pull).run(gap=False)
        elif pull.found.change_list is not None:
            pulled = self._fill_gap(pull) or self._reread_list(pull, waiting=waiting)
            return pulled or _incremental(pull, lists.probe).run(pull.found.change_list)
        else:
            known = None if self._sync_state.has_uncertain_entries else self._known_list(pull)
            pulled = _baseline(pull).run(gap=False, known=known)
            if not options.dry_run:
                self._sync_state.write(found=pull.discovered)
        return pulled or _incremental(pull, bool).work_off()

    def _fill_gap(self, pull: SyncSession) -> SyncOutcome | None:
        """Read a newer Resource List if changes are missing; ``None`` if there is none yet.

        A list that was cut may be completed later, with the same moment.
        """
        if not pull.cursor.has_gap or pull.found.resource_list is None:
            return None
        known, is_cut = self._known_list(pull), pull.cursor.phase is Phase.CUT_LIST
        pulled = _baseline(pull).run(gap=False, known=known, newer=not is_cut)
        if pulled is None:
            missing = "changes are missing until the Source's next Resource List"
            pull.warn("cut-list" if is_cut else "change-gap", CUT_LIST if is_cut else missing)
        return pulled

    def _reread_list(self, pull: SyncSession, *, waiting: bool) -> SyncOutcome | None:
        """Read a changed Resource List where that is due; ``None`` if it is not, or did not change.

        Where an archive takes the place of the Change Lists, a newer Resource List also has what is
        not in the archive yet.
        """
        if not waiting and not self._follows_archive(pull):
            return None
        known = self._known_list(pull)
        return _baseline(pull).run(gap=False, known=known, newer=not waiting)

    def _has_unlisted_copies(self, pull: SyncSession) -> bool:
        """True if copies wait that no list names: only a Resource List can withdraw that."""
        if pull.found.resource_list is None or pull.found.change_list is None:
            return False
        retains = pull.decision_policy(Absence.UNCHANGED).retains(ABSENT)
        return not retains and any(row.reason == ABSENT for row in gone_rows(pull.state))

    def _follows_archive(self, pull: SyncSession) -> bool:
        found = pull.found
        return found.resource_list is not None and found.change_list == found.change_list_archive

    def _known_list(self, pull: SyncSession) -> ProcessedDocument | None:
        """Return the record of the Resource List; ``None`` if it is to be read in any case."""
        uri, read_at = pull.found.resource_list, self._sync_state.list_read_at
        known = None if uri is None else pull.state.document(uri)
        return known if known is not None and is_believed(known.etag, read_at, pull.now) else None

    def _prepare(
        self, address: str, found: SourceLists | None, options: PullOptions, filters: Filters
    ) -> SyncSession:
        equipment = self._dependencies
        if found is None:
            with timed_phase(equipment, "discovery"):
                found = self._locator.locate(address, filters, options.set_name)
            if not options.dry_run and self._sync_state.identity is not None:
                self._sync_state.write(found_at=to_microseconds(equipment.clock.now()))
        identity = self._moved_identity or self._sync_state.identity
        identity = identity or self._new_identity(address, found, options)
        check_mapper(_requested_mapper(options), identity.mapper)
        selection = self._new_selection(identity, filters)
        if not options.dry_run and self._sync_state.identity is None:
            now = to_microseconds(equipment.clock.now())
            self._sync_state.write(identity=identity, found_at=now)
        pull = SyncSession(equipment, options, found, selection, identity)
        self._path_assignments.append(pull.path_assignment)
        pull.path_assignment.resume_moves()
        return pull

    def _new_selection(self, identity: MirrorIdentity, filters: Filters) -> ResourceSelection:
        """Return the selection of entries; raises before a mistake makes a mirror."""
        equipment = self._dependencies
        scope = identity.scope(filters)
        known = (row.uri for row in equipment.state.refused())
        refusals = Refusals(lambda row: equipment.report("item", refused_item(row)), known)
        links = link_filter(scope, filters)
        yielding = self._sync_state.relocated_uris
        mapping = identity.mapping(equipment.mappers, yielding)
        largest = PatchSizeLimits(equipment.patches)
        return ResourceSelection(scope, mapping, refusals, largest, links, identity.moved)

    def _new_identity(
        self, address: str, found: SourceLists, options: PullOptions
    ) -> MirrorIdentity:
        home = origin(found.entry)
        is_posix = self._dependencies.is_case_sensitive
        return MirrorIdentity(
            source=address,
            base=f"{home}/",
            origins=tuple(dict.fromkeys((home, origin(address)))),
            profile=FileSystemProfile.POSIX if is_posix else FileSystemProfile.PORTABLE,
            set_uri=found.set_uri if options.set_name else "",
            mapper=_requested_mapper(options) or TREE,
        )

    def repair(
        self,
        findings: "Iterable[AuditFinding] | None",
        options: PullOptions,
        *,
        deleting: bool = False,
    ) -> RunReport:
        """Fetch again what an audit found missing or different."""
        from resourcesync.destination.audits.audit import MAX_REPAIR_FINDINGS, Audit  # noqa: PLC0415 - lazy
        from resourcesync.destination.repair import Repair  # noqa: PLC0415 - lazy

        run = MirrorRun(self._dependencies)
        self._measuring_fetcher.reset()
        self._dependencies.check_folder()
        if deleting:  # then a list without its own time may prove absence, too
            options = structs.replace(options, delete="absent")
        was_in_sync: bool | None = None
        if findings is None:
            session = self.read_only_session(asking=True)
            audit = Audit(session, "stat", kept=MAX_REPAIR_FINDINGS, doubting=not options.dry_run)
            audited = audit.run(run.id, offline=False)
            findings, was_in_sync = audited.findings, audited.in_sync
        filters = self._sync_state.filters or Filters()
        pull = self._prepare(
            self._locator.address(None), self._sync_state.discovered, options, filters
        )
        pull = self._with_current_lists(pull)
        limit = self._dependencies.cancel.within(options.max_duration)
        with limit, pull.packages.retaining_packages():
            pulled = Repair(pull, deleting=deleting).run(findings, was_in_sync=was_in_sync)
        pulled.is_complete = pulled.is_complete and not self._sync_state.cursor.is_incomplete
        report = run.with_duration(
            build_report(run.id, pulled, self._dependencies, dry_run=options.dry_run)
        )
        report = self._apply_clock_check(report)
        if not options.dry_run:
            run.record(report, "repair")
        return report

    def read_only_session(self, *, asking: bool = False) -> SyncSession:
        """Return a session for an audit or explanation: nothing is written through it."""
        pull = self._prepare(
            self._locator.address(None),
            self._sync_state.discovered,
            PullOptions(dry_run=True),
            self._sync_state.filters or Filters(),
        )
        return self._with_current_lists(pull) if asking else pull

    def _with_current_lists(self, pull: SyncSession) -> SyncSession:
        """Return the session with the lists that the Source offers now."""
        lists = CapabilityListProbe(pull)
        if not lists.probe():
            return pull
        filters = self._sync_state.filters or Filters()
        return self._prepare(self._locator.address(None), lists.found, pull.options, filters)

    def audit(
        self,
        *,
        method: AuditMethod = "hash",
        offline: bool = False,
        rolling: "AuditRolling | None" = None,
        kept: int = 10_000,
    ) -> "AuditReport":
        """Compare the mirror's copies with what the Source lists; no copy is changed (§5.2).

        The findings are stored for `repair`.
        """
        from resourcesync.destination.audits.audit import Audit  # noqa: PLC0415 - lazy
        from resourcesync.destination.audits.reports import AuditRecord, notes_with_audit  # noqa: PLC0415 - lazy

        clock = self._dependencies.clock
        started = clock.monotonic()
        self._measuring_fetcher.reset()
        self._dependencies.check_folder()
        pull = self.read_only_session(asking=not offline)
        if not offline:
            report_source(pull)
        # The findings are stored under the mirror's lock, so that two audits cannot mix theirs.
        with self._dependencies.findings() as findings:
            audit = Audit(pull, method, kept=kept, store=findings)
            report = audit.run(new_run_id(), offline=offline, rolling=rolling)
            if not report.in_sync or report.foreign or report.unlisted:
                findings.set_name(report.run, clock.now().strftime("%Y%m%d%H%M%S%f"))
        at, skew = report.at or datetime.min.replace(tzinfo=UTC), self._report_skew()
        if abs(skew) >= MAX_SKEW and abs(clock.now() - at) > MAX_SKEW:
            report = structs.replace(report, has_gap=True)
        moment = to_microseconds(clock.now())
        report = structs.replace(report, seconds=clock.monotonic() - started)
        audit_record = AuditRecord(
            ended=moment, method=method, report=structs.replace(report, findings=())
        )
        state = self._dependencies.state
        state.commit(StateTransaction(notes=notes_with_audit(state, audit_record)))
        return report

    def explain(
        self, names: Sequence[str], findings: "Findings", *, offline: bool = False
    ) -> "Explanation":
        """Collect the facts about one resource; no copy is changed."""
        from resourcesync.destination.audits.explain import explain  # noqa: PLC0415 - lazy

        session = self.read_only_session(asking=not offline)
        return explain(session, names, findings, offline=offline)


def _baseline(pull: SyncSession) -> "Baseline":
    from resourcesync.destination.baseline import Baseline  # noqa: PLC0415 - lazy

    return Baseline(pull)


def _incremental(pull: SyncSession, are_others: Callable[[], bool]) -> "Incremental":
    from resourcesync.destination.incremental import Incremental  # noqa: PLC0415 - lazy

    return Incremental(pull, are_others)


def _requested_mapper(options: PullOptions) -> str:
    """Return the mapper that the operator names, as it is recorded; empty for none."""
    return normalise_rule(options.mapper) if is_rule(options.mapper) else options.mapper
