"""Sitemaps as sites write them: the same two pages in each form that is read."""

import codecs
import gzip

import msgspec

from resourcesync.model.vocabulary import SITEMAP_NS

URI = "https://site.example/sitemap.xml"
"""The address of each of these sitemaps."""
PAGES = ("https://site.example/a.html", "https://site.example/b.html")
DAY = "2024-05-06"
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def urlset(
    *entries: str, declaration: str = DECLARATION, attributes: str = f' xmlns="{SITEMAP_NS}"'
) -> bytes:
    return f"{declaration}<urlset{attributes}>\n{''.join(entries)}</urlset>\n".encode()


def entry(loc: str, lastmod: str = DAY, more: str = "") -> str:
    return f"<url><loc>{loc}</loc><lastmod>{lastmod}</lastmod>{more}</url>\n"


BOTH = tuple(map(entry, PAGES))
CANONICAL = urlset(*BOTH)
TEXT = "".join(f"{page}\n" for page in PAGES)
ALTERNATE = '<x:link rel="alternate" hreflang="de" href="https://site.example/de/a.html"/>'


class WrittenSitemap(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # its row in the page about the forms
    data: bytes
    uri: str = URI
    has_times: bool = True  # true if it lists the day of both pages


def rss(*items: str) -> bytes:
    body = "".join(f"<item><title>A page</title>{item}</item>\n" for item in items)
    start = '<rss version="2.0"><channel><title>News</title><link>https://site.example/</link>'
    return f"{DECLARATION}{start}\n{body}</channel></rss>\n".encode()


def atom(*entries: str, namespace: str = "http://www.w3.org/2005/Atom") -> bytes:
    body = "".join(f"<entry><title>A page</title>{item}</entry>\n" for item in entries)
    start = f'<feed xmlns="{namespace}"><link href="https://site.example/"/>'
    return f"{DECLARATION}{start}\n{body}</feed>\n".encode()


def with_lastmod(lastmod: str) -> bytes:
    return urlset(*(entry(page, lastmod) for page in PAGES))


_RSS_ITEMS = (
    f"<link>{page}</link><pubDate>Mon, 06 May 2024 00:00:00 GMT</pubDate>" for page in PAGES
)
_ATOM_ENTRIES = (f'<link href="{page}"/><updated>{DAY}T00:00:00Z</updated>' for page in PAGES)
_OLD_ENTRIES = (
    f'<link rel="alternate" href="{page}"/><modified>{DAY}T00:00:00Z</modified>' for page in PAGES
)
_LATE = f"\n \ufeff<!-- made by a plug-in -->\n{CANONICAL.decode()}".encode()

FORMS = (
    WrittenSitemap(name="the protocol", data=CANONICAL),
    WrittenSitemap(name="gzip, whatever its name", data=gzip.compress(CANONICAL)),
    WrittenSitemap(name="a byte order mark", data=codecs.BOM_UTF8 + CANONICAL),
    WrittenSitemap(name="UTF-16 with a byte order mark", data=CANONICAL.decode().encode("utf-16")),
    WrittenSitemap(name="blanks, marks or comments before the declaration", data=_LATE),
    WrittenSitemap(name="no namespace", data=urlset(*BOTH, attributes="")),
    WrittenSitemap(
        name="an old namespace",
        data=urlset(*BOTH, attributes=' xmlns="http://www.google.com/schemas/sitemap/0.84"'),
    ),
    WrittenSitemap(name="a wrong namespace", data=urlset(*BOTH, attributes=' xmlns="urn:any"')),
    WrittenSitemap(
        name="xhtml:link alternates",
        data=urlset(
            *(entry(page, more=ALTERNATE) for page in PAGES),
            attributes=f' xmlns="{SITEMAP_NS}" xmlns:x="http://www.w3.org/1999/xhtml"',
        ),
    ),
    WrittenSitemap(name="lastmod with blanks", data=with_lastmod(f" {DAY}\n ")),
    WrittenSitemap(name="lastmod without a zone", data=with_lastmod(f"{DAY}T00:00:00")),
    WrittenSitemap(name="lastmod as in mail", data=with_lastmod("Mon, 06 May 2024 00:00:00 GMT")),
    WrittenSitemap(name="lastmod as in a database", data=with_lastmod(f"{DAY} 00:00:00 +0000")),
    WrittenSitemap(name="lastmod with slashes or single digits", data=with_lastmod("2024/5/6")),
    WrittenSitemap(name="lastmod that is none", data=with_lastmod("soon"), has_times=False),
    WrittenSitemap(
        name="addresses that are relative", data=urlset(entry("/a.html"), entry("b.html"))
    ),
    WrittenSitemap(
        name="addresses without a scheme",
        data=urlset(entry("site.example/a.html"), entry("site.example/b.html")),
    ),
    WrittenSitemap(name="a text", data=TEXT.encode(), has_times=False),
    WrittenSitemap(
        name="a text without a last line end",
        data=TEXT.strip().replace("\n", "\r\n\r\n ").encode("utf-8-sig"),
        has_times=False,
    ),
    WrittenSitemap(name="RSS 2.0", data=rss(*_RSS_ITEMS)),
    WrittenSitemap(name="Atom 1.0", data=atom(*_ATOM_ENTRIES)),
    WrittenSitemap(name="Atom 0.3", data=atom(*_OLD_ENTRIES, namespace="http://purl.org/atom/ns#")),
)
