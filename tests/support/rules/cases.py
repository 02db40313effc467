"""For every rule that one document can break: an edit that breaks it and nothing else."""

from dataclasses import dataclass, replace
from typing import Final

from resourcesync.model.settings import RuleProfile
from tests.support.rules.documents import (
    CAP,
    CD,
    CDI,
    CDM,
    CH,
    CH_1_0,
    CH_ARCHIVE,
    CHI,
    NT,
    PLAIN,
    RD,
    RDI,
    RDM,
    RL,
    RL_ARCHIVE,
    RLI,
    SD,
    SDI,
    SHA,
    UP,
)


@dataclass(frozen=True, kw_only=True)
class Case:
    rule: str  # the rule that is broken
    good: str  # the document that keeps it, with no finding at all
    broken: str  # the document that breaks it
    also: frozenset[str] = frozenset()  # rules that it cannot help breaking too
    shown: str = ""  # the text that the finding points at, when that is worth a check
    profile: RuleProfile = "rs-1.1"
    uri: str = "https://e.example/list.xml"


def case(rule: str, good: str, old: str, new: str, *also: str, shown: str = "") -> Case:
    assert old in good, f"{rule}: {old} is not in the good document"
    return Case(
        rule=rule, good=good, broken=good.replace(old, new, 1), also=frozenset(also), shown=shown
    )


def in_1_0(rule: str, old: str, new: str, *also: str) -> Case:
    return replace(case(rule, CH_1_0, old, new, *also), profile="rs-1.0")


SITEMAPS: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
LOC_A: Final = "<loc>https://e.example/a</loc>"
LOC: Final = "<loc>https://e.example/b</loc>"
LASTMOD: Final = "<lastmod>2026-02-02T00:00:00Z</lastmod>"
DELETED: Final = 'change="deleted" datetime="2026-03-01T03:00:00Z"'
PATCH: Final = (
    '<rs:ln rel="http://www.openarchives.org/rs/terms/patch" href="https://e.example/p" '
    'type="text/x-diff"/>'
)

GENERAL: Final = [
    case("G01", RL, "</url>", ""),
    case("G01", RL, "<urlset", "<!DOCTYPE urlset>\n<urlset"),
    case("G01", RL, "https://m.example/a", "https://m.example/?a&b"),
    case("G02", RL, SITEMAPS, "https://www.sitemaps.org/schemas/sitemap/0.9"),
    case("G03", RL, f"<url>{LOC}", f"<sitemap>{LOC}</sitemap><url>{LOC}"),
    case(
        "G04",
        RL,
        'href="https://o.example/b"',
        'href="https://o.example/b" xmlns:rs="http://www.openarchives.org/rs/"',
    ),
    case("G05", SD, "\n<url>", '<rs:md capability="description"/>\n<url>'),
    case("G06", SD, ' capability="description"', ""),
    case("G07", CAP, 'md capability="capabilitylist"', 'md capability="inventories"'),
    case("G09", CH, ' length="10"', ' rs:length="10"', shown="10"),
    case("G10", CH, ' length="10"', ' size="10"', shown="10"),
    case("G11", RL, "<url>", '<url id="a">'),
    case("G12", RDM, LOC_A, ""),
    case("G12", RDM, LOC_A, LOC_A + LOC),
    case("G13a", RDM, LOC_A, "<loc>/b</loc>", shown="/b"),
    case("G13a", RDM, LOC_A, f"<loc>https://e.example/{'b' * 2_048}</loc>"),
    case("G13b", RDM, LOC_A, "<loc>https://e.example/c#d</loc>"),
    case("G14", RL, LASTMOD, LASTMOD + LASTMOD),
    case("G15", RDM, "<rs:md type", "<rs:md/><rs:md type", "RM04", "RM08"),
    case("G16", RL, ">daily<", ">often<", shown="often"),
    case("G17", RL, LASTMOD, "<lastmod>yesterday</lastmod>", shown="yesterday"),
    case("G17", CH, "2026-03-01T03:00:00Z", "2026-03-01T03:00:00", shown="2026-03-01T03:00:00"),
    case("G18", RL, LASTMOD, "<lastmod>2026-02-02</lastmod>", shown="2026-02-02"),
    Case(
        rule="G19",
        good=PLAIN,
        broken=PLAIN.replace("</urlset>", f"<url>{LOC}</url>" * 50_000 + "</urlset>"),
        profile="sitemap",
    ),
    case("G22", RL, f"{LOC}{LASTMOD}", f"{LASTMOD}{LOC}"),
    case("G22", SD, "</urlset>", '<rs:ln rel="license" href="https://e.example/l"/></urlset>'),
    case("G23", RL, ' href="https://o.example/b"', ""),
    case("G24", RL, 'rel="profile"', 'rel="schema"', "LK10", shown="schema"),
    case("G25", RL, 'pri="1"', 'pri="0"', shown="0"),
    case("G26", CH, 'length="10"', 'length="10 KB"', shown="10 KB"),
    case("G27", RL, SHA, "abcdef", shown="abcdef"),
    case("G28", RL, SHA, SHA[:-1]),
    case("G29", RL, SHA, f"{SHA} {SHA}"),
    case("G30", RL, 'type="text/html"', 'type="html"', shown="html"),
    case("G31", CH, ' length="10"', ' path="/a"', shown="/a"),
    case("G32", RD, 'length="10" at', 'change="created" length="10" at', shown="created"),
    case("G33", CH, 'change="created"', 'change="Created"', shown="Created"),
    case("G34", RD, 'length="10" at', 'datetime="2026-03-01T00:00:00Z" length="10" at'),
    case("G35", CH, ' length="10"', ' capability="resourcelist"'),
    case("G36", CH, ' length="10"', ' modified="2026-03-01T00:00:00Z"'),
    case("G37", CH, ' from="', ' at="2026-03-01T00:00:00Z" from="'),
    case("G38", RL, ' at="', ' from="2026-03-01T00:00:00Z" at="'),
    case("G39a", RL_ARCHIVE, "<rs:md at=", "<rs:md completed=", "AR02"),
    case("G39b", RL, 'completed="2026-03-01T00:10', 'completed="2026-02-28T00:10'),
    case("G40a", CH_ARCHIVE, ' from="2026-01-01T00:00:00Z"', "", "AR02"),
    case("G40b", CHI, 'until="2026-03-03', 'until="2026-03-01', "CI06"),
    case("G41", SD, "about.html", 'about.html" length="5'),
    case("G42", RL, UP, UP + UP),
    case("G44", CH, UP, f'{UP}<rs:ln rel="resourcesync" href="https://e.example/cap.xml"/>'),
    case("G45", CH, ' length="10"', ' from="2026-03-01T00:00:00Z"'),
]

DESCRIPTIONS: Final = [
    replace(
        case("SD01", SD, '"description"', '"capabilitylist"', "CA01", "CA04"),
        uri="https://e.example/.well-known/resourcesync",
    ),
    case("SD02", SD, '<rs:ln rel="describedby" href="https://e.example/about.html"/>\n', "\n"),
    case("SD03", SD, "<rs:md", f"{UP}<rs:md"),
    case("SD04", SD, '"capabilitylist"', '"resourcelist"'),
    case("SD05", SD, '<rs:md capability="capabilitylist"/>', ""),
    case(
        "SD06", SD, '<rs:ln rel="describedby" href="https://e.example/about.html"/></url>', "</url>"
    ),
    case("SD07", SD, "</loc>", "</loc><lastmod>2026-03-01T00:00:00Z</lastmod>"),
    case(
        "SD12",
        CAP,
        'md capability="capabilitylist"',
        'md capability="capabilitylist" at="2026-03-01T00:00:00Z"',
    ),
    case("CA01", CAP, 'rel="up"', 'rel="license"'),
    case("CA02", CAP, 'rel="describedby"', 'rel="license"'),
    case("CA03", CAP, '<rs:md capability="changelist"/>', ""),
    case("CA04", CAP, '"changelist"', '"changedump-manifest"', shown="changedump-manifest"),
    case("CA05", CAP, '"changelist"', '"resourcelist"'),
    case("CA06", CAP, "</loc>", "</loc><lastmod>2026-03-01T00:00:00Z</lastmod>"),
    case(
        "CA07",
        SDI,
        '<rs:md capability="description"/>',
        f'{UP}<rs:md capability="capabilitylist"/>',
    ),
    Case(rule="CA10", good=CAP, broken=CAP[: CAP.index("<url>")] + "</urlset>"),
]

SNAPSHOTS: Final = [
    case("RL01", RL, ' at="2026-03-01T00:00:00Z" completed="2026-03-01T00:10:00Z"', ""),
    case("RL02", RL, UP, ""),
    case("RL04", RL, LOC, "<loc>https://e.example/a</loc>", "LK09"),
    case(
        "RL05", RL, LASTMOD, "<lastmod>2026-03-01T00:10:01Z</lastmod>", shown="2026-03-01T00:10:01Z"
    ),
    case("RL06", RL, f'<rs:md hash="{SHA}"', f'<rs:md change="created" hash="{SHA}"'),
    case("RL06", RL, f'<rs:md hash="{SHA}"', f'<rs:md at="2026-03-01T00:00:00Z" hash="{SHA}"'),
    case("RL07", RL, LASTMOD, ""),
    Case(
        rule="RL08",
        good=RLI,
        broken=RLI.replace("sitemapindex", "urlset").replace("sitemap>", "url>"),
        also=frozenset({"RL06", "RL07"}),
    ),
    case(
        "RI01",
        RLI,
        'resourcelist" at="2026-03-01T00:00:00Z" completed="2026-03-01T00:10:00Z"',
        'resourcelist"',
    ),
    case("RI02", RLI, UP, ""),
    case(
        "RI03",
        RLI,
        '<rs:md at="2026-03-01T00:00:00Z"',
        '<rs:md capability="resourcelist" at="2026-03-01T00:00:00Z"',
    ),
    case("RD01a", RD, UP, ""),
    case("RD01a", RD, ' at="2026-03-01T00:00:00Z" completed="2026-03-01T00:10:00Z"', ""),
    case("RD02", RD, 'type="application/zip" length="10" at', 'type="application/zip" at'),
    case("RD03", RD, 'type="application/zip" length="10"/', 'type="application/gzip" length="10"/'),
    case(
        "RD04a",
        RD,
        '<rs:ln rel="contents" href="https://e.example/rd1-manifest.xml"/>',
        '<rs:ln rel="contents" href="https://e.example/m"/>' * 2,
    ),
    case("RD05", RDI, UP, ""),
    case("RD05", RDI, ' at="2026-03-01T00:00:00Z"', ""),
    case("RD06", RD, 'length="10" at="2026-03-01', 'length="10" at="2026-03-02'),
    case("RM03", RDM, UP, ""),
    case("RM03", RDM, ' at="2026-03-01T00:00:00Z"', ""),
    case("RM04", RDM, ' path="/a.html"', ""),
    case("RM05a", RDM, "/a.html", "a.html", shown="a.html"),
    case("RM05a", RDM, "/a.html", "/a/"),
    case("RM05b", RDM, "/a.html", "/../a.html"),
    case("RM08", RDM, ' type="text/html"', ""),
    Case(
        rule="RM09",
        good=RDM,
        broken=RDM.replace("urlset", "sitemapindex")
        .replace("<url>", "<sitemap>")
        .replace("</url>", "</sitemap>"),
    ),
]

CHANGES: Final = [
    case("CH01", CH, ' from="2026-03-01T00:00:00Z" until="2026-03-02T00:00:00Z"', ""),
    case("CH02a", CH, UP, ""),
    case("CH03", CH, ' change="created"', ""),
    in_1_0("CH04", "<lastmod>2026-03-01T02:00:00Z</lastmod>", ""),
    case("CH05", CH, "2026-03-01T03", "2026-03-01T01", shown="2026-03-01T01:00:00Z"),
    in_1_0("CH05", "2026-03-01T02", "2026-03-01T00"),
    case("CH06", CH, "2026-03-01T03", "2026-03-03T03", shown="2026-03-03T03:00:00Z"),
    in_1_0("CH07", "2026-03-01T01", "2026-02-01T01"),
    in_1_0("CH08a", "2026-03-01T02", "2026-03-01T01"),
    case("CH08b", CH, "2026-03-01T02", "2026-03-01T01"),
    case("CH09", CH, ' datetime="2026-03-01T03:00:00Z"', ""),
    case("CH12", CH, 'change="created"', 'change="deleted"', "CH13"),
    case("CH13", CH, DELETED, f'{DELETED} type="text/html"', shown="text/html"),
    case("CI01", CHI, UP, ""),
    case("CI01", CHI, 'changelist" from="2026-03-01T00:00:00Z"', 'changelist"'),
    case("CI02", CHI, 'from="2026-03-03', 'from="2026-03-01', "CI06", shown="2026-03-01T00:00:00Z"),
    case("CI03", CHI, '<rs:md from="2026-03-03T00:00:00Z"/>', ""),
    case("CI05", CHI, ' until="2026-03-02T00:00:00Z"', ""),
    case("CI06", CHI, 'until="2026-03-02', 'until="2026-03-01', shown="2026-03-02T00:00:00Z"),
    case(
        "CI08",
        CHI,
        'changelist" from="2026-03-01T00:00:00Z"',
        'changelist" from="2026-03-01T00:00:00Z" until="2026-03-04T00:00:00Z"',
    ),
    case("CI08", CHI, 'changelist" from="2026-03-01', 'changelist" from="2026-03-02'),
    case("CD01a", CD, UP, ""),
    case("CD01a", CD, 'changedump" from="2026-03-01T00:00:00Z"', 'changedump"'),
    case(
        "CD02",
        CD,
        'length="1" from="2026-03-01T00:00:00Z" until="2026-03-02',
        'length="1" from="2026-03-03T00:00:00Z" until="2026-03-04',
    ),
    case("CD03", CD, ' length="1"', ""),
    case(
        "CD04",
        CD,
        ' length="1" from="2026-03-01T00:00:00Z" until="2026-03-02T00:00:00Z"',
        ' length="1"',
    ),
    case("CD05", CD, 'length="1" from="2026-03-01', 'length="1" from="2026-02-01'),
    case("CD06a", CDI, UP, ""),
    case("CD06a", CDI, 'changedump" from="2026-03-01T00:00:00Z"', 'changedump"'),
    case("CD06a", CDI, '<rs:md from="2026-03-02', '<rs:md from="2026-02-02'),
    case("CD06b", CDI, '<rs:md from="2026-03-02T00:00:00Z"/>', ""),
    case("CM01", CDM, UP, ""),
    case("CM01", CDM, ' from="2026-03-01T00:00:00Z" until="2026-03-02T00:00:00Z"', ""),
    case("CM02", CDM, 'change="updated" ', ""),
    case("CM03", CDM, ' path="/a.html"', ""),
    case("CM04", CDM, 'change="deleted"', 'change="deleted" path="/b"'),
    case("CM05", CDM, "2026-03-01T02", "2026-03-01T00"),
    case("CM07", CDM, ' path="/a.patch"', ""),
    case("NT01", NT, 'change="updated" ', ""),
    Case(rule="NT01", good=NT, broken=NT[: NT.index("<url>")] + "</urlset>"),
]

LINKS: Final = [
    case("LK01", CH, ' type="application/json-patch+json"', ""),
    case("LK02a", RL, '<rs:ln rel="duplicate"', f'{PATCH}<rs:ln rel="duplicate"'),
    case("LK02b", CH, f"{DELETED}/>", f"{DELETED}/>{PATCH}"),
    case("LK03", RL, 'pri="1"', 'pri="1" length="10"', shown="10"),
    case("LK04", RL, ' type="application/pdf"', ""),
    case(
        "LK05",
        RL,
        '<rs:ln rel="timegate"',
        '<rs:ln rel="memento" href="https://e.example/v2/a" modified="2026-02-01T00:00:00Z"/>'
        '<rs:ln rel="timegate"',
    ),
    case("LK06", RL, ' modified="2026-02-01T00:00:00Z"', ""),
    case("LK06", RL, 'modified="2026-02-01', 'modified="2026-01-01', shown="2026-01-01T00:00:00Z"),
    case(
        "LK07",
        RL,
        '<rs:ln rel="timegate"',
        '<rs:ln rel="timegate" type="text/html"',
        shown="text/html",
    ),
    case(
        "LK08",
        RL,
        '<rs:ln rel="via" href="https://o.example/b"/>',
        '<rs:ln rel="via" href="https://o.example/b"/><rs:ln rel="via" href="https://p.example/b"/>',
    ),
    case("LK09", RL, '<rs:ln rel="describedby" href="https://e.example/b"/>', ""),
    case("LK10", RL, '<rs:ln rel="profile" href="http://purl.org/dc/terms/"/>', ""),
    case("LK11", RL, "</url>", f"{UP}</url>"),
    case("AR01", RL_ARCHIVE, UP, ""),
    case("AR02", RL_ARCHIVE, '<rs:md at="2026-02-01T00:00:00Z"/>', ""),
    case("AR03", CH_ARCHIVE, ' until="2026-02-01T00:00:00Z"', ""),
    case("AR04", RL_ARCHIVE, 'at="2026-02-01', 'at="2025-02-01'),
    case("AG01b", RL, "https://o.example/b", "https://e.example/b"),
    case("AG01c", RL, '<rs:ln rel="via" href="https://o.example/b"/>', ""),
]

MORE: Final = [
    Case(rule="G02", good=RL, broken=RL.replace("urlset", "feed")),
    case("G03", RL, LASTMOD, f"{LASTMOD}<url/>"),
    case("G04", RL, "openarchives.org/rs/terms/", "openarchives.org/rs/", "G44"),
    case("G04", RL, "http://www.openarchives.org/rs/terms/", "http://resourcesync.org/ns/", "G44"),
    case("G04", SD, '<rs:md capability="capab', '<md capability="capab'),
    case("G12", RDM, LOC_A, "<loc/>"),
    case("G16", RD, "</loc>", "</loc><changefreq>daily</changefreq>"),
    case("G31", RL, 'rel="profile"', 'rel="profile" path="/b"', shown="/b"),
    case("G31", CH, 'href="https://e.example/p"', 'href="https://e.example/p" path="/p"'),
    case("G44", CH, "changelist", 'changelist" modified="2026-03-02T00:00:00Z', "G36"),
    case("G44", SD, '"description"', '"resourcesync"', "G07"),
    case("CA04", CAP, '"changelist"', '"inventories"', shown="inventories"),
    Case(
        rule="RD03",
        good=RD[: RD.index("<url><loc>https://e.example/rd2")] + "</urlset>",
        broken=RD[: RD.index("<url><loc>https://e.example/rd2")].replace("/zip", "/x-tar")
        + "</urlset>",
    ),
    case("LK11", RL, UP, f'{UP}<rs:ln rel="contents" href="https://e.example/m"/>'),
    case("LK11", RLI, UP, f'{UP}<rs:ln rel="index" href="https://e.example/i"/>'),
    case("LK11", RL, "</url>", '<rs:ln rel="contents" href="https://e.example/m"/></url>'),
    case("LK09", RL, '<rs:ln rel="describes" href="https://e.example/a"/>', ""),
    case("RD06", RD, 'length="10" at="2026-03-01', 'length="10" at="2026-02-01'),
    case("CH06", CH, "2026-03-01T01", "2026-02-01T01"),
]

LOCATIONS: Final = [
    Case(
        rule="SM01",
        good=PLAIN.replace("e.example/a", "E.example/lists/a"),
        broken=PLAIN,
        profile="sitemap",
        uri="https://e.example/lists/sitemap.xml",
        shown="https://e.example/a",
    )
]

CASES: Final = [*GENERAL, *MORE, *DESCRIPTIONS, *SNAPSHOTS, *CHANGES, *LINKS, *LOCATIONS]
