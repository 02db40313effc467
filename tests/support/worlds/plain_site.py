"""A site with one sitemap, as a static generator writes it: pages without hashes."""

from resourcesync.ports import FetchRequest
from tests.support.in_memory import ManualClock
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.site_maps import urlset


class PlainSite:
    """Pages that its sitemap lists, whether the server has them or not."""

    entry = f"{BASE}sitemap.xml"

    def __init__(self, pages: dict[str, str], *, date: str = "") -> None:
        self.clock = ManualClock()
        # the `lastmod` of each listed page, by its name; empty for none
        self.dates = dict.fromkeys(pages, date)
        # the bytes of each page that the server has
        self.pages = {name: text.encode() for name, text in pages.items()}

    def contents(self) -> dict[str, bytes]:
        """Return the listed pages that the server has, by URI."""
        return {BASE + name: body for name, body in self.pages.items() if name in self.dates}

    def serve(self, request: FetchRequest) -> Answer | Exception:
        name = request.uri.removeprefix(BASE)
        if name == "sitemap.xml":
            entries = ((BASE + page, date) for page, date in sorted(self.dates.items()))
            return Answer(body=urlset(*entries))
        body = self.pages.get(name)
        return Answer(status=404) if body is None else Answer(body=body)
