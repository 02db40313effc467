"""The checks of ``doctor``: a folder, the quarantine of a mirror, TLS and clock of a Source."""

import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

from resourcesync.adapters.http.settings import check_authorities
from resourcesync.adapters.http.transfer_errors import certificate_fault
from resourcesync.adapters.mirror.installed_copies import NOTE
from resourcesync.adapters.mirror.locked_folder import probe_file_system, writing_fault
from resourcesync.adapters.mirror.own_folder import is_mirror
from resourcesync.adapters.server_probe import Probe, probe
from resourcesync.app.document_access import search
from resourcesync.app.fetchers import origin_of, proxy_rules
from resourcesync.destination.mirror_health import LEAST_ROOM
from resourcesync.errors import ConfigurationError, ResourceSyncError, next_step
from resourcesync.model import formatting
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.ports import Clock
from resourcesync.settings.mirror import Network

Level = Literal["ok", "warning", "problem"]

_DAYS: Final = 14
"""Days of a certificate's validity below which it should have been renewed."""
_MOST_FOLDERS: Final = 10_000
_SKEW: Final = timedelta(seconds=60)
_WRONG: Final = timedelta(hours=24)
_SET_CLOCK: Final = "set the clock that is wrong, for example by NTP"


class CheckResult(NamedTuple):
    """The result of one check."""

    check: str
    level: Level
    text: str
    next_step: str = ""


def check_folder(folder: Path) -> Iterator[CheckResult]:
    """Yield the results for the folder of a mirror, or for the place where it will be created."""
    place, probed = str(folder), folder
    if not os.path.lexists(folder):
        probed = next(parent for parent in folder.absolute().parents if os.path.lexists(parent))
        place = f"{probed}, where {folder} will be created,"
    elif is_mirror(folder):
        probed = folder / OWN_FOLDER / "tmp"
    fault = writing_fault(probed)
    if not fault and (room := os.statvfs(probed)).f_bavail * room.f_frsize < LEAST_ROOM:
        fault = "no space left"
    if fault:
        hint = "fix its permissions, make room, mount its disk for writing, or name another folder"
        yield CheckResult("writing", "problem", f"{place} cannot be written: {fault}", hint)
        return
    yield CheckResult("writing", "ok", f"{place} can be written and synced")
    tells_case = probe_file_system(probed).distinguishes_case
    if tells_case is not None:
        what = "distinguishes" if tells_case else "does not distinguish"
        more = "" if tells_case else "; such names are escaped"
        yield CheckResult("names", "ok", f"the file system {what} upper and lower case{more}")
    if is_mirror(folder):
        yield from _check_folders(folder)
        yield from _check_quarantine(folder / OWN_FOLDER / "quarantine")


def _check_folders(folder: Path) -> Iterator[CheckResult]:
    for place, *_ in islice(os.walk(folder), _MOST_FOLDERS):
        if not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
            hint = "fix its owner or its permissions"
            yield CheckResult("writing", "problem", f"{place} cannot be written", hint)
            return


def _check_quarantine(place: Path) -> Iterator[CheckResult]:
    sizes = [path.lstat().st_size for path in place.glob("*") if path.suffix != NOTE]
    if sizes:
        files = f"{formatting.counted(len(sizes), 'file')} ({formatting.size(sum(sizes))})"
        text = f"{files} with local changes in {place}"
        hint = "save what you need, and remove the rest: no command does it"
        yield CheckResult("quarantine", "warning", text, hint)


def check_source(
    address: str, network: Network, clock: Clock, with_secrets: Callable[[], Network]
) -> Iterator[CheckResult]:
    """Send a Source one request, and those that find its lists; yield the results."""
    origin = origin_of(address)
    check_authorities(network.ca_file)
    proxy = proxy_rules(network).choose(f"{origin}/")
    if proxy:
        text = f"{origin} is reached through the proxy {proxy}: TLS and clock cannot be checked"
        yield CheckResult("tls", "warning", text)
    else:
        found = probe(origin, ca_file=network.ca_file)
        yield from judge_answer(origin, found, clock.now())
        if found.failure:
            return
    yield _check_lists(address, with_secrets)


def _check_lists(address: str, with_secrets: Callable[[], Network]) -> CheckResult:
    try:
        network = with_secrets()
    except ConfigurationError as error:  # only the service may have the secret
        return CheckResult("lists", "warning", f"the lists were not read: {error.message}")
    try:
        (found, _), _ = search(address, network)
    except ResourceSyncError as error:
        text = f"no list can be read at {address}: {error.cause}"
        return CheckResult("lists", "problem", text, next_step(error))
    return CheckResult("lists", "ok", f"the Source's lists can be read: {found}")


def judge_answer(origin: str, found: Probe, now: datetime) -> Iterator[CheckResult]:
    """Yield the results for the answer of a Source."""
    if found.is_tls_failure:
        meaning, hint = certificate_fault(found.failure)
        yield CheckResult("tls", "problem", f"{origin}: {meaning} ({found.failure})", hint)
    elif found.failure:
        text = f"the clock cannot be compared: {origin} does not answer: {found.failure}"
        yield CheckResult("clock", "problem", text, "try again later")
    else:
        yield _tls_result(found, now)
        yield _clock_result(found.date, now)


def _tls_result(found: Probe, now: datetime) -> CheckResult:
    if not found.tls:
        return CheckResult("tls", "warning", "no TLS: anybody on the network can change the data")
    if found.expires is None:
        return CheckResult("tls", "ok", found.tls)
    days = (found.expires - now) // timedelta(days=1)
    text = f"{found.tls}, the certificate expires in {days} {'day' if days == 1 else 'days'}"
    if days < _DAYS:
        return CheckResult("tls", "warning", text, "ask the Source to renew it")
    return CheckResult("tls", "ok", text)


def _clock_result(date: datetime | None, now: datetime) -> CheckResult:
    if date is None:
        return CheckResult("clock", "warning", "the Source sends no time (Date)")
    skew = now - date
    if abs(skew) <= _SKEW:
        return CheckResult("clock", "ok", "our clock and the Source's agree")
    way = "ahead of" if skew > timedelta() else "behind"
    text = f"our clock is {abs(skew).total_seconds():,.0f} s {way} the Source's"
    return CheckResult("clock", "problem" if abs(skew) > _WRONG else "warning", text, _SET_CLOCK)
