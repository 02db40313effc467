"""What sitemaps list, each URI once, in order, in memory that does not grow with their number."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, NamedTuple, Self

from resourcesync.errors import StorageError

_PAGE: Final = 1_000
_CREATE_LISTED: Final = """
CREATE TABLE listed (
    uri TEXT PRIMARY KEY, lastmod INTEGER, length INTEGER, hash TEXT NOT NULL,
    media_type TEXT NOT NULL, changefreq TEXT NOT NULL
) WITHOUT ROWID
"""
# A URI that several sitemaps list was changed when the latest of them says so.
_ADD: Final = """
INSERT INTO listed VALUES (?,?,?,?,?,?) ON CONFLICT (uri) DO UPDATE SET
    lastmod = max(coalesce(lastmod, excluded.lastmod), coalesce(excluded.lastmod, lastmod))
"""


class SitemapEntry(NamedTuple):
    """What is told of one resource.

    Attributes:
        uri: Its URI.
        lastmod: Microseconds since 1970, or ``None``.
        length: Bytes, where that is known.
        hash: A ``hash`` attribute; empty for none.
        media_type: Its type; empty where it is not known.
        changefreq: As written.
    """

    uri: str
    lastmod: int | None
    length: int | None
    hash: str
    media_type: str
    changefreq: str


class Listing:
    """Takes what is listed, in any order; gives each URI once. It is a temporary file."""

    def __init__(self) -> None:
        with _guarded():
            self._db = sqlite3.connect("", isolation_level=None)
            self._db.execute(_CREATE_LISTED)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def add(self, entries: Iterable[SitemapEntry]) -> None:
        """Take entries.

        Raises:
            StorageError: There is no room for them.
        """
        with _guarded():
            self._db.execute("BEGIN")
            self._db.executemany(_ADD, entries)
            self._db.execute("COMMIT")

    def pages(self) -> Iterator[list[SitemapEntry]]:
        """Yield all entries in URI order, some at a time.

        Raises:
            StorageError: They cannot be read.
        """
        after = ""
        while True:
            with _guarded():
                rows = self._db.execute(
                    "SELECT * FROM listed WHERE uri > ? ORDER BY uri LIMIT ?", (after, _PAGE)
                ).fetchall()
            if not rows:
                return
            yield [SitemapEntry._make(row) for row in rows]
            after = rows[-1][0]


@contextmanager
def _guarded() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(
            f"what is listed cannot be kept in a temporary file: {error}",
            hint="make room where temporary files are, then run the same command",
        ) from error
