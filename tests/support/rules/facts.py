"""For every rule of delivery and packages: facts that keep it, and facts that do not."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from resourcesync.model.digests import Digest
from resourcesync.model.vocabulary import Capability
from resourcesync.validator.packages import (
    PackageFile,
    judge_contents_copy,
    judge_listed_package,
    judge_manifest,
    judge_members,
)
from resourcesync.validator.rule import RuleFinding
from resourcesync.validator.served_responses import (
    DeliveredResponse,
    judge_body,
    judge_hub_links,
    judge_link,
    judge_media_type,
    judge_resource,
    judge_robots,
)
from resourcesync.validator.summaries import (
    DocumentPlace,
    DocumentSummary,
    ListedResource,
    ListedTarget,
)
from tests.support.rules.documents import CAP, CDM, RDM, RL, RLI
from tests.support.rules.source import summarize

Judge = Callable[[], Iterable[RuleFinding]]


@dataclass(frozen=True, kw_only=True)
class Facts:
    rule: str
    keeping: Judge
    breaking: Judge


PAGE: Final = "https://e.example/a"
SHA: Final = {"sha-256": "0" * 64}
LISTED: Final = ListedResource(
    uri=PAGE,
    document="https://e.example/rl.xml",
    place=DocumentPlace(line=7, column=3, length=4),
    length=10,
    media_type="text/html",
    hashes=SHA,
    lastmod=datetime(2026, 3, 1, tzinfo=UTC),
    path="/a.html",
)
ANSWER: Final = DeliveredResponse(
    uri=PAGE,
    status=200,
    headers={
        "content-type": "text/html; charset=utf-8",
        "last-modified": "Sun, 01 Mar 2026 12:00:00 GMT",
    },
    length=10,
    hashes=SHA,
)
LATE: Final = ("last-modified", "Mon, 02 Mar 2026 00:00:00 GMT")
DELETED: Final = replace(LISTED, change="deleted")
GONE: Final = replace(ANSWER, status=410)
CAPABILITIES: Final = summarize("https://e.example/cap.xml", CAP)
RESOURCES: Final = summarize("https://e.example/rl.xml", RL)
NO_WAY_UP: Final = summarize("https://e.example/rl.xml", RL.replace('rel="up"', 'rel="license"'))
MANIFEST: Final = summarize("https://e.example/p.zip", RDM)
CHANGE_MANIFEST: Final = summarize("https://e.example/p.zip", CDM)
MEMBERS: Final = (
    PackageFile(name="manifest.xml", length=1),
    PackageFile(name="a.html", length=10, hashes=SHA),
)


def answered(**changes: object) -> Judge:
    return lambda: judge_resource(LISTED, replace(ANSWER, **changes), set())


def served_as(media_type: str) -> Judge:
    return lambda: judge_media_type("https://e.example/rl.xml", media_type)


def served_with(links: str) -> Judge:
    return lambda: judge_hub_links(PAGE, links)


def headed(name: str, value: str, **changes: object) -> Judge:
    return answered(headers={**ANSWER.headers, name: value}, **changes)


def packed(*members: PackageFile) -> Judge:
    return lambda: judge_members("https://e.example/p.zip", members, [LISTED])


def packed_with(manifest: DocumentSummary, dump: Capability) -> Judge:
    return lambda: judge_manifest(manifest, dump=dump)


def weighed(length: int = 982, hashes: Mapping[str, str] = SHA) -> Judge:
    listed = ListedTarget(
        uri="https://e.example/p.zip",
        place=LISTED.place,
        length=982,
        digests=tuple(Digest(*item) for item in SHA.items()),
    )
    return lambda: judge_listed_package(RESOURCES, listed, length, hashes)


def facts(rule: str, keeping: Judge, *breaking: Judge) -> list[Facts]:
    return [Facts(rule=rule, keeping=keeping, breaking=function) for function in breaking]


FACTS: Final = [
    *facts(
        "HT01",
        answered(),
        answered(length=11),
        answered(status=404),
        headed("content-type", "text/plain"),
        lambda: judge_resource(replace(LISTED, encoding="gzip"), ANSWER, set()),
    ),
    *facts("HT02", answered(), answered(hashes={"sha-256": "1" * 64})),
    *facts(
        "HT03",
        lambda: judge_resource(DELETED, GONE, set()),
        lambda: judge_resource(DELETED, ANSWER, set()),
    ),
    *facts("HT04", headed(*LATE), headed(*LATE, hashes={})),  # the same bytes; not known to be
    *facts(
        "RL08",
        lambda: judge_body(LISTED, b"<html><p>Hi"),
        lambda: judge_body(LISTED, RL.encode()),
        lambda: judge_body(LISTED, RLI.encode()[:-30]),
    ),
    *facts("HT05", served_as("application/xml; charset=utf-8"), served_as("text/html")),
    *facts(
        "DI01",
        lambda: judge_link(PAGE, CAPABILITIES),
        lambda: judge_link(PAGE, CAPABILITIES, in_head=False),
        lambda: judge_link(PAGE, CAPABILITIES, is_listed=False),
    ),
    *facts(
        "DI02",
        lambda: judge_link(PAGE, CAPABILITIES, is_header=True),
        lambda: judge_link(PAGE, RESOURCES, is_header=True),
        lambda: judge_link(PAGE, None, is_header=True),
    ),
    *facts(
        "DI03",
        lambda: judge_robots("https://e.example/robots.txt", [RESOURCES]),
        lambda: judge_robots("https://e.example/robots.txt", [CAPABILITIES]),
        lambda: judge_robots("https://e.example/robots.txt", [NO_WAY_UP]),
    ),
    *facts("RD07", weighed(), weighed(length=983), weighed(hashes={"sha-256": "1" * 64})),
    *facts(
        "RM02",
        packed_with(MANIFEST, Capability.RESOURCE_DUMP),
        packed_with(CHANGE_MANIFEST, Capability.RESOURCE_DUMP),
    ),
    *facts("RM06a", packed(*MEMBERS), packed(MEMBERS[0])),
    *facts("RM06b", packed(*MEMBERS), packed(*MEMBERS, PackageFile(name="b", length=1))),
    *facts(
        "RM07",
        packed(*MEMBERS),
        packed(MEMBERS[0], replace(MEMBERS[1], length=9)),
        packed(MEMBERS[0], replace(MEMBERS[1], hashes={"sha-256": "1" * 64})),
    ),
    *facts(
        "CM01",
        packed_with(CHANGE_MANIFEST, Capability.CHANGE_DUMP),
        packed_with(MANIFEST, Capability.CHANGE_DUMP),
    ),
    *facts(
        "RD04b",
        lambda: judge_contents_copy(MANIFEST, summarize("https://e.example/m.xml", RDM)),
        lambda: judge_contents_copy(MANIFEST, CHANGE_MANIFEST),
        lambda: judge_contents_copy(
            MANIFEST, summarize("x", RDM.replace("example/a", "example/b"))
        ),
    ),
    *facts(
        "NT06",
        served_with('<https://h.example/>; rel="hub", <>; rel="self"'),
        served_with('<https://h.example/>; rel="hub"'),
        served_with('<https://h.example/>; rel="hub", <a>; rel="self", <b>; rel="self"'),
        served_with('<mailto:hub@h.example>; rel="hub", <>; rel="self"'),
    ),
]
