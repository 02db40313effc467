"""Faults that are put into sound documents, one at a time, where chance has it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

_MD: Final = r"(<(?:url|sitemap)>(?:(?!</url>|</sitemap>).)*?<rs:md\b)"
_URL_MD: Final = r"(<url>(?:(?!</url>).)*<rs:md)"
_ENTRY: Final = r"<url>(?:(?!</url>).)*</url>"
_OF_RESOURCES: Final = ("resourcelist", "resourcedump", "resourcedump-manifest")
_OF_CHANGES: Final = ("changelist", "changedump", "changedump-manifest")
_TIME: Final = "2026-03-01T00:00:00Z"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault, and the rule that it breaks.

    Attributes:
        rule: The rule; several where it depends on the kind of the document.
        old: What is replaced, as a pattern.
        new: What is there instead.
        kinds: The capabilities of the documents that may have it; empty for all.
    """

    rule: tuple[str, ...]
    old: str
    new: str
    kinds: tuple[str, ...] = ()


def _fault(rule: str, old: str, new: str, *kinds: str) -> Fault:
    return Fault(rule=tuple(rule.split()), old=old, new=new, kinds=kinds)


FAULTS: Final = (
    _fault("G01", r"</(loc|url|sitemap)>", ""),
    _fault("G01", r"(<(?:urlset|sitemapindex)\b)", r"<!DOCTYPE x>\1"),
    _fault("G01", r'(\s[a-z]+=)("[^"<&]*")(?=\s*/>)', r"\1\2\1\2"),
    _fault("G01", r'(<rs:(?:md|ln)\b[^>]*?=)"([^"]*)"', r"\1\2"),
    _fault("G02", r"http://www\.sitemaps\.org/schemas/sitemap/0\.9", "http://www.sitemaps.org/"),
    _fault("G03", r"<url>((?:(?!</url>).)*)</url>", r"<sitemap>\1</sitemap>"),
    _fault("G05", r"(<rs:md\b[^>]*capability[^>]*/>)(?=\s*<(?:url|sitemap)>)", r"\1\1"),
    _fault("G06", r'(?<=<rs:md)( [^>]*?)?\s+capability="[^"]*"(?=[^>]*>\s*<url>)', r"\1"),
    _fault("G07", r'capability="[^"]*"(?=[^>]*>\s*<(?:url|sitemap)>)', 'capability="list"'),
    _fault("G09", r'(<rs:md\b[^>]*?\s)(length="[^"]*")', r"\1rs:\2"),
    _fault("G10", r'(<rs:md\b[^>]*?\s)length=("[^"]*")', r"\1size=\2"),
    _fault("G10", r'(<rs:md\b[^>]*?\s)hash=("[^"]*")', r"\1digest=\2"),
    _fault("G11", r"<(url|sitemap)>", r'<\1 id="a">'),
    _fault("G12", r"<loc>[^<]*</loc>", ""),
    _fault("G12", r"(<loc>[^<]*</loc>)", r"\1\1"),
    _fault("G12", r"<loc>[^<]*</loc>", "<loc></loc>"),
    _fault("G13a", r"<loc>https?://[^/<]*/", "<loc>/"),
    _fault("G13a", r"<loc>https?://", "<loc>"),
    _fault("G13b", r"</loc>", "#part</loc>"),
    _fault("G14", r"(<lastmod>[^<]*</lastmod>)", r"\1\1"),
    _fault("G15", _MD, r"\1/><rs:md"),
    _fault("G16", r"<changefreq>[^<]*<", "<changefreq>often<"),
    _fault("G17", r"<lastmod>[^<]*<", "<lastmod>yesterday<"),
    _fault("G17", r"(<lastmod>[^<]*)Z<", r"\1<"),
    _fault("G17", r"<lastmod>(\d{4})-\d\d-", r"<lastmod>\1-13-"),
    _fault("G17", r'(\s(?:at|from|datetime)=")[^"]*Z"', r'\g<1>01.03.2026"'),
    _fault("G17", r'(\s(?:at|from|datetime)="[^"]*)Z"', r'\1"'),
    _fault("G18", r"(<lastmod>[^<]*)T[^<]*<", r"\1<"),
    _fault("G22", r"(<loc>[^<]*</loc>)(\s*)(<lastmod>[^<]*</lastmod>)", r"\3\2\1"),
    _fault("G22", r'((?:<rs:ln[^>]*rel="up"[^>]*/>))(.*)(</(?:urlset|sitemapindex)>)', r"\2\1\3"),
    _fault("G23", r'(<rs:ln\b[^>]*?)\shref="[^"]*"', r"\1"),
    _fault("G23", r'(<url>(?:(?!</url>).)*<rs:ln\b[^>]*?)\srel="[^"]*"', r"\1"),
    _fault("G24", r'rel="(?:duplicate|alternate|collection)"', 'rel="like"'),
    _fault("G25", r'pri="[^"]*"', 'pri="0"'),
    _fault("G25", r'pri="[^"]*"', 'pri="high"'),
    _fault("G26", r'length="[^"]*"', 'length="-1"'),
    _fault("G26", r'length="[^"]*"', 'length="10 KB"'),
    _fault("G26", r'length="[^"]*"', 'length=""'),
    _fault("G27", r'hash="[a-z0-9-]+:', 'hash="'),
    _fault("G28", r'(hash="[^"]*)[0-9a-f]"', r'\1"'),
    _fault("G28", r'(hash="[a-z0-9-]+:)[0-9a-f]', r"\1x"),
    _fault("G29", r'hash="([^" ]*)', r'hash="\1 \1'),
    _fault("G30", r'type="[a-z]+/', 'type="'),
    _fault("G31 RL06", _URL_MD, r'\1 path="/a"', "resourcelist", "changelist"),
    _fault("G32 RL06", _URL_MD, r'\1 change="created"', *_OF_RESOURCES),
    _fault("G33", r'change="(?:created|updated|deleted)"', 'change="modified"'),
    _fault("G34 RL06", _URL_MD, rf'\1 datetime="{_TIME}"', *_OF_RESOURCES),
    _fault("G35 RL06", _MD, r'\1 capability="resourcelist"', *_OF_RESOURCES, *_OF_CHANGES),
    _fault("G36", _MD, rf'\1 modified="{_TIME}"'),
    _fault("G37", r"(<rs:md)(?=[^>]*capability)", rf'\1 at="{_TIME}"', *_OF_CHANGES),
    _fault("G38", r"(<rs:md)(?=[^>]*capability)", rf'\1 from="{_TIME}"', *_OF_RESOURCES),
    _fault("G40a", r'\sfrom="[^"]*"(?=[^>]*\suntil=[^>]*>\s*<url>)', "", *_OF_CHANGES),
    _fault("G40b", r'until="\d{4}(?=[^>]*>\s*<url>)', 'until="2001', *_OF_CHANGES),
    _fault("G41", r'(<rs:ln\b[^>]*rel="up")', r'\1 length="5"'),
    _fault("G42", r'(<rs:ln\b[^>]*rel="up"[^>]*/>)', r"\1\1"),
    _fault("RL01 RI01", r'(<rs:md\b[^>]*?)\sat="[^"]*"(?=[^>]*capability)', r"\1", "resourcelist"),
    _fault("RL01 RI01", r'\sat="[^"]*"(?=[^>]*>\s*<(?:url|sitemap)>)', "", "resourcelist"),
    _fault("RL02 RI02", r'<rs:ln\b[^>]*rel="up"[^>]*/>', "", "resourcelist"),
    _fault("CH01", r'\sfrom="[^"]*"(?=[^>/]*/>\s*<url>)', "", "changelist"),
    _fault("CH02a CI01", r'<rs:ln\b[^>]*rel="up"[^>]*/>', "", "changelist"),
    _fault("CH03", r'\schange="[^"]*"', "", "changelist"),
    _fault("CH05", rf"({_ENTRY})(\s*)({_ENTRY})(\s*</urlset>)", r"\3\2\1\4", "changelist"),
    _fault("CH06", r'datetime="\d{4}', 'datetime="2001', "changelist"),
    _fault("CH09", r'\sdatetime="[^"]*"', "", "changelist"),
    _fault("RM04", r'\spath="[^"]*"', "", "resourcedump-manifest"),
    _fault("RM05a", r'path="/', 'path="', "resourcedump-manifest", "changedump-manifest"),
    _fault("CM02", r'\schange="[^"]*"', "", "changedump-manifest"),
    _fault("CA01 CA02", r'<rs:ln\b[^>]*rel="up"[^>]*/>', "", "capabilitylist"),
    _fault("RD01a", r'(<rs:md\b[^>]*?)\sat="[^"]*"(?=[^>]*>\s*<url>)', r"\1", "resourcedump"),
)


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A document with one fault.

    Attributes:
        name: The fault and the document.
        rules: The rule that it breaks, or those of which it breaks one.
        text: The document.
        sound: The document without it.
    """

    name: str
    rules: tuple[str, ...]
    text: str
    sound: str


def mutations(sound: Mapping[str, str], *, seed: int, each: int) -> Iterator[Mutation]:
    """Put each fault into some of the documents that may have it, at a place by chance."""
    for number, fault in enumerate(FAULTS):
        dice = Random(f"{seed}, {number}")
        pattern = re.compile(fault.old, re.DOTALL)
        able = [name for name, text in sound.items() if _may_have(fault, pattern, text)]
        for name in dice.sample(able, min(each, len(able))):
            found = dice.choice(list(pattern.finditer(sound[name])))
            start, end = found.span()
            text = sound[name][:start] + found.expand(fault.new) + sound[name][end:]
            label = f"{'-or-'.join(fault.rule)}-{number}-{name}"
            yield Mutation(name=label, rules=fault.rule, text=text, sound=sound[name])


def _may_have(fault: Fault, pattern: re.Pattern[str], text: str) -> bool:
    capability = re.search(r'capability="([^"]*)"', text)
    kind = capability[1] if capability else ""
    return (not fault.kinds or kind in fault.kinds) and pattern.search(text) is not None
