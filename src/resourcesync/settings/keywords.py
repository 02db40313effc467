"""The keyword arguments of the library, made from the schemas by `docs/generate.py`."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, TypedDict


class MirrorKeywords(TypedDict, total=False):
    """The settings of a pull that are keyword arguments of the library.

    Attributes:
        prune: Also delete copies that no longer match the filters, into the trash and as
            far as the limit of deletions allows. This reads the whole Resource List.
        lists_only: Only record what the Source lists; a later pull fetches and deletes.
        delete: Delete resources that a Change List lists as deleted (signalled), also those
            that a newer Resource List no longer lists (absent), or none (never). auto:
            absent for a Resource List, signalled for a plain sitemap.
        max_delete: Hold all deletions back if there are more. With P%, 25 are always
            allowed, but never more than half of the copies if the lists only no longer
            contain them.
        trash: Time that deleted copies stay in the mirror's trash; 0: no trash. In seconds,
            or text such as ``90s`` or ``7d``.
        verify: Refuse bytes that do not match the list (strict), or store and mark them
            (lenient): a copy that does not match the list is never in sync.
        dumps: Use packages of the Source's dumps where they cost less than single requests
            (auto), never, or wherever possible (always).
        accept_missing: Listed resources that the Source does not deliver are not failures
            (404, 410, robots.txt, a redirect to another site): they are counted as absent
            or skipped. The mirror remembers it; for a plain sitemap it is the default.
        recheck: Request each page that is known by its date alone again within this time, a
            few in each pull: many sites change pages without a new date. 0: never. Default:
            7d for a plain sitemap, 30d for other lists without hashes. In seconds, or text
            such as ``90s`` or ``7d``.
        fail_fast: Stop at the first failure.
        max_duration: Stop cleanly after this time, such as 10m; the next run continues. In
            seconds, or text such as ``90s`` or ``7d``.
        max_bytes: Stop cleanly before more bytes are received, such as 2G; the next run
            continues. At least one resource is fetched. In bytes, or text such as ``5M``.
        include: Only resources whose path matches: ``*`` stops at /, ``**`` does not; a
            pattern without a leading / matches in each folder. A mirror remembers this and
            each filter below until it is given again; an empty value ('') removes it.
        exclude: No resources whose path matches.
        types: Only resources of this media type.
        max_size: No resources larger than this, such as 5M. In bytes, or text such as
            ``5M``.
        since: Only resources modified since, such as -7d or a date.
        links: Also resources that selected entries link to by this relation, such as
            describedby.
        allow_origins: Trust this origin too: follow links and redirects to it, fetch its
            resources, and connect to it even if its address is private. A mirror remembers
            it, as its filters.
        mapper: The mapping from URIs to paths: tree (the names of the Source), a plug-in,
            or a rule such as 'bitstream/{item}/{name} => {item}/{name}'. It cannot be
            changed later.
    """

    prune: bool
    lists_only: bool
    delete: Literal["auto", "signalled", "absent", "never"]
    max_delete: int | str
    trash: float | str
    verify: Literal["strict", "lenient"]
    dumps: Literal["auto", "never", "always"]
    accept_missing: bool | None
    recheck: float | str | None
    fail_fast: bool
    max_duration: float | str | None
    max_bytes: int | str | None
    include: Sequence[str]
    exclude: Sequence[str]
    types: Sequence[str]
    max_size: int | str | None
    since: datetime | timedelta | str | None
    links: Sequence[str]
    allow_origins: Sequence[str]
    mapper: str


class PublisherOptions(TypedDict, total=False):
    """The keyword arguments of `Publisher`. Those that are not given are as the last time.

    Attributes:
        url: The web address of DIR; needed once.
        out: Write the documents there instead of into DIR; s3://BUCKET/PREFIX is a bucket.
        include: Publish only files whose path below DIR matches: ``*`` stops at /, ``**``
            does not; a pattern without a leading / matches in each folder.
        exclude: Publish no files whose path matches.
        hashes: Digests of every file; default: sha-256. Several are possible.
        max_entries: Most entries in one document.
        max_bytes: Most bytes in one document, such as 10M.
        described_by: The address of a description of the resources, instead of a document
            that publish writes; an empty value ('') removes it.
        change_lists: append: one open Change List. per-run: each run writes a closed list.
            archive: as per-run, with a Change List Archive instead of an index.
        rotate: Close an open Change List at this age. In seconds, or text such as ``90s``
            or ``7d``.
        keep: Remove closed Change Lists of this age, if no Resource List is older. In
            seconds, or text such as ``90s`` or ``7d``.
        rebase_every: Write a new Resource List (baseline) at this interval. In seconds, or
            text such as ``90s`` or ``7d``.
        rebase_up_to: Write a new Resource List with each change, as long as it has at most
            this number of entries; 0: only when due. Not where superseded lists are
            archived.
        archive: Store superseded lists and dumps for this time, and list them in archives;
            0: never. In seconds, or text such as ``90s`` or ``7d``.
        dialect: The version of the format to write; default: 1.1.
        sitemap: Also write a plain sitemap for search engines.
        robots: Write robots.txt with the sitemap's address; never overwrite your own file.
        hubs: A WebSub hub for subscriptions to changes; the lists name it. Several are
            possible; an empty value ('') removes them.
        notify: Notify the hubs after each publication; otherwise only on request.
        links: Links of the resources, such as 'describedby:{path}.xml only=*.pdf'. Several
            are possible; an empty value ('') removes them.
        max_package: Most bytes of content in one package of a dump; default: 256M.
        versions: Store the versions of each file, and list them with links memento,
            timegate and timemap. ``serve`` serves them.
        versions_in: The folder for versions, instead of .resourcesync/versions.
        versions_keep: Store former versions at least for this time, and as long as a list
            names them. In seconds, or text such as ``90s`` or ``7d``.
        versions_least: Store at least this number of former versions of each file.
        versions_max_bytes: Most bytes of all versions; the oldest are removed first, listed
            or not. 0: any. In bytes, or text such as ``5M``.
        patches: Compute patches between the versions of JSON files; needs ``versions``.
    """

    url: str
    out: str
    include: Sequence[str]
    exclude: Sequence[str]
    hashes: Sequence[Literal["sha-256", "sha-512", "sha-384", "sha-224", "sha-1", "md5"]]
    max_entries: int
    max_bytes: int
    described_by: str
    change_lists: Literal["append", "per-run", "archive"]
    rotate: float | str
    keep: float | str
    rebase_every: float | str
    rebase_up_to: int
    archive: float | str
    dialect: Literal["1.1", "1.0", "0.9.1", "0.9", "0.6", "0.5"]
    sitemap: bool
    robots: bool
    hubs: Sequence[str]
    notify: bool
    links: Sequence[str]
    max_package: int
    versions: bool
    versions_in: str
    versions_keep: float | str
    versions_least: int
    versions_max_bytes: int | str
    patches: bool
