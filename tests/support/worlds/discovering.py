"""A host that answers as told, and what discovery makes of it."""

from collections.abc import Iterable, Mapping
from io import BytesIO

from resourcesync.discovery.document_fetcher import DocumentFetcher
from resourcesync.discovery.resolver import discover, offered_sets
from resourcesync.discovery.sets import OfferedSet, SetChoice, SourceLists
from resourcesync.errors import SourceError
from tests.support.documents.written import written
from tests.support.worlds.network import Answer, MemoryFetcher

HOST = "http://h.example"
WELL_KNOWN = "/.well-known/resourcesync"
SITEMAP = (
    b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    b"<url><loc>http://h.example/page</loc></url></urlset>"
)
PAGE = b"<!DOCTYPE html><html lang=en><title>Welcome</title></html>"

Said = Mapping[str, Answer | bytes | str | SourceError]
"""What is at each path of the host, or at whole addresses elsewhere; all else is a 404."""


class Host:
    def __init__(self, said: Said) -> None:
        self._said = said
        self.fetcher = MemoryFetcher(lambda request: self._answer(request.uri))
        self.documents = DocumentFetcher(self.fetcher, BytesIO)

    def _answer(self, uri: str) -> Answer | SourceError:
        known = self._said.get(uri.removeprefix(HOST) or "/")
        if isinstance(known, str):
            known = known.encode()
        if isinstance(known, bytes):
            known = Answer(body=known)
        return known or Answer(status=404)

    @property
    def asked(self) -> list[str]:
        return [uri.removeprefix(HOST) or "/" for uri in self.fetcher.asked]

    def find(self, path: str = "", choice: SetChoice | None = None, *allowed: str) -> SourceLists:
        return discover(
            self.documents, f"{HOST}{path}", choice=choice or SetChoice(), allowed=allowed
        )

    def sets(self, path: str = "") -> tuple[OfferedSet, ...]:
        return offered_sets(self.documents, f"{HOST}{path}")


def listing(
    capability: str,
    *entries: tuple[str, str],
    links: Iterable[tuple[str, str]] = (),
    index: bool = False,
    about: str = "",
) -> bytes:
    root, entry = ("sitemapindex", "sitemap") if index else ("urlset", "url")
    head = f'<rs:md capability="{capability}"/>' if capability else ""
    head += "".join(f'<rs:ln rel="{rel}" href="{href}"/>' for rel, href in links)
    described = f'<rs:ln rel="describedby" href="{about}"/>' if about else ""
    body = ""
    for path, of in entries:
        told = f'<rs:md capability="{of}"/>' if of else ""
        place = path if "://" in path else f"{HOST}{path}"
        body += f"<{entry}><loc>{place}</loc>{told}{described}</{entry}>"
    return written(head, body, root).encode()


def capability_list(name: str = "") -> bytes:
    return listing("capabilitylist", (f"{name}/resourcelist.xml", "resourcelist"))
