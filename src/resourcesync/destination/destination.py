"""Destination: pull, repair and audit of one mirror (§5)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec import structs

from resourcesync.destination import clock_skew, known_lists, runs
from resourcesync.destination.cursor import Cursor, Phase
from resourcesync.destination.lists.absence_proof import is_trusted
from resourcesync.destination.lists.selection import Refusals, ResourceSelection
from resourcesync.destination.mapping import TREE, FileSystemProfile
from resourcesync.destination.mapping.names import check_mapper, normalise_rule
from resourcesync.destination.options import Dependencies, PullOptions
from resourcesync.destination.path_assignment import PathAssignment
from resourcesync.destination.pending_tasks import refused_item
from resourcesync.destination.planner import ABSENT, Absence
from resourcesync.destination.pull_session import (
    CUT_LIST,
    Next,
    SyncOutcome,
    SyncSession,
    out_of_time,
    timed_phase,
)
from resourcesync.destination.reports import MirrorState as Word
from resourcesync.destination.reports import RunReport
from resourcesync.destination.scope_and_filters import Filters, link_filter
from resourcesync.destination.sync_state import MirrorIdentity, SyncState, gone_rows
from resourcesync.destination.transfers.verification import recover_suspects
from resourcesync.discovery.sets import SourceLists
from resourcesync.discovery.uris import origin
from resourcesync.errors import (
    BudgetError,
    ConfigurationError,
    DiskFullError,
    NotAListError,
    ResourceMissingError,
    StorageError,
    UnexpectedDocumentError,
)
from resourcesync.mirror_state.rows import ProcessedDocument, StateTransaction
from resourcesync.model.leniencies import leniency_fields
from resourcesync.model.settings import AuditMethod
from resourcesync.model.timestamps import SECOND, to_microseconds

if TYPE_CHECKING:
    from resourcesync.destination.audits.explain import Explanation, Findings
    from resourcesync.destination.audits.reports import AuditFinding, AuditReport
    from resourcesync.destination.audits.sampling import AuditRolling
    from resourcesync.destination.baseline import Baseline

_LISTS_MOVED_ERRORS: Final = (ResourceMissingError, UnexpectedDocumentError, NotAListError)
"""Errors at a list's stored address that may mean that the Source moved its lists."""
_ROOM_IN_TRASH: Final = (
    "free disk space, such as by emptying the trash, then try again: "
    "resourcesync trash empty MIRROR --all"
)
_IF_MOVED: Final = "if the Source moved, follow it: resourcesync pull MIRROR --moved URL"


class Destination:
    """Mirror of one Source."""

    def __init__(self, equipment: Dependencies) -> None:
        self._measuring_fetcher = clock_skew.SkewMeasuringFetcher(
            equipment.fetcher, equipment.clock
        )
        equipment = structs.replace(
            equipment, fetcher=self._measuring_fetcher, resource_fetcher=equipment.fetcher
        )
        self._dependencies = equipment
        self._sync_state = SyncState(equipment.state)
        self._locator = known_lists.ListLocator(equipment, self._sync_state)
        self._moved_identity: MirrorIdentity | None = None
        self._moved_cursor: Cursor | None = None
        self._path_assignments: list[PathAssignment] = []
        self._is_first = False

    def pull(self, options: PullOptions) -> RunReport:
        """Synchronize the mirror with its Source; run again to update."""
        run, equipment = self._begin_run(), self._dependencies
        with self._recording_failure(run, options):
            if not options.dry_run and self._sync_state.is_trashing:
                from resourcesync.destination import trash  # noqa: PLC0415 - after a kill only

                trash.register_lost_trash(equipment.state, equipment.copies, equipment.clock)
            outcome = self._synchronize(options)
            if not options.dry_run and abs(self._measuring_fetcher.skew) < clock_skew.MAX_SKEW:
                if equipment.state.has_trash():
                    from resourcesync.destination import trash  # noqa: PLC0415 - most have none

                    purged = trash.purge_old_trash(equipment, options.trash)
                    if not options.trash and purged > outcome.deletions.trashed:
                        text = f"trash = 0: all of the trash, also old files, is gone ({purged:,})"
                        fields = {"code": "trash-emptied", "message": text, "evidence": ()}
                        equipment.report("warning", fields)
                equipment.state.delete_old_changes(to_microseconds(equipment.clock.now()))
        report = self._report(run, outcome, options)
        if not options.dry_run:
            run.record(report, report.mode)
            if report.state is Word.IN_SYNC:
                self._dependencies.drop_parts()  # the mirror is complete: no later run needs them
        return report

    def _begin_run(self) -> runs.MirrorRun:
        self._measuring_fetcher.reset()
        self._path_assignments.clear()
        self._is_first = self._sync_state.identity is None
        return runs.MirrorRun(self._dependencies)

    @contextmanager
    def _recording_failure(self, run: runs.MirrorRun, options: PullOptions) -> Iterator[None]:
        try:
            self._dependencies.check_folder()
            yield
        except BaseException as error:
            if type(error) is DiskFullError:  # it may be that of the trash
                with suppress(StorageError):  # it cannot be read then
                    if self._dependencies.state.has_trash():
                        error.hint = _ROOM_IN_TRASH
            is_kept = self._sync_state.identity is not None or self._dependencies.is_expected
            is_of_mirror = is_kept and not isinstance(error, ConfigurationError)
            if is_of_mirror and not options.dry_run:
                run.record_failure(error)
            raise

    def _report(self, run: runs.MirrorRun, outcome: SyncOutcome, options: PullOptions) -> RunReport:
        report = runs.build_report(run.id, outcome, self._dependencies, dry_run=options.dry_run)
        renamed = sum(assignment.renamed for assignment in self._path_assignments)
        own = {"seconds": run.seconds, "lists_only": options.lists_only, "renamed": renamed}
        return self._apply_clock_check(structs.replace(report, **own))

    def _apply_clock_check(self, report: RunReport) -> RunReport:
        skew = self._report_skew()
        if not clock_skew.is_clock_wrong(skew, report.as_of, self._dependencies.clock.now()):
            return report
        state = Word.BEHIND if report.state is Word.IN_SYNC else report.state
        faults = structs.replace(report.faults, skew_seconds=skew.total_seconds())
        return structs.replace(report, state=state, faults=faults)

    def _report_skew(self) -> timedelta:
        skew = self._measuring_fetcher.skew
        if abs(skew) >= clock_skew.REPORTED_SKEW:
            message = clock_skew.describe_skew(skew)
            fields = {"code": "clock-skew", "message": message, "evidence": ()}
            self._dependencies.report("warning", fields)
        return skew

    def _synchronize(self, options: PullOptions) -> SyncOutcome:
        options, is_due = self._with_stored(options)
        try:
            with self._dependencies.cancel.within(options.max_duration):
                place = self._find_lists(options)
                place = structs.replace(place, is_due=place.is_due or is_due)
                try:
                    return self._read_lists(place, options)
                except _LISTS_MOVED_ERRORS as error:
                    moved = self._locator.moved_place(place, options)
                    if moved is None:
                        error.hint = error.hint or ("" if self._is_first else _IF_MOVED)
                        raise
                    return self._read_lists(moved, options)
        except BudgetError:
            if self._sync_state.identity is None:
                raise
            return out_of_time()

    def _with_stored(self, options: PullOptions) -> tuple[PullOptions, bool]:
        known, stored = self._sync_state.filters, self._sync_state.stored_options
        options = options.with_stored(known, stored, self._dependencies.clock.now())
        is_other = stored is not None and stored.delete != options.delete == "absent"
        return options, options.prune or is_other or known not in (None, options.filters)

    def _find_lists(self, options: PullOptions) -> known_lists.SourcePlace:
        if not options.moved:
            return self._locator.known_place(self._dependencies.source, options)
        before, was_moved = self._sync_state.identity, self._sync_state.moved_from
        found, self._moved_identity = self._locator.locate_moved(
            options.moved, options.all_filters, options.set_name
        )
        is_correction = self._locator.is_correction(options.moved)
        cursor = self._sync_state.cursor.after_move(is_correction=is_correction)
        if options.dry_run:
            self._moved_cursor = cursor
        else:
            self._sync_state.write(
                identity=self._moved_identity,
                moved_from=self._locator.previous_address(options.moved),
                moved_from_set=None if was_moved or before is None else before.set_uri,
                found=found,
                found_at=to_microseconds(self._dependencies.clock.now()),
                cursor=cursor,
            )
        return known_lists.SourcePlace(address=options.moved, lists=found, is_due=True)

    def _read_lists(self, place: known_lists.SourcePlace, options: PullOptions) -> SyncOutcome:
        while True:
            pull = self._open_session(place, options)
            probe = known_lists.CapabilityListProbe(pull)
            with pull.retaining_packages():
                done = self._take_steps(pull, probe)
            pull.warn_dropped_values()
            for row in pull.selection.refusals.leniencies.rows:  # what was tolerated
                self._dependencies.report("leniency", leniency_fields(row))
            if isinstance(done, SyncOutcome):
                return done
            place = structs.replace(place, lists=probe.found)

    def _take_steps(
        self, pull: SyncSession, probe: known_lists.CapabilityListProbe
    ) -> SyncOutcome | Next:
        pull.recovered = recover_suspects(self._dependencies, dry_run=pull.options.dry_run)
        step: SyncOutcome | Next = self._first_step(pull, probe)
        while isinstance(step, Next) and step is not Next.RELOCATE:
            step = self._take(step, pull, probe)
        if isinstance(step, SyncOutcome):
            if pull.sync_state.unhashed()[0].copies:
                from resourcesync.destination.audits.recheck import Recheck  # noqa: PLC0415 - lazy

                Recheck(pull).run(step)
            if step.selected_count == 0 and (left := urlsplit(pull.selection.left_out).path):
                filters = pull.options.all_filters
                hint = f"a GLOB that begins with / is for the whole path, such as {left}"
                if not (filters.include or filters.exclude):
                    since = "--since ''" if filters.since else "-o max_size=''"
                    no = "--type ''" if filters.types else since
                    hint = f"they exclude {left}, too; an empty value removes one, as {no}"
                pull.warn("nothing-selected", "no listed resource matches the filters", hint=hint)
        return step

    def _first_step(self, pull: SyncSession, probe: known_lists.CapabilityListProbe) -> Next:
        cursor = pull.cursor
        # A Resource List that is read for itself leads to no Change List that is newer.
        is_list_due = self._is_list_due(pull)
        is_read = cursor.is_baseline_due or is_list_due or cursor.has_gap
        if is_read and probe.probe():
            return Next.RELOCATE
        is_first = cursor.checkpoint is None or pull.options.mode == "baseline"
        if is_first or cursor.is_baseline_due:
            return Next.BASELINE
        if pull.found.change_list is None:
            return Next.LIST
        if cursor.has_gap and pull.found.resource_list is not None:
            return Next.GAP
        return Next.LIST if is_list_due else Next.CHANGES

    def _take(
        self, step: Next, pull: SyncSession, probe: known_lists.CapabilityListProbe
    ) -> SyncOutcome | Next:
        changes, resource_list = pull.found.change_list, pull.found.resource_list
        is_all_there_is = changes is not None and resource_list is None
        if step in {Next.CHANGES, Next.WORK_OFF} or is_all_there_is:
            from resourcesync.destination.incremental import Incremental  # noqa: PLC0415 - one of both

            incremental = Incremental(pull)
            if changes is None or step is Next.WORK_OFF:
                return incremental.work_off()
            if step is not Next.CHANGES:
                return incremental.begin(changes)
            return incremental.run(changes, probe.probe)
        from resourcesync.destination.baseline import Baseline  # noqa: PLC0415 - one of both

        baseline = Baseline(pull)
        if step is Next.GAP:
            return self._fill_gap(pull, baseline)
        if step is Next.LIST:
            return self._read_list(pull, baseline)
        return baseline.run(gap=step is Next.NEWER_BASELINE)

    def _fill_gap(self, pull: SyncSession, baseline: "Baseline") -> SyncOutcome | Next:
        is_cut = pull.cursor.phase is Phase.CUT_LIST
        done = baseline.run(known=self._known_list(pull), newer=not is_cut)
        if isinstance(done, SyncOutcome):
            return done
        missing = "changes are missing until the Source's next Resource List"
        pull.warn("cut-list" if is_cut else "change-gap", CUT_LIST if is_cut else missing)
        return Next.LIST if self._is_list_due(pull) else Next.CHANGES

    def _read_list(self, pull: SyncSession, baseline: "Baseline") -> SyncOutcome | Next:
        """Read the Resource List, if it changed.

        Where an archive takes the place of the Change Lists, a newer one also has what is not in
        the archive yet.
        """
        known = self._known_list(pull)
        if pull.found.change_list is not None:
            return baseline.run(known=known, newer=not self._has_unlisted_copies(pull))
        is_followed = pull.cursor.head != ""  # a Change List, which is gone
        is_read = is_followed or self._sync_state.has_uncertain_entries
        done = baseline.run(known=None if is_read else known)
        if not pull.options.dry_run:
            self._sync_state.write(found=pull.discovered)
        return done

    def _is_list_due(self, pull: SyncSession) -> bool:
        found = pull.found
        is_archive = found.change_list == found.change_list_archive
        return (found.resource_list is not None and is_archive) or self._has_unlisted_copies(pull)

    def _has_unlisted_copies(self, pull: SyncSession) -> bool:
        found = pull.found
        if pull.cursor.is_baseline_due or None in (found.resource_list, found.change_list):
            return False
        retains = pull.decision_policy(Absence.UNCHANGED).retains(ABSENT)
        return not retains and any(row.reason == ABSENT for row in gone_rows(pull.state))

    def _known_list(self, pull: SyncSession) -> ProcessedDocument | None:
        uri, read_at = pull.found.resource_list, self._sync_state.list_read_at
        known = None if uri is None else pull.state.document(uri)
        return known if known is not None and is_trusted(known.etag, read_at, pull.now) else None

    def _open_session(self, place: known_lists.SourcePlace, options: PullOptions) -> SyncSession:
        pull, filters = self._prepare(place, options), options.all_filters
        known = self._sync_state.filters
        has_new_filters = known not in (None, filters)  # not in sync by these yet
        if known is not None and has_new_filters:
            passed = (pull.now - (self._sync_state.filters_at or 0)) / SECOND
            before, after = structs.asdict(known), structs.asdict(filters)
            is_moving = {"is_since_moving": filters.is_after(known, passed)}
            self._dependencies.report("scope", {"before": before, "after": after, **is_moving})
        pull.cursor = pull.cursor.with_baseline_due() if place.is_due else pull.cursor
        if not options.dry_run:
            # One transaction: new filters without a baseline would seem to be in sync after a kill.
            self._sync_state.write(
                filters=filters,
                filters_at=pull.now,
                options=options.stored,
                changes_accepted=self._sync_state.changes_since if options.changes_only else None,
                missing_accepted=pull.accepts_missing,
                cursor=pull.cursor if place.is_due else None,
                in_sync_at=0 if has_new_filters else None,
            )
        known_lists.report_source(pull, first=self._is_first)
        return pull

    def _prepare(self, place: known_lists.SourcePlace, options: PullOptions) -> SyncSession:
        equipment, found, filters = self._dependencies, place.lists, options.all_filters
        if found is None:
            with timed_phase(equipment, "discovery"):
                found = self._locator.locate(place.address, filters, options.set_name)
            if not options.dry_run and self._sync_state.identity is not None:
                self._sync_state.write(found_at=to_microseconds(equipment.clock.now()))
        identity = self._moved_identity or self._sync_state.identity
        identity = identity or self._new_identity(place.address, found, options)
        check_mapper(normalise_rule(options.mapper), identity.mapper)
        selection = self._new_selection(identity, filters)
        if not options.dry_run and self._sync_state.identity is None:
            now = to_microseconds(equipment.clock.now())
            self._sync_state.write(identity=identity, found_at=now)
        if found.superseded_by and found.resource_dump:  # only its packages have these bytes
            options = structs.replace(options, dumps="always")
        pull = SyncSession(equipment, options, found, selection, identity)
        if self._moved_cursor is not None:
            pull.cursor = self._moved_cursor
        self._path_assignments.append(pull.path_assignment)
        pull.path_assignment.resume_moves()
        return pull

    def _new_selection(self, identity: MirrorIdentity, filters: Filters) -> ResourceSelection:
        equipment = self._dependencies
        scope = identity.scope(filters)
        known = (row.uri for row in equipment.state.refused())
        refusals = Refusals(lambda row: equipment.report("item", refused_item(row)), known)
        links = link_filter(scope, filters)
        mapping = identity.mapping(self._sync_state.relocated_uris)
        return ResourceSelection(scope, mapping, refusals, equipment.patches, links, identity.moved)

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
            mapper=normalise_rule(options.mapper) or TREE,
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

        run = self._begin_run()
        self._dependencies.check_folder()
        was_in_sync: bool | None = None
        if findings is None:
            session = self.read_only_session(asking=True)
            audit = Audit(session, "stat", kept=MAX_REPAIR_FINDINGS, doubting=not options.dry_run)
            audited = audit.run(run.id, offline=False)
            findings, was_in_sync = audited.findings, audited.in_sync
        pull = self._known_session(options, asking=True)
        limit = self._dependencies.cancel.within(options.max_duration)
        with limit, pull.retaining_packages():
            pulled = Repair(pull, deleting=deleting).run(findings, was_in_sync=was_in_sync)
        pulled.is_complete = pulled.is_complete and not self._sync_state.cursor.is_incomplete
        report = self._report(run, pulled, options)
        if not options.dry_run:
            run.record(report, "repair")
        return report

    def read_only_session(self, *, asking: bool = False) -> SyncSession:
        """Return a session for an audit or explanation: nothing is written through it."""
        return self._known_session(PullOptions(dry_run=True), asking=asking)

    def _known_session(self, options: PullOptions, *, asking: bool) -> SyncSession:
        options, _ = self._with_stored(structs.replace(options, filters=None, stored=None))
        address, lists = self._locator.address(None), self._sync_state.discovered
        place = known_lists.SourcePlace(address=address, lists=lists)
        pull = self._prepare(place, options)
        probe = known_lists.CapabilityListProbe(pull)
        if asking and probe.probe():
            pull = self._prepare(structs.replace(place, lists=probe.found), options)
        return pull

    def audit(
        self,
        *,
        method: AuditMethod = "hash",
        offline: bool = False,
        rolling: "AuditRolling | None" = None,
        kept: int = 10_000,
    ) -> "AuditReport":
        """Compare the copies with the lists; store the findings, change no copy (§5.2)."""
        from resourcesync.destination.audits.audit import Audit  # noqa: PLC0415 - lazy
        from resourcesync.destination.audits.reports import AuditRecord, notes_with_audit  # noqa: PLC0415 - lazy

        clock = self._dependencies.clock
        started = clock.monotonic()
        self._measuring_fetcher.reset()
        self._dependencies.check_folder()
        pull = self.read_only_session(asking=not offline)
        if not offline:
            known_lists.report_source(pull)
        # The findings are stored under the mirror's lock, so that two audits cannot mix theirs.
        with self._dependencies.findings() as findings:
            audit = Audit(pull, method, kept=kept, store=findings)
            report = audit.run(runs.new_run_id(), offline=offline, rolling=rolling)
            if findings:  # also of an audit without any: it disproves older ones
                findings.set_name(report.audit, clock.now().strftime("%Y%m%d%H%M%S%f"))
        if clock_skew.is_clock_wrong(self._report_skew(), report.at, clock.now()):
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

        return explain(self.read_only_session(asking=not offline), names, findings, offline=offline)
