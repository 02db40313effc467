"""Union: a resource that lists name several times is one resource; pure.

It may be twice in one list, in two parts, in a feed beside a sitemap, with a fragment, in two
spellings of its address. The entry with the newest date counts whole. Entries of one date, or of
none, are one account if nothing in them disagrees; what disagrees is asked of the Source.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from resourcesync.destination.lists.fetch_locations import MAX_MIRRORS
from resourcesync.destination.planner import FILTERED, ListedEntry
from resourcesync.model.digests import Digest, disagree, format_digests, parse_digests

Content = tuple[str, int | None]
"""What an entry tells of the bytes: its ``hash`` and its length."""

MAX_RIVALS: Final = 8
"""Contents of one resource that are told apart; of more, the list says nothing."""
_MAX_WAITING: Final = 64
"""Entries of one resource that wait to be united: a hostile list may have millions."""
_NOTHING: Final[Content] = ("", None)


def unite_all(rows: Iterable[ListedEntry]) -> Iterator[ListedEntry]:
    """Yield one row for each URI."""
    rest = iter(rows)
    current = next(rest, None)
    while current is not None:
        row = next(rest, None)
        if row is None or row.uri != current.uri:  # as most
            yield current
            current = row
            continue
        same, uri = [current], row.uri
        while row is not None and row.uri == uri:
            same.append(row)
            if len(same) >= _MAX_WAITING:
                same = [unite(same)]
            row = next(rest, None)
        yield unite(same)
        current = row


def unite(rows: Iterable[ListedEntry]) -> ListedEntry:
    """Return the one row of a resource; in which order its entries are listed makes no difference.

    An entry that cannot be used counts only if there is no other, and one that the filters exclude
    only if none of its date is selected.
    """
    rows = _best(rows, lambda row: (row.loc != "", row.lastmod is not None, row.lastmod or 0))
    rows = _best(rows, lambda row: row.change != FILTERED)
    first, *others = rows = sorted(rows, key=_order)
    if not others:
        return first
    first = first._replace(
        links=tuple(dict.fromkeys(chain.from_iterable(row.links for row in rows))),
        entry=next((row.entry for row in rows if row.entry), ""),
    )
    contents = {content for row in rows for content in _contents(row)} - {_NOTHING}
    if any(row.undated and not row.rivals for row in rows):
        return _as_question(first, ())
    if not _is_consistent(contents):
        return _as_question(first, sorted(contents, key=repr))
    mirrors = dict.fromkeys(chain.from_iterable(row.mirrors for row in rows))
    return first._replace(
        hash=_joined(digest for digest, _ in contents),
        length=next((length for _, length in contents if length is not None), None),
        mirrors=tuple(mirrors)[:MAX_MIRRORS],
        memento=next((row.memento for row in rows if row.memento), ""),
    )


def _best(rows: Iterable[ListedEntry], key: Callable[[ListedEntry], Any]) -> list[ListedEntry]:
    """Return the rows of which the key is the largest."""
    rows = list(rows)
    most = max(map(key, rows))
    return [row for row in rows if key(row) == most]


def _order(row: ListedEntry) -> tuple[object, ...]:
    return row.loc, row.path, row.hash, row.length or 0, row.memento, row.mirrors, row.entry


def _contents(row: ListedEntry) -> tuple[Content, ...]:
    return row.rivals or ((row.hash, row.length),)


def _is_consistent(contents: Collection[Content]) -> bool:
    """True if the same bytes may have all these digests and lengths."""
    digests = [digest for text, _ in contents for digest in parse_digests(text)]
    lengths = {length for _, length in contents if length is not None}
    return len(lengths) <= 1 and not disagree(digests, digests)


def _joined(texts: Iterable[str]) -> str:
    """Return the digests of several ``hash`` attributes, each once."""
    found: set[Digest] = {digest for text in texts for digest in parse_digests(text)}
    return format_digests(sorted(found))


def _as_question(row: ListedEntry, rivals: Sequence[Content]) -> ListedEntry:
    """Return a row whose content only the Source can tell: one of some, or any."""
    return row._replace(
        hash="",
        length=None,
        mirrors=(),
        memento="",
        undated=True,
        rivals=tuple(rivals) if len(rivals) <= MAX_RIVALS else (),
    )
