"""One good document of each kind: no rule finds anything in it, and one edit breaks one rule."""

from typing import Final

NS: Final = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
    'xmlns:rs="http://www.openarchives.org/rs/terms/"'
)
BASE: Final = "https://e.example/"
SHA: Final = "sha-256:" + "0123456789abcdef" * 4
UP: Final = '<rs:ln rel="up" href="https://e.example/cap.xml"/>'
ABOUT: Final = '<rs:ln rel="describedby" href="https://e.example/about.html"/>'


def urlset(*lines: str) -> str:
    return "\n".join((f"<urlset {NS}>", *lines, "</urlset>"))


def index(*lines: str) -> str:
    return "\n".join((f"<sitemapindex {NS}>", *lines, "</sitemapindex>"))


def url(name: str, *parts: str) -> str:
    return f"<url><loc>{BASE}{name}</loc>{''.join(parts)}</url>"


def part(name: str, *parts: str) -> str:
    return f"<sitemap><loc>{BASE}{name}</loc>{''.join(parts)}</sitemap>"


SD: Final = urlset(
    ABOUT,
    '<rs:md capability="description"/>',
    url("cap.xml", '<rs:md capability="capabilitylist"/>', ABOUT),
)
SDI: Final = index('<rs:md capability="description"/>', part("sd1.xml"), part("sd2.xml"))
CAP: Final = urlset(
    '<rs:ln rel="up" href="https://e.example/.well-known/resourcesync"/>',
    ABOUT,
    '<rs:md capability="capabilitylist"/>',
    url("rl.xml", '<rs:md capability="resourcelist"/>'),
    url("ch.xml", '<rs:md capability="changelist"/>'),
)
RL: Final = urlset(
    UP,
    '<rs:md capability="resourcelist" at="2026-03-01T00:00:00Z" completed="2026-03-01T00:10:00Z"/>',
    url(
        "a",
        "<lastmod>2026-02-01T00:00:00Z</lastmod><changefreq>daily</changefreq>",
        f'<rs:md hash="{SHA}" length="10" type="text/html"/>',
        '<rs:ln rel="duplicate" pri="1" href="https://m.example/a"/>',
        '<rs:ln rel="alternate" href="https://e.example/a.pdf" type="application/pdf"/>',
        '<rs:ln rel="memento" href="https://e.example/v1/a" modified="2026-02-01T00:00:00Z"/>',
        '<rs:ln rel="timegate" href="https://e.example/gate/a"/>',
        '<rs:ln rel="via" href="https://o.example/a"/>',
        '<rs:ln rel="describedby" href="https://e.example/b"/>',
    ),
    url(
        "b",
        "<lastmod>2026-02-02T00:00:00Z</lastmod>",
        '<rs:ln rel="describes" href="https://e.example/a"/>',
        '<rs:ln rel="profile" href="http://purl.org/dc/terms/"/>',
        '<rs:ln rel="via" href="https://o.example/b"/>',
    ),
)
RLI: Final = index(
    UP,
    '<rs:md capability="resourcelist" at="2026-03-01T00:00:00Z" completed="2026-03-01T00:10:00Z"/>',
    part("rl1.xml", '<rs:md at="2026-03-01T00:00:00Z" completed="2026-03-01T00:05:00Z"/>'),
    part("rl2.xml", '<rs:md at="2026-03-01T00:05:00Z" completed="2026-03-01T00:10:00Z"/>'),
)
RD: Final = urlset(
    UP,
    '<rs:md capability="resourcedump" at="2026-03-01T00:00:00Z" completed="2026-03-01T00:10:00Z"/>',
    url(
        "rd1.zip",
        '<rs:md type="application/zip" length="10" at="2026-03-01T00:00:00Z"/>',
        '<rs:ln rel="contents" href="https://e.example/rd1-manifest.xml"/>',
    ),
    url("rd2.zip", '<rs:md type="application/zip" length="10"/>'),
)
RDI: Final = index(
    UP, '<rs:md capability="resourcedump" at="2026-03-01T00:00:00Z"/>', part("rd1.xml")
)
RDM: Final = urlset(
    UP,
    '<rs:md capability="resourcedump-manifest" at="2026-03-01T00:00:00Z"/>',
    url("a", '<rs:md type="text/html" path="/a.html"/>'),
)
CH: Final = urlset(
    UP,
    '<rs:md capability="changelist" from="2026-03-01T00:00:00Z" until="2026-03-02T00:00:00Z"/>',
    url("a", '<rs:md change="created" datetime="2026-03-01T01:00:00Z" length="10"/>'),
    url(
        "a",
        '<rs:md change="updated" datetime="2026-03-01T02:00:00Z"/>',
        '<rs:ln rel="http://www.openarchives.org/rs/terms/patch" href="https://e.example/p" '
        'type="application/json-patch+json"/>',
    ),
    url("c", '<rs:md change="deleted" datetime="2026-03-01T03:00:00Z"/>'),
)
CH_1_0: Final = urlset(
    UP,
    '<rs:md capability="changelist" from="2026-03-01T00:00:00Z"/>',
    url("a", "<lastmod>2026-03-01T01:00:00Z</lastmod>", '<rs:md change="created"/>'),
    url("a", "<lastmod>2026-03-01T02:00:00Z</lastmod>", '<rs:md change="updated"/>'),
)
CHI: Final = index(
    UP,
    '<rs:md capability="changelist" from="2026-03-01T00:00:00Z"/>',
    part("ch1.xml", '<rs:md from="2026-03-01T00:00:00Z" until="2026-03-02T00:00:00Z"/>'),
    part("ch2.xml", '<rs:md from="2026-03-02T00:00:00Z" until="2026-03-03T00:00:00Z"/>'),
    part("ch3.xml", '<rs:md from="2026-03-03T00:00:00Z"/>'),
)
CD: Final = urlset(
    UP,
    '<rs:md capability="changedump" from="2026-03-01T00:00:00Z"/>',
    url(
        "cd1.zip",
        '<rs:md type="application/zip" length="1" from="2026-03-01T00:00:00Z" '
        'until="2026-03-02T00:00:00Z"/>',
    ),
    url(
        "cd2.zip",
        '<rs:md type="application/zip" length="2" from="2026-03-02T00:00:00Z" '
        'until="2026-03-03T00:00:00Z"/>',
    ),
)
CDI: Final = index(
    UP,
    '<rs:md capability="changedump" from="2026-03-01T00:00:00Z"/>',
    part("cd1.xml", '<rs:md from="2026-03-01T00:00:00Z" until="2026-03-02T00:00:00Z"/>'),
    part("cd2.xml", '<rs:md from="2026-03-02T00:00:00Z"/>'),
)
CDM: Final = urlset(
    UP,
    '<rs:md capability="changedump-manifest" from="2026-03-01T00:00:00Z" '
    'until="2026-03-02T00:00:00Z"/>',
    url(
        "a",
        '<rs:md change="updated" datetime="2026-03-01T01:00:00Z" type="text/html" path="/a.html"/>',
        '<rs:ln rel="http://www.openarchives.org/rs/terms/patch" href="https://e.example/p" '
        'type="application/json-patch+json" path="/a.patch"/>',
    ),
    url("b", '<rs:md change="deleted" datetime="2026-03-01T02:00:00Z"/>'),
)
RL_ARCHIVE: Final = urlset(
    UP,
    '<rs:md capability="resourcelist-archive"/>',
    url("old1.xml", '<rs:md at="2026-01-01T00:00:00Z"/>'),
    url("old2.xml", '<rs:md at="2026-02-01T00:00:00Z"/>'),
)
CH_ARCHIVE: Final = urlset(
    UP,
    '<rs:md capability="changelist-archive"/>',
    url("old1.xml", '<rs:md from="2026-01-01T00:00:00Z" until="2026-02-01T00:00:00Z"/>'),
)
NT: Final = urlset(
    UP,
    '<rs:md capability="change-notification"/>',
    url("a", '<rs:md change="updated" datetime="2026-03-01T01:00:00Z"/>'),
)
FN: Final = urlset(
    UP,
    '<rs:md capability="framework-notification"/>',
    url("rl.xml", '<rs:md capability="resourcelist" change="updated"/>'),
)
PLAIN: Final = urlset(url("a", "<changefreq>daily</changefreq>"))
GOOD: Final = {
    "SD": SD,
    "SDI": SDI,
    "CAP": CAP,
    "RL": RL,
    "RLI": RLI,
    "RD": RD,
    "RDI": RDI,
    "RDM": RDM,
    "CH": CH,
    "CHI": CHI,
    "CD": CD,
    "CDI": CDI,
    "CDM": CDM,
    "RL_ARCHIVE": RL_ARCHIVE,
    "CH_ARCHIVE": CH_ARCHIVE,
    "NT": NT,
    "FN": FN,
}
