"""A mirror: a folder that is synchronized with a Source, and the changes of its content."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, Unpack

import msgspec
from msgspec import structs

from resourcesync import app
from resourcesync.adapters.system import SystemClock
from resourcesync.app import mirror_home, mirror_opening
from resourcesync.app.mirror_home import Home
from resourcesync.app.mirror_opening import FailedPulls
from resourcesync.destination.options import PullMode, PullOptions, StoredOptions
from resourcesync.destination.planner import Delete, Fetch
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.errors import ConfigurationError
from resourcesync.model.settings import AuditMethod
from resourcesync.ports import CancelToken, Clock
from resourcesync.settings.mirror import Network
from resourcesync.settings.schema import convert_argument

if TYPE_CHECKING:
    from resourcesync.app.keyword_types import MirrorOptions
    from resourcesync.app.mirror_changes import MirrorChange, MirroredResource, Since
    from resourcesync.destination.audits.explain import Explanation
    from resourcesync.destination.audits.reports import AuditFinding, AuditReport
    from resourcesync.destination.audits.sampling import AuditRolling
    from resourcesync.destination.destination import Destination
    from resourcesync.destination.planner import ReviewedDecision
    from resourcesync.destination.reports import MirrorStatus, Mode, RunReport


class Event(msgspec.Struct, frozen=True):
    """Something that happened while a call goes on.

    Attributes:
        kind: ``source`` (lists were found), ``plan``, ``progress``, ``item`` (one resource was
            dealt with), ``phase`` (one ended), ``warning`` or ``finding``; further kinds may come.
        fields: The fields of the event, as in the lines of JSON; ``time`` is a `datetime`.
    """

    kind: str
    fields: Mapping[str, object]


OnEvent = Callable[[Event], object]
"""Receives an event, on the thread of the call; what it raises ends the call."""

Stop = Callable[[], bool]
"""Called many times a second; ``True`` stops the call."""


class CallContext:
    """The receiver of events and the request to stop, for one mirror, one call at a time."""

    def __init__(self, clock: Clock) -> None:
        self.cancel = CancelToken(clock, lambda: self._stop is not None and self._stop())
        self._on_event: OnEvent | None = None
        self._stop: Stop | None = None
        self._is_busy = False

    @contextmanager
    def during(self, on_event: OnEvent | None, stop: Stop | None) -> Iterator[None]:
        """Report events of the block to ``on_event``, and cancel it when ``stop`` says so."""
        if self._is_busy:
            raise ConfigurationError(
                "this Mirror is busy with another call",
                hint="make a Mirror for each thread, and call none from its own events",
            )
        self._is_busy = True
        self._on_event, self._stop = on_event, stop
        self.cancel.reset()
        try:
            self.cancel.raise_if_cancelled()
            yield
        finally:
            self._is_busy = False
            self._on_event = self._stop = None

    def report(self, event: str, fields: Mapping[str, object]) -> None:
        """Report an event (``Reporter``)."""
        if self._on_event is not None:
            self._on_event(Event(event, fields))


class Mirror:
    """A folder that is synchronized with a Source.

    Every method stands alone: it opens the mirror, locks it for as long as the call lasts, and
    unlocks it. In a ``with`` block the mirror is locked, and its connections stay open, from the
    beginning to the end, by one thread; then ``requests`` and ``received`` of a report count from
    the beginning of the block. No other process can pull a mirror that is locked.

    Nothing is printed, no signal is touched, and of the environment only the proxies are read,
    where none is named; threads that make files durable on a slow disk end with the call. Several
    mirrors may be used at once, each by one thread at a time. A relative folder is looked up at
    each call.

    Args:
        source: Any address of the Source: of a site, a Source Description, a list or a sitemap.
            ``None`` takes the one that the mirror remembers.
        folder: The mirror's folder, made by the first pull; or the address of a store that a
            plug-in is for, such as ``s3://bucket/prefix``.
        state: The folder for the state of a mirror in a store, which must be named then.
        engine: Engine whose workers fetch resources, and reach the folder or store, such as
            ``processes:4``, ``dask://HOST:PORT``, ``spark://HOST:PORT``, or an executor of
            ``concurrent.futures``.
        **options: The settings of a pull; ``help(resourcesync.MirrorOptions)`` explains each.

    Raises:
        ConfigurationError: An option cannot work.

    Example:
        >>> mirror = Mirror("https://museum.example", "museum", exclude=["*.tmp"])
        >>> mirror.pull().state
        <MirrorState.IN_SYNC: 'in sync'>
    """

    def __init__(
        self,
        source: str | None,
        folder: str | os.PathLike[str],
        *,
        state: str | os.PathLike[str] | None = None,
        engine: str | Executor | None = None,
        **options: "Unpack[MirrorOptions]",
    ) -> None:
        if source == "":
            raise ConfigurationError(
                "the address of the Source is empty",
                hint="name it, or use None for the one that the mirror remembers",
            )
        home = _home_of(folder, state)
        if engine is not None:
            from resourcesync.app.mirror_workers import Workers  # noqa: PLC0415 - rarely

            home = home._replace(workers=Workers(engine=engine))
        from resourcesync.app.keywords import mirror_settings  # noqa: PLC0415 - for programs

        chosen, network = mirror_settings(options)
        self._begin(home, chosen, network, source)

    def _begin(
        self,
        home: Home,
        options: PullOptions,
        network: Network,
        source: str | None,
        *,
        is_configured: bool = False,
    ) -> None:
        self.source, self.folder, self._home = source, home.folder, home
        self._chosen, self._network, self._is_configured = options, network, is_configured
        self._calls = CallContext(SystemClock())
        self._held: Destination | None = None
        self._holding = ExitStack()
        self._thread = 0

    def __repr__(self) -> str:
        return f"Mirror({self.source!r}, {os.fspath(self.folder)!r})"

    def __enter__(self) -> Self:
        if self._held is not None:
            raise ConfigurationError(
                f"{self!r} is already open", hint="use it in the block that opened it"
            )
        self._thread = threading.get_ident()
        self._held = self._holding.enter_context(self._open())
        return self

    def __exit__(self, *exception: object) -> None:
        self._held = None
        self._holding.close()

    def _open(self, recorded: FailedPulls = "ignored") -> "AbstractContextManager[Destination]":
        return mirror_opening.open_destination(
            self._home,
            source=self._chosen.moved or self.source,
            network=self._network,
            report=self._calls.report,
            cancel=self._calls.cancel,
            recorded=recorded,
        )

    @contextmanager
    def _open_for_call(
        self, on_event: OnEvent | None, stop: Stop | None, recorded: FailedPulls = "ignored"
    ) -> "Iterator[Destination]":
        with self._calls.during(on_event, stop):
            if self._held is None:
                with self._open(recorded) as destination:
                    yield destination
            elif self._thread != threading.get_ident():
                raise ConfigurationError("this Mirror is in use by another thread")
            else:
                yield self._held

    def pull(
        self, *, mode: PullMode = "auto", on_event: OnEvent | None = None, stop: Stop | None = None
    ) -> "RunReport":
        """Synchronize the mirror with its Source; call it again to update.

        A resource that cannot be fetched raises nothing: it is in the report's ``failures``, the
        report's ``state`` is not ``IN_SYNC``, and the next pull tries it again.

        Args:
            mode: ``auto`` follows the Change Lists when they reach back; ``baseline`` compares
                with the whole Resource List.
            on_event: Receives the events, on this thread.
            stop: Called many times a second; ``True`` ends the pull soon. Complete copies stay.

        Raises:
            StoppedError: ``stop`` said so; as a ``BudgetError``, the time of ``max_duration`` was
                over before a first pull had found the lists.
            ConfigurationError: No address is known, or the mirror follows another Source.
            SourceError: The Source does not answer, refuses, or offers no list.
            DocumentError: A list cannot be used; nothing was changed.
            SyncError: Going on would risk the copies; nothing was changed.
            StorageError: The mirror cannot be written, or another run has locked it.
        """
        return self._pull(mode, on_event, stop)

    def dry_run(
        self, *, mode: PullMode = "auto", on_event: OnEvent | None = None, stop: Stop | None = None
    ) -> "RunReport":
        """Report what a pull would do now, and change nothing.

        An event of the kind ``plan`` has the counts, one of the kind ``item`` each action.

        Args:
            mode: As `pull` has it.
            on_event: Receives the events, on this thread.
            stop: Called many times a second; ``True`` ends the planning soon.

        Raises:
            ResourceSyncError: As `pull` does.

        Example:
            >>> mirror.dry_run().dry_run
            True
        """
        return self._pull(mode, on_event, stop, dry_run=True)

    def _options(self, *, dry_run: bool = False) -> PullOptions:
        return structs.replace(
            self._chosen,
            filters=Filters() if self._is_configured else None,
            stored=StoredOptions() if self._is_configured else None,
            dry_run=dry_run,
            review=self._review if dry_run else None,
        )

    def _review(
        self, mode: "Mode", decide: "Callable[[], Iterator[ReviewedDecision]]", same: int
    ) -> None:
        del mode, same
        in_the_way = 0
        for decision in decide():
            fields = _planned_item(decision)
            if fields:
                self._calls.report("item", {"status": "ok", **fields, "dry_run": True})
            if fields.get("action") == "create":
                in_the_way += os.path.lexists(self.folder / str(fields["path"]))
        if in_the_way:
            self._calls.report("warning", _quarantine_warning(in_the_way))

    def _pull(
        self, mode: PullMode, on_event: OnEvent | None, stop: Stop | None, *, dry_run: bool = False
    ) -> "RunReport":
        mode = convert_argument("mode", mode, PullMode)
        options = structs.replace(self._options(dry_run=dry_run), mode=mode)
        recorded: FailedPulls = "also first" if self._is_configured else "of mirrors"
        with self._open_for_call(on_event, stop, "ignored" if dry_run else recorded) as destination:
            return destination.pull(options)

    def audit(
        self,
        *,
        method: AuditMethod = "hash",
        offline: bool = False,
        rolling: "AuditRolling | None" = None,
        on_event: OnEvent | None = None,
        stop: Stop | None = None,
    ) -> "AuditReport":
        """Compare every copy with what the Source lists; no copy is changed.

        The findings are stored with the mirror, so that `repair` can fix all of them, also those
        that the report has no room for; an event of the kind ``finding`` reports each.

        Args:
            method: ``lists`` compares the mirror's state, ``stat`` also size and time of each
                file, ``hash`` also every byte, ``remote`` also what the Source serves; ``origin``
                what the originals of an aggregator are now.
            offline: Compare with what was listed when each copy was fetched; send no request.
            rolling: The copies to check this time; ``None`` checks all.
            on_event: Receives the events, on this thread.
            stop: Called many times a second; ``True`` ends the audit soon.

        Raises:
            StoppedError: ``stop`` said so.
            ConfigurationError: The folder is not a mirror yet.
            SourceError: The Source does not answer or refuses.
            DocumentError: A list cannot be used.
            StorageError: The mirror cannot be read, or another run has locked it.
        """
        method = convert_argument("method", method, AuditMethod)
        mirror_home.check_mirror(self.folder)
        with self._open_for_call(on_event, stop) as destination:
            return destination.audit(method=method, offline=offline, rolling=rolling)

    def repair(
        self,
        found: "AuditReport | Iterable[AuditFinding] | None" = None,
        *,
        deleting: bool = False,
        dry_run: bool = False,
        on_event: OnEvent | None = None,
        stop: Stop | None = None,
    ) -> "RunReport":
        """Fetch again what an audit found missing or different.

        A file that was altered locally goes to ``.resourcesync/quarantine``, with a note.

        Args:
            found: What `audit` returned, or some of its findings; ``None`` takes what audits
                proved, and compares size and time of each file first.
            deleting: True if copies that the Source does not list are deleted too.
            dry_run: True if nothing is changed, and each action is an event of the kind ``item``.
            on_event: Receives the events, on this thread.
            stop: Called many times a second; ``True`` ends the run soon. Complete copies stay.

        Raises:
            ConfigurationError: The folder is not a mirror yet, or the audit is too old.
            ResourceSyncError: Anything else as `pull` does.
        """
        from resourcesync.destination.audits.reports import AuditReport  # noqa: PLC0415 - lazy

        mirror_home.check_mirror(self.folder)
        findings: Iterable[AuditFinding] | None
        if not isinstance(found, AuditReport):
            findings = found
        else:
            findings = () if found.in_sync else mirror_home.findings_of(self.folder, found.audit)
        with self._open_for_call(on_event, stop) as destination:
            return destination.repair(findings, self._options(dry_run=dry_run), deleting=deleting)

    def explain(
        self,
        resource: str,
        *,
        offline: bool = False,
        on_event: OnEvent | None = None,
        stop: Stop | None = None,
    ) -> "Explanation":
        """Collect the facts about one resource: its copy, its entry, its failures.

        The copy is read; one that was changed in the mirror is marked as suspect, as by an audit.

        Args:
            resource: Its URI, its path in the mirror or at the Source, or any path of a file.
            offline: Use only the mirror's state; send no request.
            on_event: Receives the events, on this thread.
            stop: Called many times a second; ``True`` ends the call soon.

        Raises:
            ConfigurationError: The folder is not a mirror yet.
            StorageError: The mirror cannot be read, or another run has locked it.
        """
        mirror_home.check_mirror(self.folder)
        with self._open_for_call(on_event, stop) as destination:
            names = mirror_home.resource_names(resource, self.folder)
            findings = partial(mirror_home.last_findings, self.folder)
            return destination.explain(names, findings, offline=offline)

    def status(self) -> "MirrorStatus":
        """Return the status from the mirror's own state; no request is sent, no lock is waited for.

        Raises:
            ConfigurationError: The folder is not a mirror.
            StateError: The state is damaged or from another version.
        """
        return mirror_home.read_status(self.folder)

    def resources(self) -> "Iterator[MirroredResource]":
        """Yield every resource that is here, with its file, in order of URI.

        Nothing is read but the mirror's state, a few thousand rows at a time: any size is fine. A
        pull may go on meanwhile; what it changes behind the reader is not yielded again. To follow
        a mirror, use `changes`, which also has what was deleted.

        Raises:
            ConfigurationError: The folder is not a mirror.
            StateError: The state is damaged or from another version.

        Example:
            >>> for resource in mirror.resources():
            ...     print(resource.path.name, resource.length, resource.media_type)
            1.txt 5 text/plain
            2.txt 6 text/plain
        """
        from resourcesync.app.mirror_changes import read_resources  # noqa: PLC0415 - lazy

        return read_resources(self.folder)

    def path(self, uri: str) -> Path | None:
        """Return the file that has the copy of a resource; ``None`` if there is no copy.

        Args:
            uri: The resource; any spelling that is equal by RFC 3986 §6.2.2.

        Raises:
            ConfigurationError: The folder is not a mirror, or its copies are in a store.
            StateError: The state is damaged or from another version.

        Example:
            >>> mirror.path("https://museum.example/objects/1.txt").read_text()
            'a jug'
        """
        from resourcesync.app.mirror_changes import find_path  # noqa: PLC0415 - lazy

        self._check_files()
        return find_path(self.folder, uri)

    def uri(self, path: str | os.PathLike[str]) -> str | None:
        """Return the resource that a file of the mirror is the copy of; ``None`` for other files.

        Args:
            path: The file, as `path` returns it; a relative one begins at the working directory.

        Raises:
            ConfigurationError: The folder is not a mirror, or its copies are in a store.
            StateError: The state is damaged or from another version.

        Example:
            >>> mirror.uri("museum/objects/1.txt")
            'https://museum.example/objects/1.txt'
        """
        from resourcesync.app.mirror_changes import find_uri  # noqa: PLC0415 - lazy

        self._check_files()
        return find_uri(self.folder, Path(path))

    def _check_files(self) -> None:
        if mirror_home.store_of(self.folder):
            raise ConfigurationError(
                "the copies of this mirror are in a store", hint="iterate over its resources"
            )

    def changes(
        self,
        consumer: str | None = None,
        *,
        since: "Since | None" = None,
        touched: bool = False,
        restart: bool = False,
        follow: bool = False,
        stop: Stop | None = None,
    ) -> "Iterator[MirrorChange]":
        """Yield what changed in the mirror, oldest first; a pull may go on meanwhile.

        Each change is delivered at least once. A caller that stores each change's ``position``
        together with what it did passes it as ``since`` the next time. A named consumer gets
        everything in the mirror the first time, then what is new; its position is stored in the
        mirror when the loop has come to its end: one that is broken off, or raises, gets the same
        changes again. Read the iterator in the thread that began it.

        Args:
            consumer: Name of the consumer whose position to start from; ``None`` has none.
            since: The ``position`` of a change, an aware moment, or ``start`` for everything in the
                mirror; only for ``consumer=None``, where nothing given means all recorded changes.
            touched: True if fetches that returned the same bytes are yielded too.
            restart: The consumer starts over with everything in the mirror.
            follow: Wait for further changes at the end, instead of ending.
            stop: Called many times a second while it waits; ``True`` ends the iteration.

        Raises:
            ChangesLostError: Changes are lost to this reader: the mirror's record does not reach
                back that far (90 days, at most 1,000,000 changes), or the mirror was restored or
                made again. Start over with everything.
            ConfigurationError: The folder is not a mirror, or the arguments contradict each other.
            StateError: The state is damaged or from another version.

        Example:
            >>> for change in mirror.changes(since="start"):
            ...     print(change.kind, change.path.name, change.read())
            created 1.txt b'a jug'
            created 2.txt b'a bowl'
        """
        from resourcesync.app import mirror_changes  # noqa: PLC0415 - lazy

        query = mirror_changes.ChangeQuery.of(consumer, since, touched=touched, restart=restart)
        waiting = CancelToken(self._calls.cancel.clock, stop)
        pause = partial(mirror_changes.wait_for_changes, waiting) if follow else None
        return mirror_changes.read_changes(self.folder, query, pause)


def _quarantine_warning(files: int) -> Mapping[str, object]:
    are = "file is" if files == 1 else "files are"
    moved = "those whose content differs will be moved to .resourcesync/quarantine"
    message = f"{files:,} {are} at the paths of resources: {moved}"
    return {"code": "set-aside", "message": message}


def _planned_item(decision: "ReviewedDecision") -> Mapping[str, object]:
    match decision:
        case Fetch(row):
            action = "create" if decision.creates else "update"
            found = {"uri": row.loc, "path": row.path, "bytes": row.length}
            return {"action": action, **found, "may_be_same": decision.is_conditional}
        case Delete(copy, reason):
            found = {"uri": copy.uri, "path": copy.path, "bytes": max(copy.length, 0)}
            return {"action": "delete", **found, "reason": reason}
        case _:
            return {}


_DEFAULTS: Final = PullOptions()


def mirror_at(
    place: Path | Home,
    network: Network,
    options: PullOptions = _DEFAULTS,
    source: str | None = None,
    *,
    is_configured: bool = False,
) -> Mirror:
    """Return a mirror with settings that are complete, for a command or a service.

    Those of a configured mirror are all its settings: no filter is as it was stored.
    """
    mirror = Mirror.__new__(Mirror)
    home = Home(place) if isinstance(place, Path) else place
    mirror._begin(home, options, network, source, is_configured=is_configured)  # noqa: SLF001 - its maker
    return mirror


def _home_of(folder: str | os.PathLike[str], state: str | os.PathLike[str] | None) -> Home:
    if isinstance(folder, str) and folder.lower().startswith(("http://", "https://")):
        raise ConfigurationError(
            f"{folder!r:.200} is no folder", hint="name the Source first, then the mirror's folder"
        )
    if isinstance(folder, str) and mirror_home.is_store_address(folder):
        if state is None:
            raise ConfigurationError(
                "a mirror in a store needs a folder for its state", hint="name it: state=FOLDER"
            )
        return app.mirror_stores.home_of(folder, state)
    if state is not None:
        raise ConfigurationError("a mirror in a folder has its state there: leave state out")
    if Path(folder).is_file():
        raise ConfigurationError(
            f"{folder!s:.200} is a file", hint="name a folder for the mirror; it may be a new one"
        )
    return Home(Path(folder))
