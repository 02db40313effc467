"""Documents, rule codes and Sources that are judged, for the tests of the validator."""

import re
from pathlib import Path

from resourcesync.adapters.system import SystemClock
from resourcesync.app.validation import new_validator
from resourcesync.ports import CancelToken
from resourcesync.settings.mirror import Network
from resourcesync.validator.results import ValidationEvent, ValidationOptions
from resourcesync.validator.rule import RULES, RuleFinding
from tests.support.commands.command_line import FILES
from tests.support.servers.tiny_source import TinySource

OPEN = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:rs="http://www.openarchives.org/rs/terms/">\n'
)
UP = '<rs:ln rel="up" href="http://h.example/capabilitylist.xml"/>\n'
CHANGES = (
    OPEN
    + UP
    + '<rs:md capability="changelist" from="2026-11-20T00:00:00Z"/>\n'
    + "<url>\n <loc>http://h.example/b</loc>\n"
    + ' <rs:md change="updated" datetime="2026-11-20T11:04:09Z"/>\n</url>\n'
    + "<url>\n <loc>http://h.example/a</loc>\n"
    + ' <rs:md change="updated" datetime="2026-11-20T10:58:00Z"/>\n</url>\n</urlset>\n'
)
"""Two changes in the wrong order."""


def code(rule: str) -> str:
    return RULES[rule].code


def codes(text: str) -> list[str]:
    return re.findall(r"^\S+: (RS\d+) ", text, re.MULTILINE)


def write(name: str, text: str) -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return name


def offer(source: TinySource) -> None:
    source.offer(FILES)
    entries = [source.entry(target, body) for target, body in FILES.items()]
    described = f'<rs:ln rel="describedby" href="{source.url}/about.html"/>'
    up = f'<rs:ln rel="up" href="{source.url}/%s"/>'
    pointer = f'<rs:md capability="capabilitylist"/>{described}'
    source.put_document(
        "/.well-known/resourcesync",
        f'{described}<rs:md capability="description"/>',
        [f"<url><loc>{source.url}/capabilitylist.xml</loc>{pointer}</url>"],
    )
    source.put_document(
        "/capabilitylist.xml",
        f'{up % ".well-known/resourcesync"}{described}<rs:md capability="capabilitylist"/>',
        [source.pointer("/resourcelist.xml", "resourcelist")],
    )
    source.put_document(
        "/resourcelist.xml",
        f'{up % "capabilitylist.xml"}<rs:md capability="resourcelist" at="2026-01-02T00:00:00Z"/>',
        entries,
    )


def judged(target: str, **how: object) -> list[ValidationEvent]:
    judge = new_validator(
        ValidationOptions(**how),  # type: ignore[arg-type]  # its fields
        network=Network(allow_origins=(target,), retries=0),
        cancel=CancelToken(SystemClock()),
    )
    return list(judge.judge(target))


def broken(events: list[ValidationEvent], *rules: str) -> list[tuple[str, str]]:
    found = [event for event in events if isinstance(event, RuleFinding)]
    return [(finding.rule.id, finding.uri) for finding in found if finding.rule.id in rules]
