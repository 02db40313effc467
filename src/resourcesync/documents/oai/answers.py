"""Answers of OAI-PMH providers: bytes in, records out, one at a time (OAI-PMH 2.0 §3.2).

Reading is liberal, as it is for lists: a fault of one record costs that record, even where it makes
the whole answer ill-formed. An answer that stops before its end raises, so no list is ever shorter
than its provider wrote it.
"""

import pyexpat
import re
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO, Final, final

from resourcesync.documents._expat import CUT_SHORT
from resourcesync.documents._limits import Limits
from resourcesync.documents._octets import document_blocks
from resourcesync.documents.oai._salvaging import salvage_records
from resourcesync.documents.oai._scanning import ResponseLimits, ResponseScanner
from resourcesync.documents.oai.values import (
    ListToken,
    MetadataFormat,
    OaiFault,
    OaiRecord,
    ProviderIdentity,
)
from resourcesync.errors import MalformedDocumentError, TruncatedDocumentError

__all__ = ["OaiResponse", "ResponseLimits"]

_USUAL: Final = ResponseLimits()
_HTML: Final = re.compile(rb"\s*<(!doctype\s+)?html\b", re.IGNORECASE)
_JUNK_AFTER: Final = 9
"""expat's code for something behind the root: warnings of the program that wrote the answer."""


@final
class OaiResponse:
    """One answer. Take the records first: all else is known when there are no more of them.

    Args:
        stream: The bytes; it can be sought, and stays open.
        uri: Its address, for messages.
        limits: What it may cost at most.
    """

    def __init__(self, stream: BinaryIO, *, uri: str, limits: ResponseLimits = _USUAL) -> None:
        self._stream, self._uri, self._limits = stream, uri, limits
        self._scan = ResponseScanner(uri, limits)

    def records(self) -> Iterator[OaiRecord]:
        """Yield the records, those that cannot be used too, each once.

        Raises:
            NotAListError: It is no answer of a provider, such as a page of HTML (``not-oai``).
            TruncatedDocumentError: It stops before its end.
            MalformedDocumentError: It is not well-formed around the records; or it has a DOCTYPE.
            DocumentLimitError: It is over a limit.
        """
        scan, start = self._scan, self._stream.tell()
        try:
            for block in self._blocks():
                scan.feed(block)
                while scan.records:
                    yield scan.records.popleft()
                if scan.is_over:
                    break
            scan.feed(b"", is_last=True)
        except pyexpat.ExpatError as error:
            while scan.records:
                yield scan.records.popleft()
            if scan.is_over and error.code == _JUNK_AFTER:
                return
            if not scan.is_begun:
                self._check_html(start)
            yield from self._rest(error, start)

    def read(self) -> "OaiResponse":
        """Read it to its end, for what is no record; return itself.

        Raises:
            DocumentError: As `records` does.
        """
        for _ in self.records():
            pass
        return self

    @property
    def response_date(self) -> str:
        """The provider's time, as written."""
        return self._scan.response_date

    @property
    def verb(self) -> str:
        """What it is an answer to; empty when it only has errors."""
        return self._scan.verb

    @property
    def faults(self) -> tuple[OaiFault, ...]:
        """The errors that the provider tells of."""
        return tuple(self._scan.faults)

    @property
    def token(self) -> ListToken | None:
        """Where the list goes on; ``None`` at its end."""
        return self._scan.token

    @property
    def identity(self) -> ProviderIdentity:
        """What the provider says of itself, if it was asked."""
        return self._scan.identity_of()

    @property
    def formats(self) -> tuple[MetadataFormat, ...]:
        """The forms of metadata that it lists."""
        return tuple(self._scan.formats)

    @property
    def sets(self) -> tuple[str, ...]:
        """``setSpec`` of the sets that it lists."""
        return tuple(self._scan.sets)

    def _blocks(self) -> Iterator[bytes]:
        found = document_blocks(
            self._stream, limits=Limits(bytes=self._limits.bytes), uri=self._uri
        )
        first = next(found, b"").lstrip()  # blanks of a program stand before the declaration
        return chain((first,), found)

    def _check_html(self, start: int) -> None:
        """Say that it is a page, if it is one that is no XML, as those for maintenance."""
        self._stream.seek(start)
        if _HTML.match(next(self._blocks(), b"")):
            raise self._scan.not_an_answer("a page of HTML")

    def _rest(self, error: pyexpat.ExpatError, start: int) -> Iterator[OaiRecord]:
        """Yield the records behind those that were read before something was not well-formed."""
        if self._scan.verb in ("ListRecords", "GetRecord"):
            self._stream.seek(start)
            whole = b"".join(self._blocks())
            before, tail = self._scan, ResponseScanner(self._uri, self._limits)
            done = yield from salvage_records(whole, before, tail)
            if done:
                self._scan = tail
                tail.response_date = tail.response_date or before.response_date
                return
        if error.code in CUT_SHORT:
            raise TruncatedDocumentError(
                "the answer stops before its end", uri=self._uri, line=error.lineno
            )
        raise MalformedDocumentError(
            f"the answer is not well-formed: {pyexpat.ErrorString(error.code)}",
            uri=self._uri,
            line=error.lineno,
            column=error.offset + 1,
        )
