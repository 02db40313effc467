"""A good Source of several documents, and for each rule between them an edit that breaks it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from resourcesync.validator.cross_document import judge_together
from resourcesync.validator.examination import Examination
from resourcesync.validator.rule import RuleFinding
from resourcesync.validator.summaries import DocumentSummary
from tests.support.rules.documents import ABOUT, BASE, SD, UP, index, part, url, urlset

WELL_KNOWN: Final = f"{BASE}.well-known/resourcesync"
FROM: Final = 'from="2026-03-01T00:00:00Z"'
UNTIL: Final = 'until="2026-03-02T00:00:00Z"'
AT: Final = 'at="2026-03-01T00:00:00Z"'


def back(name: str) -> str:
    return f'<rs:ln rel="index" href="{BASE}{name}"/>'


def change(name: str, day: int) -> str:
    return url(name, f'<rs:md change="created" datetime="2026-03-0{day}T01:00:00Z"/>')


def resource(name: str) -> str:
    return url(name, '<rs:md length="1"/>')


SOURCE: Final[Mapping[str, str]] = {
    WELL_KNOWN: SD,
    f"{BASE}cap.xml": urlset(
        f'<rs:ln rel="up" href="{WELL_KNOWN}"/>',
        ABOUT,
        '<rs:md capability="capabilitylist"/>',
        url("rl.xml", '<rs:md capability="resourcelist"/>'),
        url("ch.xml", '<rs:md capability="changelist"/>'),
        url("rd.xml", '<rs:md capability="resourcedump"/>'),
        url("cd.xml", '<rs:md capability="changedump"/>'),
    ),
    f"{BASE}rl.xml": index(
        UP,
        f'<rs:md capability="resourcelist" {AT} completed="2026-03-01T00:10:00Z"/>',
        part("rl1.xml", f"<rs:md {AT}/>"),
        part("rl2.xml", f"<rs:md {AT}/>"),
    ),
    f"{BASE}rl1.xml": urlset(
        UP, back("rl.xml"), f'<rs:md capability="resourcelist" {AT}/>', resource("a")
    ),
    f"{BASE}rl2.xml": urlset(
        UP, back("rl.xml"), f'<rs:md capability="resourcelist" {AT}/>', resource("b")
    ),
    f"{BASE}ch.xml": index(
        UP,
        f'<rs:ln rel="archives" href="{BASE}old.xml"/>',
        f'<rs:md capability="changelist" {FROM}/>',
        part("ch1.xml", f"<rs:md {FROM} {UNTIL}/>"),
        part("ch2.xml", '<rs:md from="2026-03-02T00:00:00Z"/>'),
    ),
    f"{BASE}ch1.xml": urlset(
        UP, back("ch.xml"), f'<rs:md capability="changelist" {FROM} {UNTIL}/>', change("a", 1)
    ),
    f"{BASE}ch2.xml": urlset(
        UP,
        back("ch.xml"),
        '<rs:md capability="changelist" from="2026-03-02T00:00:00Z"/>',
        change("b", 2),
    ),
    f"{BASE}old.xml": urlset(UP, '<rs:md capability="changelist-archive"/>'),
    f"{BASE}rd.xml": index(
        UP, f'<rs:md capability="resourcedump" {AT}/>', part("rd1.xml", f"<rs:md {AT}/>")
    ),
    f"{BASE}rd1.xml": urlset(
        UP,
        back("rd.xml"),
        f'<rs:md capability="resourcedump" {AT}/>',
        url("rd1.zip", '<rs:md type="application/zip" length="1"/>'),
    ),
    f"{BASE}rd1.zip/manifest.xml": urlset(
        UP,
        f'<rs:md capability="resourcedump-manifest" {AT}/>',
        url("a", '<rs:md type="text/html" path="/a"/>'),
        url("b", '<rs:md type="text/html" path="/b"/>'),
    ),
    f"{BASE}cd.xml": index(
        UP, f'<rs:md capability="changedump" {FROM}/>', part("cd1.xml", f"<rs:md {FROM} {UNTIL}/>")
    ),
    f"{BASE}cd1.xml": urlset(
        UP,
        back("cd.xml"),
        f'<rs:md capability="changedump" {FROM} {UNTIL}/>',
        url("cd1.zip", f'<rs:md type="application/zip" length="1" {FROM} {UNTIL}/>'),
    ),
    f"{BASE}cd1.zip/manifest.xml": urlset(
        UP,
        f'<rs:md capability="changedump-manifest" {FROM} {UNTIL}/>',
        url(
            "a",
            '<rs:md change="created" datetime="2026-03-01T01:00:00Z" type="text/html" path="/a"/>',
        ),
    ),
}


def summarize(uri: str, text: str) -> DocumentSummary:
    examination = Examination([text.encode()], uri=uri)
    for _finding in examination:
        pass
    return examination.summary


def judged(source: Mapping[str, str]) -> list[RuleFinding]:
    return list(judge_together([summarize(*item) for item in source.items()], whole_source=True))


@dataclass(frozen=True, kw_only=True)
class Edit:
    rule: str  # the rule that is broken
    uri: str  # the document that is changed
    old: str = ""  # is replaced once by `new`; without it the document is replaced or left out
    new: str = ""
    at: str = ""  # the document that the finding is told of; the changed one if empty

    def applied(self) -> dict[str, str]:
        source = dict(SOURCE)
        if self.old:
            assert self.old in source[self.uri], (self.rule, self.old)
            source[self.uri] = source[self.uri].replace(self.old, self.new, 1)
        elif self.new:
            source[self.uri] = self.new
        else:
            del source[self.uri]
        return source


def edit(rule: str, name: str, old: str = "", new: str = "", at: str = "") -> Edit:
    told = "" if not at else BASE + at
    return Edit(rule=rule, uri=BASE + name, old=old, new=new, at=told)


_DESCRIPTION: Final = urlset(ABOUT, '<rs:md capability="description"/>')
_CHANGES: Final = urlset(UP, f'<rs:md capability="changelist" {FROM}/>')

EDITS: Final = [
    edit(
        "G08",
        "cap.xml",
        'rl.xml</loc><rs:md capability="resourcelist"',
        'rl.xml</loc><rs:md capability="resourcelist-archive"',
    ),
    edit("G21", "rl.xml", "rl2.xml", "ch.xml"),
    edit("G43", "rl1.xml", UP, UP.replace("cap.xml", "rl1.xml")),
    edit("SD09", ".well-known/resourcesync", at="cap.xml"),
    edit("SD10", "sd2.xml", new=_DESCRIPTION),
    edit(
        "SD11",
        ".well-known/resourcesync",
        "</urlset>",
        url("cap.xml", '<rs:md capability="capabilitylist"/>') + "</urlset>",
    ),
    edit("CA08", "rl.xml", "e.example/cap.xml", "e.example/cap2.xml", at="cap.xml"),
    edit("CA09", "rd1.zip/manifest.xml", "e.example/b", "e.example/c", at="rl2.xml"),
    edit("RL03", "rl1.xml", back("rl.xml")),
    edit("RI04", "rl.xml", f"<rs:md {AT}/>", '<rs:md at="2026-03-01T00:01:00Z"/>'),
    edit("RI05", "rl1.xml", "e.example/rl.xml", "e.example/rl9.xml"),
    edit("RI06", "rl2.xml", "e.example/b", "e.example/a"),
    edit("RD01b", "rd1.xml", back("rd.xml")),
    edit("CH02b", "ch1.xml", back("ch.xml")),
    edit("CI04", "ch.xml", f" {UNTIL}", ""),
    edit("CI07", "ch.xml", f"<rs:md {FROM}", '<rs:md from="2026-03-01T00:30:00Z"'),
    edit("CI09", "ch9.xml", new=_CHANGES),
    edit("CD01b", "cd1.xml", back("cd.xml")),
    edit("CM06", "cd1.zip/manifest.xml", 'change="created"', 'change="updated"'),
    edit("AR05", "ch.xml", "old.xml", "rl.xml"),
    edit("G08", "cd.xml", "cd1.xml", "rl1.xml"),
    edit("G08", ".well-known/resourcesync", "cap.xml", "rl1.xml"),
    edit("SD11", "cap.xml", "well-known/resourcesync", "sd.xml", at=".well-known/resourcesync"),
    edit("RI04", "rl1.xml", AT, 'at="2026-02-28T00:00:00Z"', at="rl.xml"),
    edit("RI04", "rl1.xml", AT, f'{AT} completed="2026-03-01T00:11:00Z"', at="rl.xml"),
    edit("RI05", "rl.xml", "rl2.xml", "rd1.xml"),
    edit("CI04", "ch1.xml", f" {UNTIL}", "", at="ch.xml"),
    edit("CI07", "ch1.xml", UNTIL, 'until="2026-03-02T01:00:00Z"', at="ch.xml"),
    edit("CH02b", "ch1.xml", "e.example/ch.xml", "e.example/ch9.xml"),
    edit("G43", "cap.xml", f'<rs:ln rel="up" href="{WELL_KNOWN}"/>', at="rl.xml"),
    edit("CM06", "ch1.xml", "e.example/a", "e.example/z", at="cd1.zip/manifest.xml"),
]
