"""Checks of delivery: resources and documents as served, against their entries (§6.3, §7)."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from io import BytesIO
from typing import Final

import msgspec

from resourcesync.discovery.links import find_targets
from resourcesync.discovery.uris import origin_if_any
from resourcesync.documents.reader import read
from resourcesync.errors import DocumentError
from resourcesync.model.vocabulary import Capability
from resourcesync.ports.validators_and_dates import modified_at
from resourcesync.validator.rule import RuleFinding
from resourcesync.validator.summaries import (
    DocumentSummary,
    ListedResource,
    at_listed,
    at_root,
    without_place,
)

_OK: Final = 200
_GONE: Final = frozenset({404, 410})
_XML: Final = frozenset({"application/xml", "text/xml"})
"""Two names of one media type (RFC 7303 §9.2)."""
_PACKED: Final = frozenset({"application/gzip", "application/x-gzip"})
_DAY: Final = timedelta(days=1)


class DeliveredResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a server to GET, redirects followed.

    The names of its header fields are in small letters. Length and digests are those of the body as
    it was sent, still coded; without a length it was not read. Digests are in lower-case hex.
    """

    uri: str
    status: int
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    length: int | None = None
    hashes: Mapping[str, str] = msgspec.field(default_factory=dict)


def bare_type(media_type: str) -> str:
    """Return a media type without its parameters, in small letters."""
    return media_type.partition(";")[0].strip().lower()


def judge_resource(
    listed: ListedResource, response: DeliveredResponse, applied: set[str]
) -> Iterator[RuleFinding]:
    """Compare the answer for a resource with its entry (§7, §12.1); add the rules that applied."""
    if listed.change == "deleted":
        applied.add("HT03")
        if response.status not in _GONE:
            message = f"{listed.uri} was deleted and answers {response.status}"
            yield at_listed("HT03", message, listed)
        return
    applied.add("HT01")
    if response.status != _OK:
        yield at_listed("HT01", f"{listed.uri} answers {response.status}", listed)
        return
    yield from _judge_representation(listed, response)
    if response.hashes:
        applied.add("HT02")
    for name, digest in listed.hashes.items():
        if response.hashes.get(name, digest) != digest:
            yield at_listed("HT02", f"the {name} of {listed.uri} is not the list's", listed)
    is_equal = listed.hashes.items() & response.hashes.items()
    if listed.lastmod is not None and "last-modified" in response.headers and not is_equal:
        applied.add("HT04")
        yield from _judge_modified(listed, listed.lastmod, modified_at(response.headers))


def _judge_modified(
    listed: ListedResource, lastmod: datetime, modified: datetime | None
) -> Iterator[RuleFinding]:
    if modified is not None and modified > lastmod:
        whole_day = lastmod.time() == datetime.min.time()
        if not whole_day or modified >= lastmod + _DAY:
            message = f"{listed.uri} was modified {modified:%FT%TZ}, after its lastmod"
            yield at_listed("HT04", message, listed)


def _judge_representation(
    listed: ListedResource, response: DeliveredResponse
) -> Iterator[RuleFinding]:
    if listed.length is not None and response.length not in (None, listed.length):
        message = f"{listed.uri} has {response.length} bytes instead of {listed.length}"
        yield at_listed("HT01", message, listed)
    wanted, served = map(bare_type, (listed.media_type, response.headers.get("content-type", "")))
    if wanted and served and served != wanted and not {served, wanted} <= _XML:
        message = f"{listed.uri} is served as {served}, listed as {wanted}"
        yield at_listed("HT01", message, listed)
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if listed.encoding.strip().lower() != encoding and listed.encoding:
        message = f"{listed.uri} is coded {encoding or 'not at all'}, listed as {listed.encoding}"
        yield at_listed("HT01", message, listed)


def judge_body(listed: ListedResource, start: bytes) -> Iterator[RuleFinding]:
    """Check by the start of its body that a resource is no Resource List itself (§10.2)."""
    try:
        header = read(BytesIO(start), uri=listed.uri).header
    except DocumentError:
        return
    if not listed.change and header.capability is Capability.RESOURCE_LIST:
        yield at_listed("RL08", f"{listed.uri} is a {header.phrase} itself", listed)


def judge_media_type(uri: str, served_as: str) -> Iterator[RuleFinding]:
    """Check the media type that a document is served as."""
    media_type = bare_type(served_as)
    packed = media_type in _PACKED and uri.partition("?")[0].endswith(".gz")
    if media_type not in _XML and not packed:
        named = media_type or "no media type"
        yield without_place("HT05", f"the document is served as {named}", uri)


def judge_hub_links(uri: str, links: str) -> Iterator[RuleFinding]:
    """Check the hubs and the topic that a document is served with (WebSub §4)."""
    hubs, topics = (find_targets(links, name, uri) for name in ("hub", "self"))
    if hubs and len(topics) != 1:
        yield without_place("NT06", f"{len(topics)} self links beside the link to a hub", uri)
    for address in (*hubs, *topics) if hubs else ():
        if not origin_if_any(address):
            yield without_place("NT06", f"{address} is no address of http or https", uri)


def judge_link(
    uri: str,
    target: DocumentSummary | None,
    *,
    is_header: bool = False,
    in_head: bool = True,
    is_listed: bool = True,
) -> Iterator[RuleFinding]:
    """Check a ``resourcesync`` link of an HTML page or in an HTTP header (§6.3.3)."""
    rule = "DI02" if is_header else "DI01"
    if not in_head:
        yield without_place(rule, "the link is not in the head of the page", uri)
    if target is None:
        yield without_place(rule, "the link leads to no document of ResourceSync", uri)
    elif target.capability is not Capability.CAPABILITY_LIST:
        message = f"the link leads to a {target.phrase}, not to a Capability List"
        yield without_place(rule, message, uri)
    elif not is_listed:
        yield without_place(rule, f"the set of {target.uri} does not contain it", uri)


def judge_robots(robots: str, targets: Sequence[DocumentSummary]) -> Iterator[RuleFinding]:
    """Check the documents that the ``Sitemap`` lines of a robots.txt lead to (§6.3.4)."""
    for target in targets:
        if not target.label:
            continue
        if target.capability is not Capability.RESOURCE_LIST:
            yield without_place("DI03", f"{target.uri} is a {target.phrase}", robots)
        elif target.link("up") is None:
            yield at_root("DI03", f"{robots} names it, and it has no up link", target)
