"""A world whose Source links its entries to other things."""

from html import escape
from pathlib import Path
from typing import Any

from tests.support.sources.scripted_source import sha256
from tests.support.worlds.loose_source import LooseSource, Style
from tests.support.worlds.loose_world import LooseWorld
from tests.support.worlds.memory_fetcher import Answer
from tests.support.worlds.world import BASE

PATCH = "http://www.openarchives.org/rs/terms/patch"


class LinkingSource(LooseSource):
    """Writes links into its entries.

    Attributes:
        links: By URI, into all entries of a resource.
        patches: By URI, into the next change of a resource.
    """

    def __init__(self, base: str, style: Style) -> None:
        super().__init__(base, style)
        self.links: dict[str, str] = {}
        self.patches: dict[str, str] = {}

    def entry(
        self,
        uri: str,
        data: bytes | None,
        lastmod: int | None,
        *,
        change: str = "",
        moment: int = 0,
    ) -> str:
        entry = super().entry(uri, data, lastmod, change=change, moment=moment)
        links = self.links.get(uri, "") if data is not None else ""
        if change == "updated":
            links += self.patches.pop(uri, "")
        return entry.replace("</url>", f"{links}</url>")


class LinkingWorld(LooseWorld):
    """A world whose Source links its entries to other things."""

    source: LinkingSource

    def __init__(self, folder: Path, **style: Any) -> None:
        super().__init__(folder)
        self.source = LinkingSource(f"{BASE}resourcesync/", Style(**style))

    def link(self, name: str, *links: str) -> None:
        """Let all entries of a resource have these links."""
        self.source.links[BASE + name] = "".join(links)

    def patch(self, name: str, media_type: str, body: bytes, more: str | None = None) -> str:
        """Let the next change of a resource have a patch; return where it is."""
        uri = f"{BASE}patches/{name}"
        self.answers[uri] = Answer(body=body)
        facts = f' hash="{sha256(body)}" length="{len(body)}"' if more is None else more
        self.source.patches[BASE + name] = link(PATCH, uri, f' type="{media_type}"{facts}')
        return uri


def link(rel: str, href: str, more: str = "") -> str:
    """Return a link."""
    return f'<rs:ln rel="{rel}" href="{escape(href)}"{more}/>'
