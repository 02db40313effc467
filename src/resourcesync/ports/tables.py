"""The state of a large mirror as tables: Parquet files that any engine reads (ADR 0066).

A file is written once, under a name of its own, and never changed. A table of copies is the list
of its parts: ranges of URIs that do not overlap, in rising order (by code points). All paths are of
this machine; times are microseconds since 1970 (UTC), as everywhere in a mirror's state.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from resourcesync.ports.mirror import Copy, Pending


class ListedRow(NamedTuple):
    """One listed resource: the columns of a file of listed rows.

    Attributes:
        uri: Its URI, normalised: the key by which tables are ordered and joined.
        loc: Its URI as the Source wrote it.
        path: Its place in the mirror.
        hash: The ``hash`` as the Source wrote it, in our form; empty for none.
        length: Bytes, or ``None``.
        lastmod: ``lastmod``, else the time of the change; or ``None``.
        change: Empty in a Resource List; else ``created``, ``updated``, ``deleted``, or
            ``filtered`` for what is listed and not wanted, or cannot be used, or ``disputed``
            where lists may contradict each other.
        elsewhere: Its memento (or nothing), its mirrors, contradictions of lists (``lists …``), and
            its links as stored (``[…]``), one on each line; empty for none of them.
    """

    uri: str
    loc: str
    path: str
    hash: str
    length: int | None
    lastmod: int | None
    change: str
    elsewhere: str


class WorkRow(NamedTuple):
    """One resource to check: its listed row, and its present copy."""

    listed: ListedRow
    copy: Copy | None


class DoneRow(NamedTuple):
    """The outcome of one URI.

    Attributes:
        uri: The URI.
        copy: The present copy; ``None`` for none.
        pending: The pending task; ``None`` for none.
    """

    uri: str
    copy: Copy | None
    pending: Pending | None


class TablePart(NamedTuple):
    """A part of a table of copies.

    Attributes:
        name: Its file's name; it is never used again.
        rows: Number of its copies; at least one.
        first, last: The least and the greatest URI.
        size: Bytes of the file.
    """

    name: str
    rows: int
    first: str
    last: str
    size: int


class WorkSlice(NamedTuple):
    """A file of work rows, in URI order: one unit of fetching."""

    file: str
    rows: int
    size: int
    """Bytes to fetch as far as known."""


class JoinResult(NamedTuple):
    """The result of comparing the listed resources with the copies.

    Attributes:
        same: Number of copies that surely are as listed; they are in no slice.
        create: Number of listed resources without a copy (those to fetch).
        update: Number of listed resources whose copy may have to be fetched again.
        size: Bytes to fetch as far as known.
        unsized: Number of them without a listed length.
        has_unprovable: True if one of them has neither hash nor ``lastmod``.
        slices: The files of resources to check.
        unlisted: A file of the copies that nothing lists, in URI order.
        unlisted_rows: Their number.
        filtered: A file of the copies that are listed and not wanted, or whose row cannot be used,
            in URI order; they stay as they are.
        filtered_rows: Their number.
        deferred: A file of the listed rows that are left out until they are due.
        deferred_rows: Their number.
        conflicts: A file of the rows of URIs that one Resource List gives twice, differently, and
            of which no change tells; their copies stay as they are. Of each URI there are two rows
            one after the other: the first, and the first that differs from it.
    """

    same: int
    create: int
    update: int
    size: int
    unsized: int
    has_unprovable: bool
    slices: tuple[WorkSlice, ...]
    unlisted: str
    unlisted_rows: int
    filtered: str
    filtered_rows: int
    deferred: str
    deferred_rows: int
    conflicts: str


class Tables(Protocol):
    """An engine that reads, writes and joins files of rows, within a limit of memory."""

    def write_listed(self, file: str, rows: Iterable[ListedRow]) -> int:
        """Write a file of listed rows, as they come; return how many."""

    def read_listed(self, file: str) -> Iterator[ListedRow]:
        """Yield the rows of such a file, as they were written."""

    def find_listed(self, files: Sequence[str], chosen: Sequence[str]) -> Iterator[ListedRow]:
        """Yield the rows of files whose URIs other files have, too, in rising URI order.

        Args:
            files: Files of listed rows; of one URI, the rows come in their order.
            chosen: Files of listed rows that name the URIs.
        """

    def write_work(self, file: str, rows: Iterable[WorkRow]) -> int:
        """Write a slice, as a comparison writes them; return how many rows it has."""

    def read_work(self, file: str) -> Iterator[WorkRow]:
        """Yield the rows of a slice."""

    def write_done(self, file: str, rows: Iterable[DoneRow]) -> int:
        """Write the outcomes of the rows of a slice; return their number."""

    def read_done(self, file: str) -> Iterator[DoneRow]:
        """Yield the rows of such a file."""

    def read_copies(
        self, files: Sequence[str], after: str = "", columns: Sequence[str] = ()
    ) -> Iterator[Copy]:
        """Yield copies in rising URI order, those after a URI.

        Args:
            files: The parts of a table in its order, or one file of copies.
            after: Only URIs greater than this.
            columns: Unused columns need not be read: those named; empty for all.
        """

    def find(self, files: Sequence[str], uris: Sequence[str]) -> list[Copy]:
        """Return the copies of some URIs (a few thousand at most), in URI order."""

    def join(
        self,
        listed: Sequence[str],
        changed: Sequence[str],
        copies: Sequence[str],
        resting: Sequence[str],
        *,
        into: str,
        rows: int,
    ) -> JoinResult:
        """Compare the listed rows with the copies.

        Of a URI, the last row of ``changed`` counts, else its one row in ``listed``; a ``deleted``
        one counts as not listed, and is in no slice, except that its copy is not *unlisted* but in
        a slice (with ``change`` ``deleted``). A ``filtered`` one is in no slice, and its copy is
        *filtered*, not unlisted. A copy is *surely* what is listed when lengths do not differ and:
        the listed hash is not empty and equals ``listed`` or ``digests`` of the copy; or it is
        empty and ``lastmod`` is told and equal. A copy of negative length, or with the signature
        ``altered``, never is; nor is any where the row is ``disputed``.

        Args:
            listed: Files of listed rows of one Resource List, in any order.
            changed: Files of listed rows of Change Lists, a later word later.
            copies: The parts of the table.
            resting: Files of listed rows that are not to be tried again yet: a row that equals one
                in uri, hash, length and lastmod is left out of the slices, and of the numbers of
                what is to be done. A deletion never rests.
            into: A folder for the files of the answer; it is empty.
            rows: The most rows of a slice.
        """

    def merge(
        self,
        parts: Sequence[tuple[TablePart, str]],
        done: Sequence[str],
        *,
        into: str,
        stem: str,
        rows: int,
    ) -> list[tuple[TablePart, str]]:
        """Make the next table: the last one, with what is done in place of what it had of a URI.

        Where a URI is in several files, the later file counts, and of one file the later row. A
        part that nothing of what is done falls into is taken over as it is, except that a small one
        (less than half of ``rows``) becomes one with a neighbour that is written anew. What lies
        between two parts falls into the one before. New parts have at most ``rows`` and a half.

        Args:
            parts: The last table, with where its files are.
            done: Files of ``DoneRow``, those done later last.
            into: Folder of new parts.
            stem: Prefix of the names of new parts; never used before.
            rows: About how many rows a part has.

        Returns:
            The next table, in order.
        """
