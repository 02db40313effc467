"""What a Source publishes, read by another parser than ours, for the rules of the standard."""

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cache

from resourcesync.source.paging import PageLimits
from tests.support.sources.publishing import BASE, DOCUMENTS, Source

SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
TERMS = "{http://www.openarchives.org/rs/terms/}"
DESCRIPTION = BASE + ".well-known/resourcesync"


def _md(element: ET.Element) -> dict[str, str]:
    found = element.find(f"{TERMS}md")
    return {} if found is None else dict(found.attrib)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    element: ET.Element

    @property
    def loc(self) -> str:
        return self.element.findtext(f"{SITEMAP}loc") or ""

    @property
    def lastmod(self) -> str | None:
        return self.element.findtext(f"{SITEMAP}lastmod")

    @property
    def md(self) -> dict[str, str]:
        return _md(self.element)


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    uri: str
    content: bytes
    root: ET.Element

    @property
    def is_index(self) -> bool:
        return self.root.tag == f"{SITEMAP}sitemapindex"

    @property
    def md(self) -> dict[str, str]:
        return _md(self.root)

    @property
    def entries(self) -> list[Entry]:
        tag = f"{SITEMAP}sitemap" if self.is_index else f"{SITEMAP}url"
        return [Entry(element) for element in self.root.findall(tag)]

    def link(self, rel: str) -> str | None:
        found = [
            element.get("href")
            for element in self.root.findall(f"{TERMS}ln")
            if element.get("rel") == rel
        ]
        assert len(found) <= 1
        return found[0] if found else None


Site = dict[str, Published]
"""URI to document."""


def uri_of(name: str) -> str:
    return DESCRIPTION if name.startswith(".") else DOCUMENTS + name.removeprefix("resourcesync/")


def site_of(source: Source) -> Site:
    return {
        uri_of(name): Published(uri_of(name), content, ET.fromstring(content))
        for name, content in source.contents().items()
    }


def _live(limits: PageLimits) -> Source:
    """A Source with a history: creations, updates, deletions, in several rounds."""
    source = Source(limits=limits)
    source.put(*"abcdefgh", "odd%20name", "q?x=1&y=2")
    source.publish()
    for number in range(5):
        source.put(f"new{number}", "a", content=f"round {number}")
        source.remove("bcdef"[number])
        source.publish()
    return source


@cache
def small_site() -> Site:
    return site_of(_live(PageLimits()))


@cache
def large_site() -> Site:
    """Both lists have an index; the Change Lists are closed but for the last."""
    return site_of(_live(PageLimits(max_entries=4)))


def sites() -> tuple[Site, ...]:
    return small_site(), large_site()


def of(capability: str, *, index: bool = False) -> list[Published]:
    found = [
        published
        for site in sites()
        for published in site.values()
        if published.md["capability"] == capability and published.is_index is index
    ]
    assert found
    return found


def entries_of(capability: str) -> list[tuple[Published, Entry]]:
    found = [(published, entry) for published in of(capability) for entry in published.entries]
    assert found
    return found
