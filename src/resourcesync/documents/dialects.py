"""Dialects in writing: what each version can express, and values reduced to it.

The versions differ in what their XML carries, not in its grammar (the specification's own change
logs, and its examples of each version):

| | 0.5 | 0.6 | 0.9 | 0.9.1 | 1.0 | 1.1 |
|---|---|---|---|---|---|---|
| time of a list or dump | modified | modified | from | at | at | at |
| its end, ``completed`` | - | - | - | yes | yes | yes |
| interval of a change document | modified | modified | from, until | from, until | = | = |
| a document that is still open | - | - | - | yes | yes | yes |
| time of a capability list | modified | modified | - | - | - | - |
| times of an entry in an index | lastmod | lastmod | lastmod | at, from... | = | = |
| time of a change | lastmod | lastmod | lastmod | lastmod | lastmod | datetime |
| relation to the document above | resourcesync | = | = | up | up | up |
| relation to the index | up | up | up | index | index | index |
| links contents, timemap, profile, archives | - | - | - | yes | yes | yes |
| link collection | - | yes | yes | yes | yes | yes |
| Source Description | - | - | resourcesync | description | = | = |
| archives | index | yes | yes | yes | yes | yes |
| manifests that are indexes | yes | - | - | - | - | - |
| notifications | - | - | - | - | yes | yes |

A dash means: left out, or `ValueError` where nothing would be left. Without a Source Description
its entries are written as a Capability List Index. A plain sitemap has ``loc``, ``lastmod`` and
``changefreq`` of the entries of a Resource List.
"""

from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from resourcesync.model import entries
from resourcesync.model.vocabulary import NOTIFICATIONS, Capability, Dialect, Relation

_SINCE_0_9_1: Final = frozenset(
    {Relation.CONTENTS, Relation.TIMEMAP, Relation.PROFILE, Relation.ARCHIVES}
)


class DialectForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form of one dialect; the defaults are those of 1.1.

    ``times`` are the attributes of a list's time. Without ``is_dated`` the ``lastmod`` of a change
    is its time. ``links_down``: ``resourcesync`` means ``up``, and ``up`` means ``index``.
    ``unsaid`` relations are lacking. ``archives_are_indexes``: of what they archive. ``is_plain``:
    it lacks ResourceSync altogether.
    """

    dialect: Dialect
    times: Literal["at", "from", "modified"] = "at"
    has_entry_times: bool = True
    is_dated: bool = False
    links_down: bool = False
    unsaid: frozenset[str] = frozenset()
    description: str = "description"
    archives_are_indexes: bool = False
    nests_manifests: bool = False
    has_notifications: bool = True
    is_plain: bool = False


_EARLY: Final = DialectForm(
    dialect=Dialect.V0_9,
    times="from",
    has_entry_times=False,
    links_down=True,
    unsaid=_SINCE_0_9_1,
    description="resourcesync",
    has_notifications=False,
)
_EARLIER: Final = replace(_EARLY, dialect=Dialect.V0_6, times="modified", description="")
_EARLIEST: Final = replace(
    _EARLIER,
    dialect=Dialect.V0_5,
    unsaid=_SINCE_0_9_1 | {Relation.COLLECTION},
    archives_are_indexes=True,
    nests_manifests=True,
)
_FORMS: Final = {
    form.dialect: form
    for form in (
        DialectForm(dialect=Dialect.V1_1, is_dated=True),
        DialectForm(dialect=Dialect.V1_0),
        DialectForm(dialect=Dialect.V0_9_1, has_notifications=False),
        _EARLY,
        _EARLIER,
        _EARLIEST,
        DialectForm(dialect=Dialect.SITEMAP, is_plain=True, has_notifications=False),
    )
}


def form_of(dialect: Dialect) -> DialectForm:
    """Return the form of a dialect."""
    try:
        return _FORMS[dialect]
    except KeyError:
        known = ", ".join(_FORMS)
        raise ValueError(f"{dialect} is read, but not written; written are {known}") from None


_SITEMAPS: Final = frozenset({None, Capability.RESOURCE_LIST})


def narrow_header(header: entries.Header, dialect: Dialect) -> entries.Header:
    """Return a header reduced to a dialect; reading the output of `write` gives just this."""
    if dialect is Dialect.V1_1:  # it has all but the one time of the drafts
        return header if header.modified is None else replace(header, modified=None)
    form = form_of(dialect)
    if form.is_plain:
        if header.capability not in _SITEMAPS:
            raise ValueError(f"a plain sitemap cannot say what a {header.phrase} says")
        return entries.Header(capability=None, is_index=header.is_index, foreign=header.foreign)
    kept = _as_kind(header, form)
    told = {"links": _known_links(kept.links, form), **_times(kept, form)}
    changed = {name: value for name, value in told.items() if getattr(kept, name) != value}
    return replace(kept, **changed) if changed else kept


def narrow_entry(entry: entries.Entry, header: entries.Header, dialect: Dialect) -> entries.Entry:
    """Return an entry reduced to a dialect; the very same one if nothing is left out."""
    form = form_of(dialect)
    if form.is_plain:
        if isinstance(entry, entries.Resource):
            return entries.Resource(
                uri=entry.uri,
                lastmod=entry.lastmod,
                changefreq=entry.changefreq,
                foreign=entry.foreign,
            )
        if isinstance(entry, entries.Part):
            return entries.Part(uri=entry.uri, lastmod=entry.lastmod, foreign=entry.foreign)
        raise ValueError(f"a plain sitemap has no {type(entry).__name__} in it")
    is_set = isinstance(entry, entries.CapabilityEntry) and not form.description
    if is_set and header.capability is Capability.DESCRIPTION:
        shared = {name: getattr(entry, name) for name in entries.DocumentPointer.__struct_fields__}
        entry = entries.Part(**shared)
    if not form.has_entry_times and isinstance(entry, entries.Part | entries.Package):
        entry = _untimed(entry)
    if not form.is_dated and isinstance(entry, entries.Change | entries.DocumentChange):
        entry = _undated(entry, form)
    return _with_known_links(entry, form)


def _as_kind(header: entries.Header, form: DialectForm) -> entries.Header:
    kind = header.capability
    missing = f"{form.dialect} has no {header.phrase}"
    if kind in NOTIFICATIONS and not form.has_notifications:
        raise ValueError(missing)
    if kind is Capability.DESCRIPTION and not form.description:
        if header.is_index:
            raise ValueError(missing)
        return replace(header, capability=Capability.CAPABILITY_LIST, is_index=True)
    if kind is not None and kind.is_archive and form.archives_are_indexes:
        # An index of Resource Lists would be read as one list, in parts.
        if header.is_index or kind is Capability.RESOURCE_LIST_ARCHIVE:
            raise ValueError(missing)
        return replace(header, capability=kind.archived, is_index=True)
    return header


def _times(header: entries.Header, form: DialectForm) -> dict[str, Any]:
    kind = header.capability
    if kind is None or form.times == "at":
        return {"modified": None}
    told: dict[str, Any] = dict.fromkeys(("at", "completed", "from_", "until", "modified"))
    time = header.at if kind.is_snapshot else header.until
    time = time or header.modified
    if time is None and (form.times == "modified" or kind.is_log):
        raise ValueError(
            f"{form.dialect} needs a time of the {header.phrase}: its until, at or modified"
        )
    if kind.is_snapshot:
        told["at"] = time
    elif form.times == "modified":
        told["modified"] = time
    elif kind.is_log:
        told |= {"from_": header.from_, "until": time}
    return told


def _untimed(entry: entries.Part | entries.Package) -> entries.Part | entries.Package:
    time = entry.lastmod or entry.at or entry.until or entry.from_
    return replace(entry, lastmod=time, at=None, completed=None, from_=None, until=None)


def _undated(
    entry: entries.Change | entries.DocumentChange, form: DialectForm
) -> entries.Change | entries.DocumentChange:
    if isinstance(entry, entries.DocumentChange):
        time = entry.time or entry.lastmod
        return replace(entry, time=time, lastmod=time)
    time = entry.time or entry.resource.lastmod
    if time is None:
        raise ValueError(f"{form.dialect} needs the time of each change; {entry.uri} has none")
    if time == entry.time and time == entry.resource.lastmod:
        return entry
    return replace(entry, time=time, resource=replace(entry.resource, lastmod=time))


def _with_known_links(entry: entries.Entry, form: DialectForm) -> entries.Entry:
    if isinstance(entry, entries.Change):
        links = _known_links(entry.resource.links, form)
        if links == entry.resource.links:
            return entry
        return replace(entry, resource=replace(entry.resource, links=links))
    links = _known_links(entry.links, form)
    return entry if links == entry.links else replace(entry, links=links)


def _known_links(links: tuple[entries.Link, ...], form: DialectForm) -> tuple[entries.Link, ...]:
    if not form.unsaid:
        return links
    kept: list[entries.Link] = []
    for link in links:
        words = link.rel.split()
        known = [word for word in words if word.lower() not in form.unsaid]
        if known:
            kept.append(link if known == words else replace(link, rel=" ".join(known)))
    return tuple(kept)
