"""The client of resync, on our discovery, reader and fetcher, for programs that subclass it.

What it decides is resync's: one comparison of lists, one resource after the other, one timestamp
as state. What it does is ours: bytes are verified before they are put in place, nothing is written
outside the folders of the mapping, what is deleted goes to a trash, and a failure is never
recorded as done.
"""

import logging
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from resourcesync.app.document_access import network_documents
from resourcesync.app.mirrors.single_copies import SingleCopies, open_single_copies
from resourcesync.compat.resync.access import DocumentOpener, is_local, local_path
from resourcesync.compat.resync.builder import ResourceListBuilder, check_hashes
from resourcesync.compat.resync.client_state import ClientState
from resourcesync.compat.resync.conversion import change_timestamp, digests_of
from resourcesync.compat.resync.errors import (
    ClientError,
    ClientFatalError,
    MapperError,
    as_client_error,
)
from resourcesync.compat.resync.lists import ChangeList, ListBase, ResourceList
from resourcesync.compat.resync.mapping import CompatMapper
from resourcesync.compat.resync.resources import (
    CompatResource,
    datetime_to_str,
    str_to_datetime,
    to_moment,
)
from resourcesync.discovery.discover import discover
from resourcesync.errors import ResourceSyncError, SourceNotFoundError
from resourcesync.model.resources import Resource
from resourcesync.settings.network import Network

LOGGER: Final = logging.getLogger("resync.client")
_LOCAL_NAMES: Final = ("resourcelist.xml", "sitemap.xml")


class _Connections:
    """The connections and folders of one run of a client.

    Args:
        network: Settings for requests.
        home: Address of the Source, to whose origin secrets go.
    """

    def __init__(self, network: Network, home: str) -> None:
        self._opened = ExitStack()
        self.opener = self._opened.enter_context(DocumentOpener(network, home))
        self._folders: dict[str, SingleCopies] = {}

    def copies(self, folder: str) -> SingleCopies:
        """Return the copies of a folder, which is locked from now on."""
        if folder not in self._folders:
            opened = open_single_copies(Path(folder))
            self._folders[folder] = self._opened.enter_context(opened)
        return self._folders[folder]

    def close(self) -> None:
        """Close connections and unlock folders."""
        self._opened.close()


class Client:
    """``resync.client.Client``: copies the resources of a Source, one after the other.

    Args:
        spec_version: Has no effect on reading: a change without ``datetime`` counts by ``lastmod``.
        hashes: Digests by which to compare present files: ``md5``, ``sha-1``, ``sha-256``.
        verbose: For subclasses; it has no effect.
        dryrun: True to fetch and delete nothing.

    Attributes:
        mapper: The addresses and folders; see `set_mappings`.
        sitemap_name: Address of the Resource List; ``None`` to look for it.
        capability_list_uri: Address of the Capability List; ``None`` to look for it.
        change_list_name: Name of the Change List.
        status_file: File with the times of the last runs.
        ignore_failures: True to go on after a resource that fails; it is in ``failures``.
        noauth: True to accept resources of other hosts than the list's.
        strictauth: True to accept resources below the list's folder only.
        exclude_patterns: Regular expressions for `build_resource_list`.
        tries, timeout: Attempts, and seconds without an answer; ``None`` for the default.
        network: Further settings for requests.
        failures: The resources that failed in the last run.
    """

    def __init__(
        self,
        spec_version: str | None = "1.1",
        hashes: Iterable[str] | None = None,
        verbose: bool = False,
        dryrun: bool = False,
    ) -> None:
        self.spec_version = spec_version
        self.hashes: set[str] = set(check_hashes(hashes or None))
        self.verbose = verbose
        self.dryrun = dryrun
        self.logger = LOGGER
        self.mapper = CompatMapper()
        self.resource_list_name = "resourcelist.xml"
        self.change_list_name = "changelist.xml"
        self.exclude_patterns: list[str] = []
        self.sitemap_name: str | None = None
        self.capability_list_uri: str | None = None
        self.allow_multifile = True
        self.noauth = False
        self.strictauth = False
        self.max_sitemap_entries: int | None = None
        self.ignore_failures = False
        self.tries: int | None = None
        self.timeout: float | None = None
        self.network = Network()
        self.status_file = ".resync-client-status.cfg"
        self.last_timestamp: float = 0
        self.failures: list[CompatResource] = []
        self._connections: _Connections | None = None

    # --- addresses -------------------------------------------------------------------------------

    def set_mappings(self, mappings: list[str]) -> None:
        """Set the addresses and folders; see `CompatMapper`.

        Raises:
            MapperError: They are invalid.
        """
        self.mapper = CompatMapper(mappings, use_default_path=True)

    def sitemap_uri(self, basename: str) -> str:
        """Return the address of a document: below that of the first map if it is a bare name."""
        if urlsplit(basename).scheme or basename.startswith("/"):
            return basename
        return f"{self.mapper.default_src_uri()}/{basename}"

    @property
    def sitemap(self) -> str:
        """Address of the Resource List, as set or by its usual name."""
        return self.sitemap_name or self.sitemap_uri(self.resource_list_name)

    # --- lists -----------------------------------------------------------------------------------

    def find_resource_list(self) -> ResourceList:
        """Return the Resource List of the Source.

        Raises:
            ClientError: The list whose address is set cannot be read.
            ClientFatalError: There is none, or no mapping.
        """
        if self.sitemap_name is not None:
            return self.read_resource_list(self.sitemap_name)
        self._check_mapper(is_writing=False)
        return self.read_resource_list(self._found_list())

    def _found_list(self) -> str:
        base = self.capability_list_uri or f"{self.mapper.default_src_uri()}/"
        if is_local(base):
            places = [f"{local_path(base).rstrip('/')}/{name}" for name in _LOCAL_NAMES]
            found = next((place for place in places if Path(place).is_file()), None)
        else:
            try:
                with self._connected() as connections:
                    documents = network_documents(connections.opener.fetcher(base))
                    found = discover(documents, base).resource_list
            except ResourceSyncError as error:
                if isinstance(error, SourceNotFoundError) and self.capability_list_uri is None:
                    return self.sitemap  # by its usual name, where nothing leads to it
                message = f"Failed to find source resource list of {base}"
                raise as_client_error(error, message) from error
        if found is None:
            raise ClientFatalError(f"Failed to find source resource list of {base}")
        return found

    def read_resource_list(self, uri: str) -> ResourceList:
        """Return a Resource List.

        Raises:
            ClientError: It cannot be read.
        """
        found = ResourceList(allow_multifile=self.allow_multifile, mapper=self.mapper)
        self._read(found, uri)
        return found

    def _read(self, found: ListBase, uri: str) -> None:
        self.logger.info("Reading %s %s", found.capability_name, uri)
        found.network = self._settings()
        try:
            found.read(uri)
        except (ResourceSyncError, OSError) as error:
            told = as_client_error(error, f"Can't read {found.capability_name} from {uri}")
            raise ClientError(
                told.message, evidence=told.evidence, hint=told.hint, code=told.code
            ) from error

    def build_resource_list(self, paths: str | None = None, set_path: bool = False) -> ResourceList:
        """Return a list of local files.

        Args:
            paths: The paths, separated by commas; ``None`` for the folders of the mapping.
            set_path: True to set the local path of each.

        Raises:
            ClientFatalError: There is no mapping, or a pattern or digest is invalid.
        """
        self._check_mapper(is_writing=False)
        builder = ResourceListBuilder(self.mapper, self.hashes, set_path=set_path)
        try:
            builder.add_exclude_patterns(self.exclude_patterns)
            found = builder.from_disk(paths=paths.split(",") if paths is not None else None)
        except ValueError as error:
            raise ClientFatalError(str(error)) from error
        found.allow_multifile, found.mapper = self.allow_multifile, self.mapper
        if self.max_sitemap_entries is not None:
            found.max_sitemap_entries = self.max_sitemap_entries
        return found

    # --- runs ------------------------------------------------------------------------------------

    def baseline_or_audit(self, allow_deletion: bool = False, audit_only: bool = False) -> Any:
        """Compare the folders with the Resource List, and copy what differs.

        Args:
            allow_deletion: True to move files that are not listed to the trash.
            audit_only: True to compare only.

        Raises:
            ClientFatalError: There is no mapping, it is unsafe, the list is empty or mentions
                other hosts, or a resource failed.
            ClientError: The list cannot be read.
        """
        self._check_mapper(is_writing=not audit_only)
        source = self.find_resource_list()
        if not len(source):
            raise ClientFatalError("Aborting as there are no resources to sync")
        hashes = self.hashes & source.hashes()
        target = ResourceListBuilder(self.mapper, hashes).from_disk()
        same, updated, deleted, created = target.compare(source)
        planned: dict[str, Any] = {
            "created": len(created),
            "updated": len(updated),
            "deleted": len(deleted),
        }
        in_sync = not any(planned.values())
        self.log_status(in_sync=in_sync, audit=True, same=len(same), **planned)
        if audit_only:
            return
        self._check_authority(source, [self.sitemap])
        if deleted and not source.lists_all:
            self.logger.warning("%s may lack what exists: nothing is deleted", self.sitemap)
        with self._run():
            done: dict[str, Any] = {
                "created": self._update_all(created, "created"),
                "updated": self._update_all(updated, "updated"),
                "deleted": self._delete_all(deleted, allow_deletion and source.lists_all),
            }
            self._record(self.sitemap, self._time_of(source))
        if not in_sync:
            self.log_status(in_sync=False, same=len(same), to_delete=len(deleted), **done)

    def incremental(
        self,
        allow_deletion: bool = False,
        change_list_uri: str | None = None,
        from_datetime: str | None = None,
    ) -> Any:
        """Apply the changes of a Change List.

        Args:
            allow_deletion: True to move files of deleted resources to the trash.
            change_list_uri: Its address or name; ``None`` for the usual name.
            from_datetime: Changes since then; ``None`` for those since the last run.

        Raises:
            ClientFatalError: There is no mapping, it is unsafe, there is no time to start from,
                the list cannot be read, does not reach back to the last run, has a change
                without a time, or mentions other hosts; or a resource failed.
        """
        self._check_mapper(is_writing=True)
        stored = ClientState(self.status_file).get_state(self.sitemap)
        start = stored if from_datetime is None else _parsed_start(from_datetime)
        if start is None:
            raise ClientFatalError(
                "Cannot do incremental sync. No stored timestamp for this site, and no"
                " from_datetime."
            )
        uri = self.sitemap_uri(change_list_uri or self.change_list_name)
        changes = ChangeList(mapper=self.mapper)
        try:
            self._read(changes, uri)
        except ClientError as error:
            raise as_client_error(error, "Can't read source change list") from error
        if from_datetime is None:
            _check_reach(changes, start, uri)
        self._check_authority(changes, [uri] if change_list_uri else [uri, self.sitemap])
        newest = max(map(_time, changes), default=start)
        due = _last_changes(changes, start)
        kinds = {kind: [change for change in due if change.change == kind]
                 for kind in CompatResource.CHANGE_TYPES}  # fmt: skip
        planned: dict[str, Any] = {kind: len(found) for kind, found in kinds.items()}
        self.log_status(in_sync=not due, incremental=True, **planned)
        with self._run():
            done = self._apply(due, allow_deletion)
            # After a start that the caller named, what lies before it is not known to be applied.
            is_continued = stored is None or start <= stored
            self._record(self.sitemap, max(newest, start) if is_continued else None)
        if due:
            self.log_status(in_sync=False, incremental=True, to_delete=planned["deleted"], **done)

    @contextmanager
    def _run(self) -> Iterator[None]:
        self.failures, self.last_timestamp = [], 0
        with self._connected():
            yield

    def _apply(self, changes: Iterable[CompatResource], allow_deletion: bool) -> dict[str, Any]:
        """Apply changes in their order; return how many of each kind were applied."""
        done = dict.fromkeys(CompatResource.CHANGE_TYPES, 0)
        for change in changes:
            kind = change.change or ""
            done[kind] += (
                self._delete_all([change], allow_deletion)
                if kind == "deleted"
                else self._update_all([change], kind)
            )
        return done

    def _update_all(self, resources: Iterable[CompatResource], change: str) -> int:
        done = 0
        for resource in resources:
            filename = self._filename(resource)
            if filename is not None:
                self.logger.info("%s: %s -> %s", change, resource.uri, filename)
                done += self.update_resource(resource, filename, change) or 0
        return done

    def _delete_all(self, resources: Iterable[CompatResource], allow_deletion: bool) -> int:
        done = 0
        for resource in resources:
            filename = self._filename(resource)
            if filename is not None:
                done += self.delete_resource(resource, filename, allow_deletion) or 0
        return done

    def _filename(self, resource: CompatResource) -> str | None:
        """Return the path of a resource; ``None`` if it has none that is safe, and that is noted.

        Raises:
            MapperError: It has none, and ``ignore_failures`` is false.
        """
        try:
            return self.mapper.src_to_dst(resource.uri)
        except MapperError as error:
            if not self.ignore_failures:
                raise
            self._fail(resource, error.message)
            return None

    def _fail(self, resource: CompatResource, message: str) -> None:
        self.logger.warning("%s", message)
        self.failures.append(resource)

    # --- single resources ------------------------------------------------------------------------

    def update_resource(
        self, resource: CompatResource, filename: str, change: str | None = None
    ) -> int:
        """Fetch a resource to a file; return 1 if that was done.

        Length and digests that the resource has are checked before the file is replaced.

        Args:
            resource: The resource, as it is listed.
            filename: The file, in one of the folders of the mapping.
            change: ``created`` or ``updated``.

        Raises:
            ClientFatalError: It failed, and ``ignore_failures`` is false.
        """
        if self.dryrun:
            self.logger.info("dryrun: would GET %s --> %s", resource.uri, filename)
            return 0
        try:
            with self._connected() as connections:
                self._fetch(resource, filename, connections)
        except (ResourceSyncError, OSError, ValueError) as error:
            told = as_client_error(error, f"Failed to GET {resource.uri}")
            if not self.ignore_failures:
                raise told from error
            self._fail(resource, told.message)
            return 0
        self._note_time(resource)
        self.log_event(CompatResource(resource=resource, change=change))
        return 1

    def _fetch(self, resource: CompatResource, filename: str, connections: _Connections) -> None:
        place = self.mapper.place_of(filename)
        copies = connections.copies(place.folder)
        listed = Resource(
            uri=resource.uri,
            lastmod=to_moment(resource.timestamp),
            length=None if resource.length is None else int(resource.length),
            digests=digests_of(resource),
        )
        if is_local(resource.uri):
            with open(local_path(resource.uri), "rb") as source:
                copies.store(listed, place.path, source)
        else:
            copies.fetch(listed, place.path, connections.opener.fetcher(resource.uri))

    def delete_resource(
        self, resource: CompatResource, filename: str, allow_deletion: bool = False
    ) -> int:
        """Move the file of a resource to the trash; return 1 if that was done.

        Args:
            resource: The resource.
            filename: Its file, in one of the folders of the mapping.
            allow_deletion: False to do nothing.
        """
        self._note_time(resource)
        if not allow_deletion or self.dryrun:
            why = "dryrun" if allow_deletion else "nodelete"
            self.logger.info("%s: would delete %s -> %s", why, resource.uri, filename)
            return 0
        try:
            with self._connected() as connections:
                place = self.mapper.place_of(filename)
                is_removed = connections.copies(place.folder).remove(place.path)
        except (ResourceSyncError, OSError) as error:
            self._fail(resource, f"Failed to DELETE {resource.uri} -> {filename} : {error}")
            return 0
        if not is_removed:
            self.logger.warning("Nothing to DELETE for %s at %s", resource.uri, filename)
            return 0
        self.logger.info("deleted: %s -> %s", resource.uri, filename)
        self.log_event(CompatResource(resource=resource, change="deleted"))
        return 1

    def log_event(self, change: CompatResource) -> None:
        """Log what was done with a resource, for programs."""
        self.logger.debug("Event: %r", change)

    def log_status(
        self,
        in_sync: bool = True,
        incremental: bool = False,
        audit: bool = False,
        same: int | None = None,
        created: int = 0,
        updated: int = 0,
        deleted: int = 0,
        to_delete: int = 0,
    ) -> None:
        """Log the status of a run in one line, with resync's words."""
        is_part = bool(self.failures) or to_delete > deleted
        if in_sync:
            status = "NO CHANGES" if incremental else "IN SYNC"
        elif audit:
            status = "NOT IN SYNC"
        elif incremental:
            status = "PART APPLIED" if is_part else "CHANGES APPLIED"
        else:
            status = "PART SYNCED" if is_part else "SYNCED"
        counts = {"created": created, "updated": updated, "deleted": deleted}
        verbs = {"created": "to create", "updated": "to update", "deleted": "to delete"}
        if audit:
            counts = {verbs[kind]: count for kind, count in counts.items()}
        elif to_delete > deleted:
            counts["to delete (allow_deletion)"] = to_delete - deleted
        if self.failures:
            counts["failed"] = len(self.failures)
        told = {} if same is None else {"same": same}
        shown = ", ".join(f"{kind}={count}" for kind, count in {**told, **counts}.items())
        self.logger.warning("Status: %15s (%s)", status, shown)

    # --- the rest --------------------------------------------------------------------------------

    def _check_mapper(self, *, is_writing: bool) -> None:
        if not len(self.mapper):
            raise ClientFatalError("No source to destination mapping specified")
        if is_writing and self.mapper.unsafe():
            raise ClientFatalError(f"Source to destination mappings unsafe: {self.mapper!r}")

    def _check_authority(self, found: Iterable[CompatResource], lists: list[str]) -> None:
        if self.noauth:
            return
        for resource in found:
            if not any(_has_authority(uri, resource.uri, self.strictauth) for uri in lists):
                raise ClientFatalError(
                    f"Aborting as {lists[0]} mentions resource at a location it does not have"
                    f" authority over ({resource.uri}), set noauth to accept it"
                )

    def _settings(self) -> Network:
        chosen = self.network
        if self.tries is not None:
            chosen = msgspec.structs.replace(chosen, retries=min(max(self.tries - 1, 0), 100))
        if self.timeout is not None:
            chosen = msgspec.structs.replace(chosen, timeout=float(self.timeout))
        return chosen

    @contextmanager
    def _connected(self) -> Iterator[_Connections]:
        """Share one set of connections among the calls within."""
        if self._connections is not None:
            yield self._connections
            return
        home = self.sitemap_name or self.capability_list_uri or self.mapper.default_src_uri()
        self._connections = _Connections(self._settings(), "" if is_local(home) else home)
        try:
            yield self._connections
        finally:
            self._connections.close()
            self._connections = None

    def _note_time(self, resource: CompatResource) -> None:
        self.last_timestamp = max(self.last_timestamp, resource.timestamp or 0)

    def _time_of(self, source: ResourceList) -> float | None:
        """Return the time up to which a Resource List is complete: ``at``, else the newest."""
        at = str_to_datetime(source.md_at)
        newest = max((found.timestamp or 0 for found in source), default=0)
        return at if at is not None else newest or None

    def _record(self, site: str, timestamp: float | None) -> None:
        """Record the time of a run: only if all of it was done."""
        if self.dryrun or self.failures or timestamp is None:
            return
        ClientState(self.status_file).set_state(site, timestamp)
        self.logger.info(
            "Written last timestamp %s for incremental sync", datetime_to_str(timestamp)
        )


def _parsed_start(text: str) -> float | None:
    try:
        return str_to_datetime(text)
    except ValueError as error:
        raise ClientFatalError(f"Bad datetime ({text})") from error


def _time(change: CompatResource) -> float:
    """Return the time of a change.

    Raises:
        ClientFatalError: It has none.
    """
    found = change_timestamp(change)
    if found is None:
        raise ClientFatalError(f"Aborting - no datetime or lastmod for change in {change.uri}")
    return found


def _last_changes(changes: Iterable[CompatResource], start: float) -> list[CompatResource]:
    """Return the last change of each resource since a time, in the order of the list."""
    last = {change.uri: change for change in changes if _time(change) >= start}
    return [change for change in changes if last.get(change.uri) is change]


def _check_reach(changes: ChangeList, start: float, uri: str) -> None:
    """Check that a Change List has all changes since a time.

    Raises:
        ClientFatalError: It begins later: changes between are lost, and a baseline finds them.
    """
    begin = str_to_datetime(changes.md_from)
    if begin is not None and begin > start:
        raise ClientFatalError(
            f"{uri} begins at {datetime_to_str(begin)}, after the last run"
            f" ({datetime_to_str(start)}); a baseline is needed",
            code="change-gap",
        )


def _has_authority(list_uri: str, uri: str, is_strict: bool) -> bool:
    """True if a list may speak for a resource: same scheme, same host or one below it."""
    try:
        ours, theirs = urlsplit(list_uri), urlsplit(uri)
    except ValueError:  # such as brackets that are no IPv6 address
        return False
    if ours.scheme != theirs.scheme:
        return False
    if ours.netloc != theirs.netloc and not theirs.netloc.endswith(f".{ours.netloc}"):
        return False
    folder = ours.path.rpartition("/")[0]
    return not is_strict or theirs.path.startswith(f"{folder}/")
