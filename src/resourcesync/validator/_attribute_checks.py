"""Checks of attributes: their names, their values, and in which documents they may be (§7).

Link relations are those of IANA.
"""

import re
from functools import lru_cache
from typing import Final

from resourcesync.documents.reader import Limits
from resourcesync.model.digests import ALGORITHMS
from resourcesync.model.entries import LAST_PRIORITY
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.validator._elements import ElementNode
from resourcesync.validator._examined_document import (
    CHANGES,
    DESCRIPTIONS,
    LOGS,
    MANIFESTS,
    RS_NAMESPACES,
    SNAPSHOTS,
    DocumentKind,
    ExaminedDocument,
    ParsedTime,
    read_moment,
)
from resourcesync.validator.rule import DATED_BY_LASTMOD

_RELATION_NAMES: Final = """
about acl alternate amphtml api-catalog appendix apple-touch-icon apple-touch-startup-image
archives author blocked-by bookmark c2pa-manifest canonical chapter cite-as collection
compression-dictionary contents convertedfrom copyright create-form current deprecation
describedby describes disclosure dns-prefetch duplicate edit edit-form edit-media enclosure
external first geofeed glossary help hosts hub ice-server icon index intervalafter
intervalbefore intervalcontains intervaldisjoint intervalduring intervalequals
intervalfinishedby intervalfinishes intervalin intervalmeets intervalmetby intervaloverlappedby
intervaloverlaps intervalstartedby intervalstarts item last latest-version license linkset lrdd
manifest mask-icon me media-feed memento micropub modulepreload monitor monitor-group next
next-archive nofollow noopener noreferrer opener openid2.local_id openid2.provider original
p3pv1 payment pingback preconnect predecessor-version prefetch preload prerender prev preview
previous prev-archive privacy-policy profile publication rdap-active rdap-bottom rdap-down
rdap-top rdap-up related replies restconf resourcesync ruleinput search section self service
service-desc service-doc service-meta sip-trunking-capability sponsored start status stylesheet
subsection successor-version sunset tag terms-of-service timegate timemap type ugc up
version-history via webmention working-copy working-copy-of
"""

RELATIONS: Final = frozenset(_RELATION_NAMES.split())
"""The IANA registry of link relations (RFC 8288), and ``resourcesync`` of section 6.3.3."""

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")
_WEB: Final = re.compile(r"https?:", re.IGNORECASE)
_HOST: Final = re.compile(r"https?://[^/?#]+", re.IGNORECASE)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PART: Final = r"[A-Za-z0-9!#$&^_.+-]+"
_MEDIA_TYPE: Final = re.compile(rf"{_PART}/{_PART}\s*(?:;.*)?")


def is_uri(text: str) -> bool:
    """True if a text is an absolute URI (RFC 3986); a fragment is no fault here."""
    if _URI.fullmatch(text) is None or _BAD_ESCAPE.search(text) is not None:
        return False
    return _WEB.match(text) is None or _HOST.match(text) is not None


_REPRESENTATION: Final = frozenset({"encoding", "hash", "length", "path", "type"})
MD_NAMES: Final = _REPRESENTATION | {
    *("at", "completed", "from", "until", "capability", "change", "datetime", "modified")
}
LN_NAMES: Final = _REPRESENTATION | {"href", "rel", "modified", "pri"}
TIMES: Final[tuple[str, ...]] = ("at", "completed", "from", "until", "datetime", "modified")

_LIMITS: Final = Limits()
_OF_VALUES: Final = {"length": "G26", "hash": "G27", "type": "G30"}
"""The attributes that any text of their letters would fit, with the rules that they would break."""
_DIGITS: Final = re.compile(r"[0-9]+")
_TOKEN: Final = re.compile(r"[A-Za-z0-9-]+:\S+")
_HEX: Final = re.compile(r"[0-9A-Fa-f]+")
_LENGTHS: Final = {**ALGORITHMS, "md2": 32}
_ONLY_IN_INDEXES: Final = frozenset({"change", "datetime", "path", "capability"})
_ONLY_ELSEWHERE: Final = _ONLY_IN_INDEXES | {"at", "completed"}


def check_names(subject: ExaminedDocument, node: ElementNode, known: frozenset[str]) -> None:
    """Check what the attributes of an ``rs:md`` or ``rs:ln`` are called (§7)."""
    for namespace, name, value in node.qualified:
        if namespace in RS_NAMESPACES:
            subject.report("G09", f"{name} carries a prefix", node, name)
            node.attributes.setdefault(name, value)
    for name in node.attributes:
        if name not in known:
            message = f"{name} is not an attribute of rs:{node.name}, and carries no prefix"
            subject.report("G10", message, node, name)


def check_values(subject: ExaminedDocument, node: ElementNode) -> dict[str, ParsedTime]:
    """Check the values of an ``rs:md`` or ``rs:ln``; return the times that can be read (§7)."""
    found = node.attributes
    _check_lengths(subject, node)
    if "length" in found and _DIGITS.fullmatch(found["length"].strip()) is None:
        message = f"length {found['length'][:64]!r} is not a number of bytes"
        subject.report("G26", message, node, "length")
    if "type" in found and _MEDIA_TYPE.fullmatch(found["type"].strip()) is None:
        message = f"type {found['type'][:64]!r} is not a media type"
        subject.report("G30", message, node, "type")
    if "hash" in found:
        _check_hash(subject, node, found["hash"])
    times: dict[str, ParsedTime] = {}
    for name in TIMES:
        if name in found:
            moment = read_moment(subject, node, name, found[name])
            if moment is not None:
                times[name] = moment
    return times


def _check_lengths(subject: ExaminedDocument, node: ElementNode) -> None:
    for name, rule in _OF_VALUES.items():
        if len(text := node.attributes.get(name, "")) > _LIMITS.text:
            message = f"{name} has {len(text):,} characters, and is ignored"
            subject.report(rule, message, node, name)


def _check_hash(subject: ExaminedDocument, node: ElementNode, text: str) -> None:
    algorithms = []
    for token in text.split() or [""]:
        if _TOKEN.fullmatch(token) is None:
            message = f"hash {token[:64]!r} is not algorithm:digest"
            subject.report("G27", message, node, "hash")
            continue
        name, _, digest = token.partition(":")
        algorithms.append(name.lower())
        length = _LENGTHS.get(name.lower())
        if _HEX.fullmatch(digest) is None:
            message = f"the {name} digest {digest[:64]!r} is not hexadecimal"
            subject.report("G28", message, node, "hash")
        elif length is not None and len(digest) != length:
            message = f"the {name} digest has {len(digest)} digits instead of {length}"
            subject.report("G28", message, node, "hash")
    twice = {name for name in algorithms if algorithms.count(name) > 1}
    if twice:
        subject.report("G29", f"hash gives {', '.join(sorted(twice))} twice", node, "hash")


def check_link(subject: ExaminedDocument, node: ElementNode) -> dict[str, ParsedTime]:
    """Check an ``rs:ln`` by itself: names, values, relation; return its times (§7, §14.1)."""
    check_names(subject, node, LN_NAMES)
    for name in ("href", "rel"):
        if not node.attributes.get(name, "").strip():
            subject.report("G23", f"a link has no {name}", node)
    href = node.attributes.get("href", "").strip()
    if len(href) > _LIMITS.uri:
        message = (
            f"href has {len(href):,} characters: no link is read with more than {_LIMITS.uri:,}"
        )
        subject.report("G23", message, node, "href")
    for token in node.attributes.get("rel", "").split():
        if token.lower() not in RELATIONS and not is_uri(token):
            message = f"rel {token[:64]!r} is neither registered nor an absolute URI"
            subject.report("G24", message, node, "rel")
    priority = node.attributes.get("pri")
    if priority is not None:
        text = priority.strip()
        if _DIGITS.fullmatch(text) is None or not 1 <= int(text[:9]) <= LAST_PRIORITY:
            subject.report("G25", f"pri {text[:64]!r} is not from 1 to 999999", node, "pri")
    return check_values(subject, node)


def check_places(subject: ExaminedDocument, node: ElementNode, *, in_root: bool) -> None:
    """Check that the attributes of an ``rs:md`` are allowed in this kind of document (§7, A)."""
    is_dated = subject.profile in DATED_BY_LASTMOD
    for name in node.attributes:
        rule = _misplaced(subject.kind, name, in_root=in_root, is_dated=is_dated)
        if rule:
            where = "the root" if in_root else "an entry"
            kind = "document" if subject.kind is DocumentKind.UNKNOWN else subject.kind.value
            subject.report(rule, f"{name} on {where} of a {kind}", node, name)


@lru_cache(maxsize=512)
def _misplaced(kind: DocumentKind, name: str, *, in_root: bool, is_dated: bool) -> str:
    if kind in DESCRIPTIONS and name in ("at", "completed", "from", "until"):
        return "SD12"
    if name == "modified":
        return "G36"
    if kind in SNAPSHOTS and name in ("from", "until"):
        return "G38"
    if kind in LOGS and name in ("at", "completed"):
        return "G37"
    if in_root:
        return {"path": "G31", "change": "G32", "datetime": "G34"}.get(name, "")
    if kind is DocumentKind.RL and name in _ONLY_ELSEWHERE:
        return "RL06"
    if kind is DocumentKind.RLI and name in _ONLY_IN_INDEXES:
        return "RI03"
    return _misplaced_on_entry(kind, name, is_dated=is_dated)


def _misplaced_on_entry(kind: DocumentKind, name: str, *, is_dated: bool) -> str:
    allowed = {
        "path": kind in MANIFESTS,
        "change": kind in CHANGES,
        "datetime": kind in CHANGES and not is_dated,
        "capability": kind in DESCRIPTIONS or kind is DocumentKind.FN,
        "at": kind is not DocumentKind.RDM,
        "completed": kind is not DocumentKind.RDM,
        "from": kind not in (DocumentKind.CH, DocumentKind.CDM),
        "until": kind not in (DocumentKind.CH, DocumentKind.CDM),
    }
    if kind is DocumentKind.UNKNOWN or allowed.get(name, True):
        return ""
    return {"path": "G31", "change": "G32", "datetime": "G34", "capability": "G35"}.get(name, "G45")


def check_pairs(subject: ExaminedDocument, node: ElementNode, times: dict[str, ParsedTime]) -> None:
    """Check that ``completed`` and ``until`` come with their starts, and are after them (§7, A)."""
    for start, end, alone, order in (
        ("at", "completed", "G39a", "G39b"),
        ("from", "until", "G40a", "G40b"),
    ):
        if end not in node.attributes:
            continue
        if start not in node.attributes:
            subject.report(alone, f"{end} without {start}", node, end)
        elif start in times and end in times and times[end].last < times[start].first:
            message = f"{end} {times[end].text} is before {start} {times[start].text}"
            subject.report(order, message, node, end)


def check_change(subject: ExaminedDocument, node: ElementNode) -> str:
    """Check the value of ``change``; return it as far as it is understood (§12.1)."""
    text = node.attributes.get("change", "")
    if "change" in node.attributes and subject.kind in CHANGES and text not in set(ChangeKind):
        subject.report("G33", f"change {text[:64]!r} is not a kind of change", node, "change")
    return text.strip().lower()
