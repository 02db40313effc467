"""What each dialect can say: one table, by which documents of older versions are written.

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
its entries are written as a Capability List Index. A plain sitemap says ``loc``, ``lastmod`` and
``changefreq`` of the entries of a Resource List. The Atom forms and the native one of the drafts
say what 0.5 says, for lists and manifests alone, and nothing of other communities.
"""

from dataclasses import dataclass
from typing import Final, Literal

from resourcesync.model.vocabulary import Dialect, Relation

_SINCE_0_9_1: Final = frozenset(
    {Relation.CONTENTS, Relation.TIMEMAP, Relation.PROFILE, Relation.ARCHIVES}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DialectForm:
    """What one dialect can say; the defaults are those of 1.1.

    Attributes:
        dialect: Its name.
        times: The attribute that tells a list's time: of ``modified`` there is nothing besides.
        has_entry_times: Whether entries of indexes, archives and dumps tell their own times.
        is_dated: Whether changes have a ``datetime``; else their ``lastmod`` is that time.
        links_down: Whether ``resourcesync`` is the word for ``up``, and ``up`` that for ``index``.
        unsaid: Relations that it does not know.
        description: Its word for a Source Description; empty when it has none.
        archives_are_indexes: Whether an archive is an index of what it archives.
        nests_manifests: Whether manifests may be indexes.
        has_notifications: Whether there are Change and Framework Notifications.
        is_plain: Whether it knows nothing of ResourceSync.
        is_feed: Whether it is no sitemap: one of the forms of the drafts that were given up.
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
    is_feed: bool = False


_FORMS: Final = {
    form.dialect: form
    for form in (
        DialectForm(dialect=Dialect.V1_1, is_dated=True),
        DialectForm(dialect=Dialect.V1_0),
        DialectForm(dialect=Dialect.V0_9_1, has_notifications=False),
        DialectForm(
            dialect=Dialect.V0_9,
            times="from",
            has_entry_times=False,
            links_down=True,
            unsaid=_SINCE_0_9_1,
            description="resourcesync",
            has_notifications=False,
        ),
        DialectForm(
            dialect=Dialect.V0_6,
            times="modified",
            has_entry_times=False,
            links_down=True,
            unsaid=_SINCE_0_9_1,
            description="",
            has_notifications=False,
        ),
        DialectForm(
            dialect=Dialect.V0_5,
            times="modified",
            has_entry_times=False,
            links_down=True,
            unsaid=_SINCE_0_9_1 | {Relation.COLLECTION},
            description="",
            archives_are_indexes=True,
            nests_manifests=True,
            has_notifications=False,
        ),
        DialectForm(dialect=Dialect.SITEMAP, is_plain=True, has_notifications=False),
        *(
            DialectForm(dialect=dialect, times="modified", is_feed=True)
            for dialect in (Dialect.ATOM_LINKS, Dialect.ATOM_ENTRIES, Dialect.NATIVE)
        ),
    )
}


def form_of(dialect: Dialect) -> DialectForm:
    """Return what a dialect can say.

    Raises:
        ValueError: Documents of this dialect are read, but not written here.
    """
    try:
        return _FORMS[dialect]
    except KeyError:
        known = ", ".join(_FORMS)
        raise ValueError(f"{dialect} is read, but not written; written are {known}") from None
