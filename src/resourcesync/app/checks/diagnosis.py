"""Results of ``doctor``: facts about a machine, a mirror and a Source become results and hints.

Pure: nothing is inspected in this module.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

import msgspec

from resourcesync.adapters.http.robots import LONGEST_DELAY
from resourcesync.errors import ConfigurationError, Remedy

Level = Literal["ok", "warning", "problem"]
Version = tuple[int, ...]

_GB: Final = 1_000_000_000
_MB: Final = 1_000_000
MIN_FREE_BYTES: Final = 100 * _MB
LOW_FREE_BYTES: Final = _GB
_MIN_FREE_INODES: Final = 1_000
_LOW_FREE_INODES: Final = 100_000
_FEW_DESCRIPTORS: Final = 256
_DAYS: Final = 14
_SKEW: Final = timedelta(seconds=60)
_WRONG: Final = timedelta(hours=24)
_OLDEST_NOW: Final = 2025
"""Year below which a clock was never set."""

_KNOWN_PROBLEMS: Final[dict[str, tuple[tuple[Version, Level, str], ...]]] = {
    "libcurl": (
        ((7, 71, 0), "problem", "too old for the features in use"),
        ((8, 4, 0), "warning", "before 8.4.0 it has a known vulnerability with SOCKS proxies"),
    ),
    "SQLite": (((3, 38, 0), "problem", "the mirror's state needs 3.38 or newer"),),
    "expat": (
        (
            (2, 6, 0),
            "warning",
            "before 2.6.0 it can be slow on malicious XML; size limits bound the effect",
        ),
    ),
    "Python": (((3, 11), "problem", "3.11 or newer is needed"),),
}
_UPGRADE_HINTS: Final = {
    "libcurl": "pip install --upgrade pycurl",
    "SQLite": "use a newer Python",
    "expat": "use a newer Python",
    "Python": "use a newer Python",
}


class CheckResult(NamedTuple):
    """The result of one check.

    Attributes:
        check: Name of the check, a stable word.
        level: ``ok``, ``warning`` or ``problem``.
        text: The finding.
        next_step: The next step; empty when there is none.
        remedy: The same for programs; ``None`` for none.
    """

    check: str
    level: Level
    text: str
    next_step: str = ""
    remedy: Remedy | None = None


class MachineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about the machine.

    Attributes:
        versions: Versions of our dependencies, such as ``{"SQLite": "3.45.1"}``.
        http2: True if libcurl supports HTTP/2.
        descriptors: Most files that may be open at a time; ``None`` for any number.
        now: The clock's time, UTC.
        scratch: The folder for temporary files.
        scratch_room: Free bytes there; ``None`` when it cannot be written.
        config: The configuration file; empty when there is none.
        mistakes: Mistakes in it.
        warnings: Doubtful settings in it.
        proxies: The proxies that count, and where each is named, as sentences.
        proxy_fault: Error for which no proxy can be chosen; ``None`` if one can.
        ca_file: The file of trusted authorities that was chosen; empty for the system's.
        ca_fault: Reason why it cannot be used; empty when it can.
    """

    versions: dict[str, str]
    http2: bool
    descriptors: int | None
    now: datetime
    scratch: str
    scratch_room: int | None
    config: str
    mistakes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    proxy_fault: ConfigurationError | None = None
    ca_file: str = ""
    ca_fault: str = ""


class FolderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about the folder of a mirror, or its future place.

    Attributes:
        folder: The folder.
        is_mirror: True if it is a mirror already.
        refusal: Reason why it cannot be written; empty when it can.
        is_case_sensitive: True if ``a`` and ``A`` are two files there; ``None``: could not be
            tried.
        preserves_unicode_forms: True if the two Unicode forms of one letter are two files there.
        room: Free bytes.
        inodes: Number of files that can still be made; ``None`` where that is not counted.
        lock_owner: The run that has locked the mirror; empty for none.
        damage: Fault of its state; empty for none.
        repair: What to do about it.
        has_marker: True if it is the folder that its state names.
        stale: Temporary files that no run will resume.
        stale_bytes: Their bytes.
        parts: Partial resources (`.part`) that the next pull resumes.
        part_bytes: Their bytes.
        source: Address of its Source.
        made_in: The parent folder that was inspected, since the folder does not exist yet.
    """

    folder: str
    is_mirror: bool
    refusal: str = ""
    is_case_sensitive: bool | None = None
    preserves_unicode_forms: bool | None = None
    room: int = 0
    inodes: int | None = None
    lock_owner: str = ""
    damage: str = ""
    repair: str = ""
    has_marker: bool = True
    stale: int = 0
    stale_bytes: int = 0
    parts: int = 0
    part_bytes: int = 0
    source: str = ""
    made_in: str = ""


_FAULTS: Final = 500
"""The first status that means a fault of the server."""
_LATER: Final = frozenset({408, 425, 429})
"""The other statuses that mean: not now."""


class SourceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a Source.

    Attributes:
        origin: The origin that was requested.
        proxy: The proxy that is used; then no direct request was sent.
        failure: Reason why there was no answer; empty when there was one.
        is_tls_failure: True if its certificate is the reason.
        date: The answer's ``Date``, UTC.
        now: Time of our clock then, UTC.
        tls: The version of TLS; empty without.
        expires: End of its certificate's validity, UTC.
        robots_refuse: True if robots.txt disallows the address.
        crawl_delay: Seconds that it asks to wait between requests.
        robots_status: The status of the answer to the request for robots.txt.
    """

    origin: str
    proxy: str = ""
    failure: str = ""
    is_tls_failure: bool = False
    date: datetime | None = None
    now: datetime | None = None
    tls: str = ""
    expires: datetime | None = None
    robots_refuse: bool = False
    crawl_delay: float | None = None
    robots_status: int = 0


def check_machine(machine: MachineFacts) -> Iterator[CheckResult]:
    """Yield the results for a machine."""
    for name, version in machine.versions.items():
        yield _check_version(name, version)
    if not machine.http2:
        text = "libcurl has no HTTP/2: more connections, slower over long distances"
        yield CheckResult("http2", "warning", text, _UPGRADE_HINTS["libcurl"])
    yield _check_descriptors(machine.descriptors)
    if machine.now.year < _OLDEST_NOW:
        text = f"the clock says {machine.now:%Y-%m-%d}: it was never set"
        yield CheckResult("clock", "problem", text, "set the clock, for example with NTP")
    if machine.scratch_room is None:
        text = f"{machine.scratch} cannot be written"
        yield CheckResult("temporary", "problem", text, "set TMPDIR to a writable folder")
    else:
        yield _check_free_space("temporary", machine.scratch, machine.scratch_room)
    yield from _check_configuration(machine)
    for text in machine.proxies:
        yield CheckResult("proxy", "ok", text)
    if machine.proxy_fault is not None:
        fault = machine.proxy_fault
        yield CheckResult("proxy", "problem", fault.message, fault.hint, fault.remedy)
    if machine.ca_fault:
        text = f"the file of authorities {machine.ca_file} cannot be used: {machine.ca_fault}"
        hint = "fix it, or name another by `ca_file` or SSL_CERT_FILE"
        yield CheckResult("authorities", "problem", text, hint, Remedy("name-authorities"))


def _check_version(name: str, version: str) -> CheckResult:
    check, found = name.lower(), parse_version(version)
    for least, level, reason in _KNOWN_PROBLEMS.get(name, ()):
        if found < least:
            return CheckResult(check, level, f"{name} {version}: {reason}", _UPGRADE_HINTS[name])
    return CheckResult(check, "ok", f"{name} {version}")


def parse_version(text: str) -> Version:
    """Return the numbers of a version, up to the first part that is not a number."""
    numbers = []
    for part in text.split("."):
        digits = "".join(character for character in part if character.isdecimal())
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def _check_descriptors(most: int | None) -> CheckResult:
    if most is None:
        return CheckResult("descriptors", "ok", "any number of files may be open")
    text = f"{most:,} files may be open at a time"
    if most < _FEW_DESCRIPTORS:
        return CheckResult("descriptors", "warning", f"only {text}", "ulimit -n 1024")
    return CheckResult("descriptors", "ok", text)


def _check_configuration(machine: MachineFacts) -> Iterator[CheckResult]:
    check = "configuration"
    if not machine.config:
        yield CheckResult(check, "ok", "there is no configuration file; none is needed")
        return
    for mistake in machine.mistakes:
        yield CheckResult(check, "problem", mistake, "correct it", Remedy("check-configuration"))
    for warning in machine.warnings:
        yield CheckResult(check, "warning", warning, "set it where the pulls run")
    if not machine.mistakes:
        yield CheckResult(check, "ok", f"{machine.config}: valid")


def _check_free_space(check: str, folder: str, room: int) -> CheckResult:
    text = f"{_amount(room)} free in {folder}"
    if room < MIN_FREE_BYTES:
        return CheckResult(check, "problem", f"only {text}", "make room")
    if room < LOW_FREE_BYTES:
        return CheckResult(check, "warning", f"only {text}", "free space before a large pull")
    return CheckResult(check, "ok", text)


def _amount(size: int) -> str:
    return f"{size / _GB:,.1f} GB" if size >= _GB else f"{size / _MB:,.1f} MB"


def check_folder(place: FolderFacts) -> Iterator[CheckResult]:
    """Yield the results for a mirror's folder."""
    folder = place.folder
    if place.made_in:
        text = f"{folder} does not exist yet: checked {place.made_in}, where it will be created"
        yield CheckResult("folder", "ok", text)
        folder = place.made_in
    if place.refusal:
        text = f"{folder} cannot be written: {place.refusal}"
        hint = "fix its permissions, mount its disk for writing, or name another folder"
        yield CheckResult("writing", "problem", text, hint)
    else:
        yield CheckResult("writing", "ok", f"{folder} can be written")
    yield from _check_names(place)
    yield _check_free_space("room", folder, place.room)
    yield from _check_inodes(place)
    if place.is_mirror:
        yield from _check_state(place)


def _check_names(place: FolderFacts) -> Iterator[CheckResult]:
    if place.is_case_sensitive is None:
        return
    if place.is_case_sensitive and place.preserves_unicode_forms:
        yield CheckResult("names", "ok", "the file system distinguishes all names")
        return
    what = (
        "upper and lower case" if not place.is_case_sensitive else "the Unicode forms of a letter"
    )
    text = f"the file system does not distinguish {what}; clashing names are escaped"
    yield CheckResult("names", "ok", text)


def _check_inodes(place: FolderFacts) -> Iterator[CheckResult]:
    if place.inodes is None:
        return
    text = f"{place.inodes:,} more files can be made"
    if place.inodes < _MIN_FREE_INODES:
        yield CheckResult("inodes", "problem", f"only {text}", "delete files, or use another disk")
    elif place.inodes < _LOW_FREE_INODES:
        yield CheckResult("inodes", "warning", f"only {text}", "check whether that is enough")
    else:
        yield CheckResult("inodes", "ok", text)


def _check_state(place: FolderFacts) -> Iterator[CheckResult]:
    if place.damage:
        yield CheckResult("memory", "problem", place.damage, place.repair)
    else:
        yield CheckResult("memory", "ok", "the mirror's state is not damaged")
    if not place.has_marker:
        text = f"{place.folder} is not the folder that its state names"
        yield CheckResult("marker", "problem", text, "mount the disk, or restore the folder")
    if place.lock_owner:
        text = f"a run has locked the mirror: {place.lock_owner}"
        yield CheckResult(
            "lock", "warning", text, "wait until it ends; the lock of a dead run is released"
        )
    else:
        yield CheckResult("lock", "ok", "no run has locked the mirror")
    if place.stale:
        files = "1 temporary file" if place.stale == 1 else f"{place.stale:,} temporary files"
        text = f"{files} of dead runs, {_amount(place.stale_bytes)}"
        yield CheckResult("stale", "warning", text, f"the next pull of {place.folder} removes them")
    if place.parts:
        parts = "1 part" if place.parts == 1 else f"{place.parts:,} parts"
        text = f"{parts} of resources in {place.folder}/.resourcesync/tmp (.part), "
        text += f"{_amount(place.part_bytes)}: the next pull resumes them"
        yield CheckResult("parts", "ok", text)


def check_source(reach: SourceFacts) -> Iterator[CheckResult]:
    """Yield the results for a Source."""
    if reach.proxy:
        text = f"{reach.origin} is reached through the proxy {reach.proxy}; not checked directly"
        yield CheckResult("proxy", "ok", text)
        return
    if reach.failure:
        check = "tls" if reach.is_tls_failure else "reach"
        hint, remedy = "try again later", None
        if reach.is_tls_failure:
            hint = "the Source must renew it; if its authority is your own, name its file"
            remedy = Remedy("name-authorities")
        text = f"{reach.origin} does not answer: {reach.failure}"
        yield CheckResult(check, "problem", text, hint, remedy)
        return
    yield CheckResult("reach", "ok", f"{reach.origin} answers")
    yield from _check_tls(reach)
    yield from _check_clock(reach)
    if reach.robots_refuse:
        text = "robots.txt disallows this address"
        hint = "ask the Source; ignore its robots.txt if it agrees"
        yield CheckResult("robots", "problem", text, hint, Remedy("ignore-robots"))
    elif reach.robots_status >= _FAULTS or reach.robots_status in _LATER:
        text = f"robots.txt is unavailable: HTTP {reach.robots_status}; no list is looked for"
        yield CheckResult("robots", "problem", text, "try again later, or ask the Source")
    elif reach.crawl_delay:
        text = (
            f"robots.txt asks for {reach.crawl_delay:g} s between requests"
            f" (at most {LONGEST_DELAY:g} s are obeyed): pulls take long"
        )
        yield CheckResult("robots", "warning", text, "ask the Source for a dump, or for less delay")
    else:
        yield CheckResult("robots", "ok", "robots.txt allows access")


def _check_tls(reach: SourceFacts) -> Iterator[CheckResult]:
    if not reach.tls:
        yield CheckResult("tls", "warning", "no TLS: anybody on the network can change the data")
        return
    if reach.expires is None or reach.now is None:
        yield CheckResult("tls", "ok", reach.tls)
        return
    days = (reach.expires - reach.now) // timedelta(days=1)
    text = f"{reach.tls}, the certificate expires in {days} {'day' if days == 1 else 'days'}"
    if days < _DAYS:
        yield CheckResult("tls", "warning", text, "ask the Source to renew it")
    else:
        yield CheckResult("tls", "ok", text)


def _check_clock(reach: SourceFacts) -> Iterator[CheckResult]:
    if reach.date is None or reach.now is None:
        yield CheckResult("clock", "warning", "the Source sends no time (Date)")
        return
    skew = reach.now - reach.date
    seconds = abs(skew).total_seconds()
    way = "ahead of" if skew > timedelta() else "behind"
    text = f"our clock is {seconds:,.0f} s {way} the Source's"
    if abs(skew) > _WRONG:
        yield CheckResult(
            "clock", "problem", text, "set the clock that is wrong, for example by NTP"
        )
    elif abs(skew) > _SKEW:
        yield CheckResult(
            "clock", "warning", text, "set the clock that is wrong, for example by NTP"
        )
    else:
        yield CheckResult("clock", "ok", "our clock and the Source's agree")
