"""A site with a plain sitemap whose dates do not move when its pages do."""

from typing import Final, Literal

from resourcesync.ports import FetchRequest
from tests.support.in_memory import ManualClock
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.site_maps import urlset

SITEMAP: Final = f"{BASE}sitemap.xml"
HOUR: Final = 3_600
DAY: Final = 24 * HOUR


class FrozenSite:
    """Pages in memory, each with the date of the day when it was made first."""

    entry = SITEMAP

    def __init__(self, pages: int, validators: Literal["etag", ""] = "etag") -> None:
        self.clock = ManualClock()
        self.pages = {f"{number:04}.html": b"page as it was made" for number in range(pages)}
        self.dates = dict.fromkeys(self.pages, "2024-01-01")
        self.validators = validators
        self.lies = False
        self.answers: list[tuple[str, int]] = []

    def edit(self, *names: str) -> None:
        """Change pages, and no date."""
        for name in names:
            self.pages[name] += b", edited"

    def build(self) -> None:
        """Change all pages, as a new theme does, and no date."""
        self.edit(*self.pages)

    def contents(self) -> dict[str, bytes]:
        return {BASE + name: body for name, body in self.pages.items()}

    def asked(self) -> list[str]:
        """Return the names of the pages requested since the last call."""
        names = [name for name, _ in self.answers]
        self.answers.clear()
        return names

    def serve(self, request: FetchRequest) -> Answer:
        if request.uri == SITEMAP:
            entries = ((BASE + name, self.dates[name]) for name in self.pages)
            return Answer(body=urlset(*entries))
        name = request.uri.removeprefix(BASE)
        body = self.pages.get(name)
        answer = Answer(status=404) if body is None else self._page(request, body)
        self.answers.append((name, answer.status))
        return answer

    def _page(self, request: FetchRequest, body: bytes) -> Answer:
        if not self.validators:
            return Answer(body=body, headers={"etag": ""})
        tag = f'"{len(body)}"'
        is_same = request.etag == tag or (self.lies and request.etag != "")
        return Answer(status=304 if is_same else 200, body=body, headers={"etag": tag})
