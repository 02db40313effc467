"""A small OAI-PMH provider on a real loopback port, with the faults of real ones to switch on.

It is driven directly: ``provider.put(Item(...))``, ``provider.remove(...)``; files are served too.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, quoteattr

from tests.support.accounts.oai_metadata import FORMATS, Bitstream, Item, address, metadata
from tests.support.servers.tiny_source import Answer, Asked, TinySource

__all__ = ["Bitstream", "Item", "Provider", "Quirks", "changed", "providing"]

OAI: Final = "http://www.openarchives.org/OAI/2.0/"
BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Quirks:
    page: int = 20
    granularity: str = "YYYY-MM-DDThh:mm:ssZ"
    deletions: str = "persistent"
    earliest: str = "2020-01-01T00:00:00Z"
    complete_size: str = ""
    """``completeListSize`` in place of the right one."""
    dying_tokens: list[int] = field(default_factory=list)
    """Pages (counted in each list) whose token is refused, each once."""
    busy: list[float] = field(default_factory=list)
    """Seconds of ``Retry-After`` of the next answers, which are 503."""
    truncated: list[int] = field(default_factory=list)
    """Requests for records, counted from 0, that are cut in the middle."""
    always_truncated: bool = False
    circles: bool = False
    """The last page has the token of the page before it, for ever."""
    silent_tokens: bool = False
    """A token that died is answered as if there were no records."""
    empty: str = ""
    """A format without any record."""
    endless: bool = False
    """The last page comes again and again, each time with another token."""
    same_token: bool = False
    """All pages of a list have one token; the server counts."""
    empty_token: bool = True
    """The last page has a ``resumptionToken`` that is empty."""
    twice: bool = False
    """Each page begins with the last record of the page before it."""
    ignores_from: bool = False
    refuses_seconds: bool = False
    empty_pages: bool = False
    down: bool = False
    junk_before: bytes = b""
    junk_after: bytes = b""
    doctype: str = ""
    namespace: str = "repo.example"


Listed = tuple[str, datetime, Item | None]


class Provider:
    def __init__(self, quirks: Quirks | None = None) -> None:
        self.quirks = quirks or Quirks()
        self.lock = threading.RLock()
        self.items: dict[str, tuple[datetime, Item | None]] = {}
        self.asked: list[dict[str, str]] = []
        self.now = BEGINNING
        self.url = ""
        self._refused: set[tuple[str, int]] = set()
        self._counters: dict[str, int] = {}
        self.lists = 0

    @property
    def base(self) -> str:
        return f"{self.url}/oai/request"

    def tick(self, seconds: float = 1) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now

    def put(self, item: Item, *, at: datetime | None = None) -> str:
        with self.lock:
            self.items[item.local] = (at or self.tick(), item)
        return f"oai:repo.example:{item.local}"

    def remove(self, local: str) -> None:
        with self.lock:
            if self.quirks.deletions == "no":
                del self.items[local]
            else:
                self.items[local] = (self.tick(), None)

    def answer(self, arguments: dict[str, str]) -> bytes:
        with self.lock:
            self.asked.append(arguments)
            verb = arguments.get("verb", "")
            make = {
                "Identify": self._identify,
                "ListMetadataFormats": self._formats,
                "ListSets": self._sets,
                "ListRecords": self.records,
            }.get(verb)
            inner = make(arguments) if make else _error("badVerb", verb)
            moment = f"{self.now:%Y-%m-%dT%H:%M:%SZ}"
            body = (
                f'<?xml version="1.0" encoding="UTF-8"?>\n{self.quirks.doctype}'
                f'<OAI-PMH xmlns="{OAI}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
                f"<responseDate>{moment}</responseDate>"
                f"<request>{self.base}</request>{inner}</OAI-PMH>\n"
            )
            raw = body.encode("utf-8", "surrogateescape")
            if verb == "ListRecords":
                number, self.lists = self.lists, self.lists + 1
                if self.quirks.always_truncated or number in self.quirks.truncated:
                    raw = raw[: len(raw) * 2 // 3]
            return self.quirks.junk_before + raw + self.quirks.junk_after

    def _identify(self, _arguments: dict[str, str]) -> str:
        quirks = self.quirks
        return (
            "<Identify><repositoryName>Test</repositoryName>"
            f"<baseURL>{self.base}</baseURL><protocolVersion>2.0</protocolVersion>"
            f"<earliestDatestamp>{quirks.earliest}</earliestDatestamp>"
            f"<deletedRecord>{quirks.deletions}</deletedRecord>"
            f"<granularity>{quirks.granularity}</granularity>"
            '<description><oai-identifier xmlns="http://www.openarchives.org/OAI/2.0/oai-identifier">'
            f"<scheme>oai</scheme><repositoryIdentifier>{quirks.namespace}</repositoryIdentifier>"
            "</oai-identifier></description></Identify>"
        )

    def _formats(self, _arguments: dict[str, str]) -> str:
        rows = "".join(
            f"<metadataFormat><metadataPrefix>{prefix}</metadataPrefix>"
            f"<schema>{namespace}schema.xsd</schema>"
            f"<metadataNamespace>{namespace}</metadataNamespace></metadataFormat>"
            for prefix, namespace in FORMATS.items()
        )
        return f"<ListMetadataFormats>{rows}</ListMetadataFormats>"

    def _sets(self, _arguments: dict[str, str]) -> str:
        specs = sorted({spec for _, item in self.items.values() if item for spec in item.sets})
        rows = "".join(
            f"<set><setSpec>{spec}</setSpec><setName>{spec}</setName></set>" for spec in specs
        )
        return f"<ListSets>{rows}</ListSets>"

    def records(self, arguments: dict[str, str]) -> str:
        quirks = self.quirks
        token = arguments.get("resumptionToken", "")
        at = 0
        if token:
            prefix, spec, begin, end, told = token.split("|")
            at = self._place(token, int(told))
            if at in quirks.dying_tokens:
                quirks.dying_tokens.remove(at)
                silent = quirks.silent_tokens
                return _error("noRecordsMatch" if silent else "badResumptionToken", "expired")
        else:
            prefix, spec = arguments["metadataPrefix"], arguments.get("set", "")
            begin, end = arguments.get("from", ""), arguments.get("until", "")
            if quirks.refuses_seconds and "T" in begin + end:
                return _error("badArgument", "from is not of the granularity")
            self._counters.clear()
        found = self._found(spec, "" if quirks.ignores_from else begin, end)
        if not found or prefix == quirks.empty:
            return _error("noRecordsMatch", "")
        rows, is_more = self._rows(found, at)
        listed = "".join(self.record(prefix, *row) for row in rows)
        tail = self._tail(f"{prefix}|{spec}|{begin}|{end}", at, len(found), is_more=is_more)
        return f"<ListRecords>{listed}{tail}</ListRecords>"

    def _rows(self, found: list[Listed], at: int) -> tuple[list[Listed], bool]:
        size = self.quirks.page
        if self.quirks.empty_pages:
            rows = [] if at % 2 else found[at // 2 * size : (at // 2 + 1) * size]
            return rows, at < 2 * (len(found) // size + 1)
        if self.quirks.endless:
            return found[min(at * size, len(found) - 1) :][:size], True
        first = at * size
        begin = max(0, first - 1) if self.quirks.twice else first
        return found[begin : first + size], first + size < len(found)

    def _tail(self, arguments: str, at: int, count: int, *, is_more: bool) -> str:
        quirks = self.quirks
        size = quirks.complete_size or str(count)
        if not is_more and not quirks.circles:
            return f'<resumptionToken completeListSize="{size}"/>' if quirks.empty_token else ""
        number = 0 if quirks.same_token else at + 1 if is_more else at
        return (
            f'<resumptionToken completeListSize="{size}" cursor="{at * quirks.page}">'
            f"{escape(arguments)}|{number}</resumptionToken>"
        )

    def _place(self, token: str, number: int) -> int:
        if not self.quirks.same_token:
            return number
        self._counters[token] = self._counters.get(token, 0) + 1
        return self._counters[token]

    def _found(self, spec: str, begin: str, end: str) -> list[Listed]:
        def within(moment: datetime) -> bool:
            told = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
            return (not begin or told[: len(begin)] >= begin) and (
                not end or told[: len(end)] <= end
            )

        return [
            (local, moment, item)
            for local, (moment, item) in self.items.items()
            if within(moment) and (not spec or item is None or spec in item.sets)
        ]

    def record(self, prefix: str, local: str, moment: datetime, item: Item | None) -> str:
        form = "%Y-%m-%d" if self.quirks.granularity == "YYYY-MM-DD" else "%Y-%m-%dT%H:%M:%SZ"
        sets = "".join(f"<setSpec>{spec}</setSpec>" for spec in (item.sets if item else ()))
        status = "" if item else ' status="deleted"'
        header = (
            f"<header{status}><identifier>oai:repo.example:{escape(local)}</identifier>"
            f"<datestamp>{moment:{form}}</datestamp>{sets}</header>"
        )
        if item is None:
            return f"<record>{header}</record>"
        return f"<record>{header}<metadata>{metadata(prefix, item, self.url)}</metadata></record>"

    def file(self, path: str) -> tuple[int, bytes, str, str]:
        with self.lock:
            local = unquote(path.removeprefix("/bitstream/").rpartition("/")[0])
            _, item = self.items.get(local, (None, None))
            for bitstream in item.bitstreams if item else ():
                if urlsplit(address(self.url, local, bitstream)).path == path:
                    return bitstream.status, bitstream.body, bitstream.media_type, bitstream.links
        return 404, b"", "text/plain", ""


def changed(provider: Provider, local: str, **what: Any) -> None:
    _, item = provider.items[local]
    assert item is not None
    provider.put(replace(item, **what))


def _error(code: str, text: str) -> str:
    return f"<error code={quoteattr(code)}>{escape(text)}</error>"


@contextmanager
def providing(provider: Provider) -> Iterator[Provider]:
    def respond(asked: Asked) -> Answer:
        parts = urlsplit(asked.target)
        if parts.path == "/oai/request":
            fields = {key: values[0] for key, values in parse_qs(parts.query).items()}
            kind = {"Content-Type": "text/xml; charset=utf-8"}
            return Answer(body=provider.answer(fields), headers=kind)
        status, body, media_type, links = provider.file(parts.path)
        more = {"Link": links} if links else {}
        return Answer(body=body, status=status, headers={"Content-Type": media_type, **more})

    with TinySource(respond) as server:
        provider.url = server.url
        yield provider
