"""A site with a sitemap index, whose resources are asked for one by one."""

from collections.abc import Iterator
from contextlib import contextmanager
from xml.sax.saxutils import escape

from resourcesync.errors import SourceUnavailableError
from resourcesync.ports import FetchRequest
from tests.support.worlds.network import Answer, MemoryFetcher

HOME = "https://site.example/"
_OPEN = '<?xml version="1.0"?>\n<{} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def urlset(*entries: tuple[str, str]) -> bytes:
    """Return a sitemap of URIs, each with its lastmod, or with none."""
    made = (
        f"<url><loc>{escape(uri)}</loc>{f'<lastmod>{moment}</lastmod>' if moment else ''}</url>"
        for uri, moment in entries
    )
    return (_OPEN.format("urlset") + "\n".join(made) + "</urlset>").encode()


def index(*parts: str) -> bytes:
    """Return a sitemap index."""
    made = (f"<sitemap><loc>{escape(uri)}</loc></sitemap>" for uri in parts)
    return (_OPEN.format("sitemapindex") + "\n".join(made) + "</sitemapindex>").encode()


class MappedSite:
    """Pages by name, and what lists them, so many in each sitemap.

    Attributes:
        pages: The bytes of each page.
        dates: Its lastmod; empty for none.
        failing: After how many more answers it fails; ``None``: not.
    """

    size = 20

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.dates: dict[str, str] = {}
        self.failing: int | None = None
        self.fetcher = MemoryFetcher(self._serve)

    @contextmanager
    def fails(self, after: int) -> Iterator[None]:
        """Let it fail after some answers."""
        self.failing = after
        yield
        self.failing = None

    def _serve(self, request: FetchRequest) -> Answer | Exception:
        if self.failing is not None:
            if not self.failing:
                return SourceUnavailableError("it does not answer", uri=request.uri)
            self.failing -= 1
        name = request.uri.removeprefix(HOME)
        names = sorted(self.pages)
        groups = [names[at : at + self.size] for at in range(0, max(1, len(names)), self.size)]
        if name == "sitemap.xml":
            return Answer(
                body=index(*(f"{HOME}maps/{number}.xml" for number in range(len(groups))))
            )
        if name.startswith("maps/"):
            group = groups[int(name[5:-4])]
            return Answer(body=urlset(*((HOME + name, self.dates.get(name, "")) for name in group)))
        body = self.pages.get(name)
        return Answer(status=404) if body is None else Answer(body=body)
