"""A Source behind a server of plain files, which dates what it serves in whole seconds."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime

from resourcesync.ports import FetchRequest
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.site_maps import urlset
from tests.support.worlds.world import World

SITEMAP = BASE + "sitemap.xml"


class DatedServer(PublishedSource):
    """Serves a Source of our own with ``Last-Modified`` and ``Date``, and without ``ETag``."""

    def __init__(self) -> None:
        super().__init__()
        self.tag = ""  # the `ETag` of each answer, with `{}` for the second of the last change
        self.date: str | None = None  # the `Date` of each answer; `None` for the present moment
        self.ahead = timedelta()  # how far the server's clock is ahead of ours
        # pages and their `lastmod`, for a Source that has only a plain sitemap
        self.sitemap: dict[str, str] = {}
        # what became of each request for a page since they were counted last
        self.statuses: list[tuple[str, int]] = []
        self._changed: dict[str, tuple[bytes, datetime]] = {}

    def edit(self, name: str, content: str) -> None:
        self.put(name, content)
        self.see(BASE + name)

    def see(self, uri: str) -> Answer:
        answer = self.honest(uri)
        body, _ = self._changed.get(uri, (None, None))
        if body != answer.body:
            self._changed[uri] = answer.body, self.clock.now() + self.ahead
        return answer

    def honest(self, uri: str) -> Answer:
        if uri == SITEMAP and self.sitemap:
            return Answer(body=urlset(*((BASE + name, of) for name, of in self.sitemap.items())))
        return super().honest(uri)

    def serve(self, request: FetchRequest) -> Answer | Exception:
        name = request.uri.removeprefix(BASE)
        answer = self._answer(request)
        if name in self.sitemap:
            self.statuses.append((name, answer.status))
        return answer

    def _answer(self, request: FetchRequest) -> Answer:
        answer = self.see(request.uri)
        if answer.status != 200:
            return answer
        changed = self._changed[request.uri][1].replace(microsecond=0)
        date = _stamp(self.clock.now() + self.ahead) if self.date is None else self.date
        tag = self.tag.format(int(changed.timestamp()))
        answer.headers |= {"last-modified": _stamp(changed), "etag": tag}
        if date:
            answer.headers["date"] = date
        since = request.last_modified
        if request.etag:
            same = bool(tag) and request.etag == tag
        else:
            same = bool(since) and parsedate_to_datetime(since) >= changed
        return Answer(status=304, headers=answer.headers) if same else answer


def pages_asked(world: World[DatedServer]) -> list[tuple[str, int]]:
    world.source.statuses.clear()
    world.pull()
    return sorted(world.source.statuses)


def _stamp(moment: datetime) -> str:
    return format_datetime(moment.astimezone(UTC).replace(microsecond=0), usegmt=True)
