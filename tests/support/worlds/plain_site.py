"""Sites with one sitemap, as a static generator writes it: pages without hashes."""

from typing import Final

from resourcesync.ports import FetchRequest
from tests.support.in_memory import ManualClock
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.site_maps import urlset

HOUR: Final = 3_600
DAY: Final = 24 * HOUR


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
        return {BASE + name: body for name, body in self.pages.items() if name in self.dates}

    def serve(self, request: FetchRequest) -> Answer | Exception:
        name = request.uri.removeprefix(BASE)
        if name == "sitemap.xml":
            entries = ((BASE + page, date) for page, date in sorted(self.dates.items()))
            return Answer(body=urlset(*entries))
        body = self.pages.get(name)
        return Answer(status=404) if body is None else Answer(body=body)


class FrozenSite(PlainSite):
    """Pages with the date of the day when they were made first, whatever becomes of them."""

    def __init__(self, pages: int, *, has_validators: bool = True) -> None:
        made = {f"{number:04}.html": "page as it was made" for number in range(pages)}
        super().__init__(made, date="2024-01-01")
        self.has_validators = has_validators
        self.answers: list[tuple[str, int]] = []

    def edit(self, *names: str) -> None:
        for name in names:
            self.pages[name] += b", edited"

    def asked(self) -> list[str]:
        names = [name for name, _ in self.answers]
        self.answers.clear()
        return names

    def serve(self, request: FetchRequest) -> Answer | Exception:
        answer = super().serve(request)
        if request.uri == self.entry or not isinstance(answer, Answer):
            return answer
        answer.headers["etag"] = f'"{len(answer.body)}"' if self.has_validators else ""
        if answer.status == 200 and request.etag and request.etag == answer.headers["etag"]:
            answer.status = 304
        self.answers.append((request.uri.removeprefix(BASE), answer.status))
        return answer
