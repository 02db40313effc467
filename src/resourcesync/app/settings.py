"""The keyword arguments of ``Mirror`` and ``Publisher``, checked and turned into settings."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypedDict, TypeVar, cast

from resourcesync import config
from resourcesync.app.network import Network
from resourcesync.destination.options import Deletion, DumpPolicy, PullOptions
from resourcesync.destination.planner import DeletionLimit
from resourcesync.errors import ConfigurationError
from resourcesync.source.plan import DIALECTS, ChangeLists

_CHOICES: Final = {
    "delete": ("auto", "signalled", "absent", "never"),
    "verify": ("strict", "lenient"),
    "dumps": ("auto", "never", "always"),
}
N = TypeVar("N", int, float)
_SEVERAL: Final = frozenset({"include", "exclude", "types", "allow_origins", "links"})
_FILTERS: Final = _SEVERAL | {"max_size", "since"}


class MirrorOptions(TypedDict, total=False):
    """The keyword arguments of `Mirror`, each with the default of ``pull``.

    Attributes:
        include: Globs; only resources whose URI's path matches one of them. Each filter is
            stored with the mirror, and applies until another value is given; ``()`` or ``None``
            removes it. Filters are this and what follows up to ``links``, and
            ``allow_origins``.
        exclude: Globs; no resources whose path matches one of them.
        types: Media types; only resources of these.
        max_size: Bytes; no resources that are larger.
        since: Only resources modified since, aware.
        links: Relations; also what chosen entries link to with one of them, ``describedby``.
        mapper: Gives each resource its path: ``tree``, the name of a plug-in, or a rule
            ``PATTERN => TEMPLATE``. It is fixed for the life of a mirror; only ``tree/2`` renames
            the files of one with the names of older versions.
        set_name: One of several sets: its URI, name or number; stored with the mirror.
        allow_origins: Origins that the Source may list resources of, besides its own.
        delete: Copies to delete: ``signalled`` those that a Change List calls deleted; ``absent``
            also those that a newer Resource List no longer lists; ``never`` none; ``auto`` is
            ``absent`` for a Resource List and ``signalled`` for a plain sitemap.
        max_delete: Most deletions in one run, a number or a share such as ``"10%"``.
        prune: Also delete copies that no longer match the filters, as far as ``max_delete`` allows;
            the whole Resource List is read for that.
        trash_days: Days that deleted copies stay in the trash.
        verify: ``strict`` never stores bytes that differ from the list.
        dumps: ``auto`` uses packages of the Source's dumps where that costs less than single
            requests; ``always`` wherever they help; ``never``.
        accept_missing: True if resources that the Source lists and does not serve (404, 410, its
            robots.txt, a redirect to another site) are counted as absent or skipped, not failed.
            Stored with the mirror; the default is true for a plain sitemap.
        fail_fast: Stop at the first failure.
        max_duration: Seconds after which a pull ends normally; the report's ``spent`` is
            ``time``, and the next pull goes on.
        max_bytes: Bytes after which a pull fetches no more; the report's ``spent`` is ``bytes``.
        lists_only: Store what is listed; fetch and delete nothing. A later pull does.
        proxy: Proxy for all servers, such as ``"http://proxy.example:3128"``; ``""`` for none;
            ``None`` for those of the environment (``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY``,
            ``NO_PROXY``).
        proxy_auth: User and password for the proxy; they are sent to nothing else.
        ca_file: PEM file of the trusted authorities, in place of the system's.
        network: Further settings for requests to the Source.
    """

    include: Sequence[str]
    exclude: Sequence[str]
    types: Sequence[str]
    max_size: int | None
    since: datetime | None
    links: Sequence[str]
    mapper: str
    set_name: str
    allow_origins: Sequence[str]
    delete: Deletion
    max_delete: int | str
    prune: bool
    trash_days: float
    verify: Literal["strict", "lenient"]
    dumps: DumpPolicy
    accept_missing: bool
    fail_fast: bool
    max_duration: float | None
    max_bytes: int | None
    lists_only: bool
    proxy: str | None
    proxy_auth: tuple[str, str] | None
    ca_file: str | os.PathLike[str]
    network: Network


class PublisherOptions(TypedDict, total=False):
    """The keyword arguments of `Publisher`.

    They are stored with the folder: options that are not given are as the last time.

    Attributes:
        url: The address of the folder on the Web; needed the first time.
        hashes: Algorithms of the digests that are listed, ``("sha-256",)`` by default.
        include: Patterns; only files whose path matches one of them.
        exclude: Patterns; no files whose path matches one of them.
        out: The folder that the documents go to, or the address of a store, such as
            ``s3://BUCKET/PREFIX``; by default the folder itself.
        max_entries: Most entries of one document, at most 50,000.
        described_by: The address of a document about the resources; by default one is written.
        change_lists: ``append`` lists changes in one open Change List; ``per-run`` writes a
            closed one in each run, ``archive`` the same with an archive in the index's place.
        rotate: Seconds after which an open Change List is closed.
        keep: Seconds that closed Change Lists stay, and longer if readers need them.
        rebase_every: Seconds after which a new Resource List is written.
        archive: Seconds that superseded lists stay in archives.
        dialect: The version that is written, ``1.1`` by default.
        sitemap: Write a plain sitemap too, for search engines.
        robots: Write ``robots.txt``, where there is none.
        versions: Store the versions of each file, and list their addresses.
        versions_in: The folder of the versions; by default one in ``.resourcesync``.
        versions_keep: Seconds that former versions stay, and longer while a list refers to them.
        versions_least: Least number of former versions of each file that stay.
        versions_max_bytes: The most bytes of all versions; 0 for any number.
        patches: Compute patches that lead from each version to the next.
        hubs: Addresses of WebSub hubs for notifications of changes; the lists have them.
        notify: Notify the hubs after each publication.
    """

    url: str
    hashes: Sequence[str]
    include: Sequence[str]
    exclude: Sequence[str]
    out: str
    max_entries: int
    described_by: str
    change_lists: Literal["append", "per-run", "archive"]
    rotate: float
    keep: float
    rebase_every: float
    archive: float
    dialect: Literal["1.1", "1.0", "0.9.1", "0.9", "0.6", "0.5"]
    sitemap: bool
    robots: bool
    versions: bool
    versions_in: str
    versions_keep: float
    versions_least: int
    versions_max_bytes: int
    patches: bool
    hubs: Sequence[str]
    notify: bool


class MirrorSettings(NamedTuple):
    """The parsed options of a mirror."""

    pull: PullOptions
    network: Network


def check_names(given: Mapping[str, object], known: Iterable[str], what: str) -> None:
    """Refuse an argument that does not exist, as Python does.

    Raises:
        TypeError: There is no such argument.
    """
    unknown = sorted(given.keys() - set(known))
    if unknown:
        raise TypeError(f"{what}() got an unexpected keyword argument {unknown[0]!r}")


def text_tuple(name: str, value: object) -> tuple[str, ...]:
    """Return several strings as a tuple.

    Raises:
        ConfigurationError: It is one string, or no strings at all.
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigurationError(
            f"{name} must be a list of strings, not {value!r}", hint=f'{name}=["…"]'
        )
    return tuple(map(str, value))


def mirror_settings(options: MirrorOptions) -> MirrorSettings:
    """Return the parsed options of a mirror.

    Raises:
        ConfigurationError: A value cannot work.
        TypeError: There is no such option.
    """
    check_names(options, MirrorOptions.__annotations__, "Mirror")
    for name, words in _CHOICES.items():
        if options.get(name, words[0]) not in words:
            raise ConfigurationError(
                f"{name}={options.get(name)!r} is unknown", hint=f"one of {', '.join(words)}"
            )
    since = options.get("since")
    if since is not None and since.tzinfo is None:
        raise ConfigurationError("since has no time zone", hint="since=datetime(…, tzinfo=UTC)")
    limit = config.parse_limit(str(options.get("max_delete", "10%")))
    pull = PullOptions(
        changes=_filters(options),
        prune=options.get("prune", False),
        set_name=options.get("set_name", ""),
        delete=options.get("delete", "auto"),
        max_delete=DeletionLimit(count=limit.count, percent=limit.percent or 0.0),
        trash_days=options.get("trash_days", PullOptions().trash_days),
        verify=options.get("verify", "strict"),
        dumps=options.get("dumps", "auto"),
        accept_missing=options.get("accept_missing"),
        fail_fast=options.get("fail_fast", False),
        mapper=options.get("mapper", ""),
        max_duration=_positive("max_duration", options.get("max_duration")),
        max_bytes=_positive("max_bytes", options.get("max_bytes")),
        lists_only=options.get("lists_only", False),
    )
    return MirrorSettings(pull, _network(options))


def _network(options: MirrorOptions) -> Network:
    network = options.get("network", Network())
    allowed = (*network.allow_origins, *options.get("allow_origins", ()))
    chosen = replace(
        network,
        allow_origins=tuple(dict.fromkeys(allowed)),
        proxy=options.get("proxy", network.proxy),
        proxy_auth=options.get("proxy_auth", network.proxy_auth),
        ca_file=os.fspath(options.get("ca_file", network.ca_file)),
    )
    chosen.settings("")  # so that a mistake is reported where it was made
    return chosen


def _positive(name: str, value: N | None) -> N | None:
    if value is not None and not value >= 0:
        raise ConfigurationError(f"{name}={value!r} is negative")
    return value


def _filters(options: MirrorOptions) -> dict[str, object]:
    """Return the filters that were given, by their names; the others stay as stored."""
    given = {name: value for name, value in options.items() if name in _FILTERS}
    return {
        name: text_tuple(name, value) if name in _SEVERAL else value
        for name, value in given.items()
    }


def publisher_settings(options: PublisherOptions) -> dict[str, object]:
    """Return the settings that were given, by their names in ``Settings``.

    Raises:
        ConfigurationError: A value cannot work.
        TypeError: There is no such option.
    """
    check_names(options, PublisherOptions.__annotations__, "Publisher")
    given = dict(cast("Mapping[str, object]", options))
    if "hashes" in given:
        given["algorithms"] = given.pop("hashes")
    known: tuple[tuple[str, Iterable[str]], ...] = (
        ("change_lists", ChangeLists),
        ("dialect", DIALECTS),
    )
    for name, words in known:
        if name in given and given[name] not in tuple(words):
            raise ConfigurationError(
                f"{name}={given[name]!r} is unknown", hint=f"one of {', '.join(words)}"
            )
    for name in ("algorithms", "include", "exclude", "hubs"):
        if name in given:
            given[name] = text_tuple(name, given[name])
    return given
