"""Plain sitemaps and their indexes."""

from xml.sax.saxutils import escape

_OPEN = '<?xml version="1.0"?>\n<{} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def urlset(*entries: tuple[str, str]) -> bytes:
    made = (
        f"<url><loc>{escape(uri)}</loc>{f'<lastmod>{moment}</lastmod>' if moment else ''}</url>"
        for uri, moment in entries
    )
    return (_OPEN.format("urlset") + "\n".join(made) + "</urlset>").encode()


def index(*parts: str) -> bytes:
    made = (f"<sitemap><loc>{escape(uri)}</loc></sitemap>" for uri in parts)
    return (_OPEN.format("sitemapindex") + "\n".join(made) + "</sitemapindex>").encode()
