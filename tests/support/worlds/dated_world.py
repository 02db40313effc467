"""A Source behind a server of plain files, which dates what it serves in whole seconds."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path

from resourcesync.ports import FetchRequest
from tests.support.worlds.memory_fetcher import Answer
from tests.support.worlds.site_maps import urlset
from tests.support.worlds.world import BASE, World

SITEMAP = BASE + "sitemap.xml"


class DatedWorld(World):
    """A World whose server answers with ``Last-Modified`` and ``Date``, and without ``ETag``.

    Attributes:
        tag: The ``ETag`` of each answer, with ``{}`` for the second of the last change.
        date: The ``Date`` of each answer; ``None`` for the present moment.
        ahead: How far the server's clock is ahead of ours.
        age: The ``Age`` of each answer.
        dates: The ``Date`` of answers from some addresses.
        sitemap: Pages and their ``lastmod``, for a Source that has only a plain sitemap.
        statuses: What became of each request for a page since the last pull began.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.tag = ""
        self.date: str | None = None
        self.ahead = timedelta()
        self.age = "0"
        self.dates: dict[str, datetime] = {}
        self.sitemap: dict[str, str] = {}
        self.statuses: list[tuple[str, int]] = []
        self._changed: dict[str, tuple[bytes, datetime]] = {}

    def edit(self, name: str, content: str) -> None:
        """Write a page now."""
        self.put(name, content)
        self.see(BASE + name)

    def see(self, uri: str) -> Answer:
        """Date a file that differs from what it was as written now."""
        answer = self.honest(uri)
        body, _ = self._changed.get(uri, (None, None))
        if body != answer.body:
            self._changed[uri] = answer.body, self.clock.now() + self.ahead
        return answer

    def serve(self, request: FetchRequest) -> Answer | Exception:
        name = request.uri.removeprefix(BASE)
        override = self.answers.get(request.uri)
        if isinstance(override, Exception):
            return override
        answer = self._answer(request)
        if name in self.sitemap:
            self.statuses.append((name, answer.status))
        return answer

    def honest(self, uri: str) -> Answer:
        if uri == SITEMAP and self.sitemap:
            return Answer(body=urlset(*((BASE + name, of) for name, of in self.sitemap.items())))
        return super().honest(uri)

    def pages_asked(self) -> list[tuple[str, int]]:
        """Pull; return the pages that were requested, and the status of each answer."""
        self.statuses.clear()
        self.pull()
        return sorted(self.statuses)

    def _answer(self, request: FetchRequest) -> Answer:
        answer = self.see(request.uri)
        if answer.status != 200:
            return answer
        changed = self._changed[request.uri][1].replace(microsecond=0)
        now = self.dates.get(request.uri, self.clock.now() + self.ahead)
        date = _stamp(now) if self.date is None else self.date
        tag = self.tag.format(int(changed.timestamp()))
        answer.headers |= {"last-modified": _stamp(changed), "etag": tag}
        if date:
            answer.headers |= {"date": date, "age": self.age}
        since = request.last_modified
        if request.etag:
            same = bool(tag) and request.etag == tag
        else:
            same = bool(since) and parsedate_to_datetime(since) >= changed
        return Answer(status=304, headers=answer.headers) if same else answer


def _stamp(moment: datetime) -> str:
    return format_datetime(moment.astimezone(UTC).replace(microsecond=0), usegmt=True)
