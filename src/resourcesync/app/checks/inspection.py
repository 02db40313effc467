"""Inspection of the machine, a mirror's folder and a Source, for ``doctor``; it changes nothing."""

import os
import platform
import resource
import shutil
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import pycurl

from resourcesync import __version__
from resourcesync.adapters.http.certificate_authorities import authorities_fault
from resourcesync.adapters.http.robots import parse_rules
from resourcesync.adapters.mirror.mirror_folder import count_temporary_files, probe_file_system
from resourcesync.adapters.mirror.own_folder import (
    STATE_FILE,
    is_mirror,
    lock_holder,
)
from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.adapters.server_probe import probe
from resourcesync.app.checks.diagnosis import FolderFacts, MachineFacts, SourceFacts
from resourcesync.app.options import origin_of, proxy_rules
from resourcesync.destination.sync_state import SyncState
from resourcesync.documents._expat import EXPAT_VERSION
from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.own_files import (
    read_file,
)
from resourcesync.ports import Clock
from resourcesync.ports.fetcher import Purpose
from resourcesync.settings import environment
from resourcesync.settings.network import Network
from resourcesync.sqlite_file import SQLITE_VERSION

_PROXIES: Final = tuple(
    name for kind in ("http", "https", "all") for name in (f"{kind}_proxy", f"{kind}_proxy".upper())
)
_STALE_SECONDS: Final = 7 * 86_400.0


def inspect_machine(
    clock: Clock,
    network: Network,
    *,
    config_file: str,
    mistakes: tuple[str, ...],
    warnings: tuple[str, ...],
) -> MachineFacts:
    """Inspect the machine.

    Args:
        clock: Time.
        network: Settings for requests to Sources.
        config_file: The configuration file that counts; empty for none.
        mistakes: Mistakes in it.
        warnings: Doubtful settings in it.
    """
    scratch = tempfile.gettempdir()
    return MachineFacts(
        versions={
            "resourcesync": __version__,
            "Python": platform.python_version(),
            "libcurl": pycurl.version_info()[1],
            "SQLite": SQLITE_VERSION,
            "expat": EXPAT_VERSION,
        },
        http2=bool(pycurl.version_info()[4] & pycurl.VERSION_HTTP2),
        descriptors=_descriptors(),
        now=clock.now(),
        scratch=scratch,
        scratch_room=shutil.disk_usage(scratch).free if os.access(scratch, os.W_OK) else None,
        config=config_file,
        mistakes=mistakes,
        warnings=warnings,
        proxies=_proxies(network),
        proxy_fault=_proxy_fault(network),
        ca_file=network.ca_file,
        ca_fault=authorities_fault(network.ca_file),
    )


def _proxies(network: Network) -> tuple[str, ...]:
    """Return a sentence for each proxy that counts, and for the variables that do not."""
    ignored = [name for name in _PROXIES if environment.variable(name)]
    if network.proxy is not None:
        rest = f"; ignored: {', '.join(ignored)}" if ignored else ""
        return (f"{network.proxy or 'no proxy'}, by the setting `proxy`{rest}",)
    try:
        found = environment.read_proxies()
    except ConfigurationError:
        return ()
    texts = [
        f"{proxy.proxy} for {scheme} addresses, by {proxy.variable}"
        for scheme, proxy in (("http://", found.http), ("https://", found.https))
        if proxy is not None
    ]
    bypass = f"no proxy for {', '.join(found.bypass)}, by NO_PROXY"
    return (*texts, bypass) if texts and found.bypass else tuple(texts)


def _proxy_fault(network: Network) -> ConfigurationError | None:
    try:
        proxy_rules(network)
    except ConfigurationError as error:
        return error
    return None


def _descriptors() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def inspect_folder(folder: Path, clock: Clock) -> FolderFacts:
    """Inspect a mirror's folder, or the nearest existing folder above its future place."""
    if not os.path.lexists(folder):
        nearest = next(parent for parent in folder.absolute().parents if os.path.lexists(parent))
        found_there = probe_file_system(nearest)
        return FolderFacts(
            folder=str(folder),
            is_mirror=False,
            made_in=str(nearest),
            refusal=found_there.refusal,
            is_case_sensitive=found_there.distinguishes_case,
            preserves_unicode_forms=found_there.preserves_unicode_forms,
            room=found_there.room,
            inodes=found_there.inodes,
        )
    own = folder / OWN_FOLDER
    was_pulled = is_mirror(folder)
    found = probe_file_system(own / "tmp" if was_pulled else folder)
    left = count_temporary_files(own / "tmp", clock.now().timestamp() - _STALE_SECONDS)
    holder, fault = _lock_holder(folder)
    state = _inspect_state(own) if was_pulled else _StateFacts()
    return FolderFacts(
        folder=str(folder),
        is_mirror=was_pulled,
        refusal=found.refusal or fault,
        is_case_sensitive=found.distinguishes_case,
        preserves_unicode_forms=found.preserves_unicode_forms,
        room=found.room,
        inodes=found.inodes,
        lock_owner=holder,
        damage=state.damage,
        repair=state.repair,
        has_marker=state.marker is None or state.marker == _text(own / "marker"),
        stale=0 if holder else left.stale,
        stale_bytes=left.stale_bytes,
        parts=0 if holder else left.parts,
        part_bytes=left.part_bytes,
        source=state.source,
    )


class _StateFacts(NamedTuple):
    """The fault of a mirror's state and what to do about it, its marker, and its Source."""

    damage: str = ""
    repair: str = ""
    marker: str | None = None
    source: str = ""


def _inspect_state(own: Path) -> _StateFacts:
    try:
        with SqliteMirrorState(own / STATE_FILE, read_only=True) as state:
            state.check()
            identity = SyncState(state).identity
            source = "" if identity is None else identity.source
            return _StateFacts(marker=state.note("marker"), source=source)
    except ResourceSyncError as error:
        return _StateFacts(damage=error.message, repair=error.hint)


def _lock_holder(folder: Path) -> tuple[str, str]:
    """Return the run that has locked a mirror, and why its lock cannot be used."""
    try:
        return lock_holder(folder), ""
    except OSError as error:
        return "", f"{OWN_FOLDER}/lock: {error.strerror}"


def _text(path: Path) -> str:
    try:
        return read_file(path, 64).decode("ascii", "replace").strip()
    except OSError:
        return ""


def inspect_source(address: str, network: Network, clock: Clock) -> SourceFacts:
    """Send a Source one request.

    Args:
        address: Its address.
        network: Settings for requests to it.
        clock: Time.

    Raises:
        ConfigurationError: The address or a setting cannot work.
    """
    origin = origin_of(address)
    proxy = proxy_rules(network).choose(f"{origin}/")
    if proxy:
        return SourceFacts(origin=origin, proxy=proxy)
    found = probe(origin, ca_file=network.ca_file)
    rules = parse_rules(found.robots)
    refuses = network.robots == "obey" and rules.refusal(address, Purpose.DISCOVERY) is not None
    return SourceFacts(
        origin=origin,
        failure=found.failure,
        is_tls_failure=found.is_tls_failure,
        date=found.date,
        now=clock.now(),
        tls=found.tls,
        expires=found.expires,
        robots_refuse=refuses,
        crawl_delay=rules.requested_delay or None,
        robots_status=found.robots_status if network.robots == "obey" else 0,
    )
