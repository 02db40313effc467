"""What else others write and we read: answers of OAI-PMH, lines, patches, forms, fields."""

import io
import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

from fuzz.kept import hold, kept
from fuzz.randomness import chance, probably
from resourcesync.documents import ndjson
from resourcesync.documents.patches import json_patch, xml_patch
from resourcesync.errors import DocumentError, PatchError
from resourcesync.model.entries import Resource
from resourcesync.push_state.rows import SubscriptionIntent
from resourcesync.server.conditions_and_ranges import (
    format_http_date,
    parse_http_date,
    select_range,
)
from resourcesync.websub.messages import read_fields, read_subscription_request, subscription_form
from resourcesync_oai.documents.item_metadata import parse_item_metadata
from resourcesync_oai.documents.responses import OaiResponse

_URI: Final = "https://source.example/a"
_PATCHED: Final = 1 << 16
_SIZE: Final = 1_000
_TEXTS: Final = (
    *("", "a", "http://h/a", "urn:x", "2013-01-03T09:00:00Z", "17", "sha-256:" + "ab" * 32, "<&>"),
    *(
        "\u6c34",
        "http://h/" + "x" * 3_000,
        "-1",
        "oai:r:1",
        "\U0001f600",
        "'\"",
        " b ",
        "text/html",
    ),
)

Make = Callable[[Random], bytes]


class Other:
    """One of the smaller targets."""

    def __init__(
        self, name: str, make: Make, run: Callable[[bytes], str], roughness: float = 0.5
    ) -> None:
        self.name, self.roughness = name, roughness
        self._make, self._run = make, run
        made = (make(chance(name, "seed", number)) for number in range(40))
        self.seeds = (*made, *kept(name))

    def make(self, random: Random) -> bytes:
        """Return an input that is right in most of its parts."""
        return self._make(random)

    def run(self, data: bytes) -> str:
        """Read an input and return what it said."""
        return self._run(data)


# --- XML ---


def _element(random: Random, names: tuple[str, ...], depth: int) -> str:
    """Return an element with attributes of these names, elements or text in it."""
    name = random.choice(names)
    some = random.sample(_ATTRIBUTES, random.randrange(4))
    told = "".join(f" {name}={_quoted(random.choice(_TEXTS))}" for name in some)
    if depth == 0 or probably(random, 4):
        inside = _escaped(random.choice(_TEXTS))
    else:
        inside = "".join(_element(random, names, depth - 1) for _ in range(random.randrange(5)))
    return f"<{name}{told}>{inside}</{name.partition(' ')[0]}>"


_ATTRIBUTES: Final = (
    *("rel", "href", "type", "rs:type", "hash", "length", "modified", "status", "code", "verb"),
    *("completeListSize", "cursor", "xlink:href", "USE", "SIZE", "CHECKSUM", "CHECKSUMTYPE"),
    *("MIMETYPE", "LOCTYPE", "name", "schemaLocation", "rs:hash", "rs:length", "pri"),
)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace('"', "&quot;") + '"'


_OAI_NAMES: Final = (
    *("record", "record", "header", "identifier", "datestamp", "setSpec", "metadata", "about"),
    *("resumptionToken", "error", "oai_dc:dc", "dc:identifier", "dc:rights", "mets:file"),
    *("mets:FLocat", "mets:fileGrp", "repositoryName", "granularity", "deletedRecord"),
    *("metadataFormat", "metadataPrefix", "element", "field", "x:y"),
)
_OAI_SPACES: Final = (
    'xmlns="http://www.openarchives.org/OAI/2.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"'
    ' xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:rs="urn:rs" xmlns:x="urn:x"'
    ' xmlns:mets="http://www.loc.gov/METS/" xmlns:xlink="http://www.w3.org/1999/xlink"'
)


def _make_answer(random: Random) -> bytes:
    records = "".join(
        f"<record><header><identifier>oai:r:{number}</identifier><datestamp>2026-01-01</datestamp>"
        f"</header><metadata>{_element(random, _OAI_NAMES, 2)}</metadata></record>"
        if random.random() < 0.7  # noqa: PLR2004 - most are sound
        else _element(random, _OAI_NAMES, 2)
        for number in range(random.choice((0, 1, 2, 6)))
    )
    verb = random.choice(("ListRecords", "GetRecord", "Identify", "ListMetadataFormats", "odd"))
    return (
        f"<OAI-PMH {_OAI_SPACES}><responseDate>2026-01-31T12:00:00Z</responseDate>"
        f'<request verb="{verb}">{_URI}</request><{verb}>{records}</{verb}></OAI-PMH>'
    ).encode()


def _run_answer(data: bytes) -> str:
    answer = OaiResponse(io.BytesIO(data), uri=_URI)
    try:
        records = list(answer.records())
    except DocumentError as error:
        return f"{error.code} {error}"
    found = [_found(record.metadata) for record in records if record.metadata]
    return (
        f"records {records!r} {found!r} {answer.faults!r} {answer.token!r} {answer.identity!r}"
        f" {answer.formats!r} {answer.verb} {answer.response_date}"
    )


def _found(metadata: bytes) -> str:
    try:
        return repr(parse_item_metadata(metadata))
    except DocumentError as error:
        return error.code


# --- JSON ---


def _value(random: Random, depth: int = 3) -> Any:
    kind = random.randrange(8 if depth else 5)
    if kind >= 6:  # noqa: PLR2004 - two of eight
        return {random.choice("abc/~"): _value(random, depth - 1) for _ in range(3)}
    if kind == 5:  # noqa: PLR2004 - one of eight
        return [_value(random, depth - 1) for _ in range(random.randrange(4))]
    return random.choice((0, -1, 1e308, 10**30, None, True, "a", "\u6c34", "", 1.5))


def _make_lines(random: Random) -> bytes:
    lines = []
    for _ in range(random.choice((1, 1, 2, 5))):
        line: dict[str, Any] = {"uri": random.choice(_TEXTS[2:4])}
        for name in random.sample([*_LINE_VALUES], random.randrange(4)):
            odd: tuple[Any, ...] = (*_TEXTS, 17, -1, None, [], {}, [{"rel": "a", "href": "b"}])
            line[name] = random.choice(odd) if probably(random, 8) else _LINE_VALUES[name]
        lines.append(json.dumps(line))
    return "\n".join(lines).encode()


_LINE_VALUES: Final[dict[str, Any]] = {
    "lastmod": "2013-01-03T09:00:00Z",
    "length": 17,
    "hash": "sha-256:" + "ab" * 32,
    "type": "text/html",
    "change": "updated",
    "links": [{"rel": "up", "href": "http://h/b"}],
    "encoding": "gzip",
}


def _run_lines(data: bytes) -> str:
    entries = []
    try:
        for entry in ndjson.read(io.BytesIO(data), name="lines"):
            entries.append(entry)
            if isinstance(entry, Resource):
                again = ndjson.read_line(ndjson.write(entry), name="again")
                hold(again == entry, "reads what it writes")
    except DocumentError as error:
        return f"{error.code} {error}"
    return f"lines {entries!r}"


_POINTERS: Final = ("", "/a", "/b/0", "/a/b", "/-", "/b/-", "/c/1", "/~1", "/~0", "a", "/00", "/~")


def _make_json_patch(random: Random) -> bytes:
    before = {name: _value(random) for name in "abc"}
    operations = []
    for _ in range(random.choice((0, 1, 2, 5))):
        operation = random.choice(("add", "remove", "replace", "move", "copy", "test", "odd"))
        operations.append(
            {
                "op": operation,
                "path": random.choice(_POINTERS),
                "from": random.choice(_POINTERS),
                "value": _value(random),
            }
        )
    return json.dumps(before).encode() + b"\0" + json.dumps(operations).encode()


_XML_BEFORE: Final = (
    '<r xmlns:p="urn:p"><a k="1">x<b/>y</a><a k="2"><p:c>z</p:c></a><!-- c --><?pi d?></r>',
    '<?xml version="1.0"?>\n<p:r xmlns:p="urn:p"><p:a/> <p:a>\u6c34</p:a></p:r>\n',
)
_SELECTORS: Final = (
    *("/r", "r", "/r/a[1]", "//a", "r/a[@k='2']", "r/a/@k", "/r/a[2]/p:c", "r/comment()", "*[1]"),
    *("r/processing-instruction('pi')", "r/a/text()[1]", "id('x')", "r/a[.='x']", "r/namespace::p"),
    *("/p:r/p:a[2]", "", "/", "[", "r//", "a" * 500),
)


def _make_xml_patch(random: Random) -> bytes:
    operations = []
    for _ in range(random.choice((0, 1, 2, 4))):
        name = random.choice(("add", "remove", "replace", "odd"))
        sel = _quoted(random.choice(_SELECTORS))
        more = random.choice(("", ' pos="before"', ' type="@x"', ' ws="both"', ' pos="odd"'))
        inside = random.choice(("", "<n/>", "text", "<n>t</n><m/>", "<!-- n -->", "&#10;"))
        operations.append(f"<{name} sel={sel}{more}>{inside}</{name}>")
    diff = f'<diff xmlns:p="urn:p">{"".join(operations)}</diff>'
    return random.choice(_XML_BEFORE).encode() + b"\0" + diff.encode()


def _patching(apply: Callable[..., None]) -> Callable[[bytes], str]:
    def run(data: bytes) -> str:
        before, _, patch = data.partition(b"\0")
        result = io.BytesIO()
        try:
            apply(io.BytesIO(before), io.BytesIO(patch), result, _PATCHED)
        except PatchError as error:
            return f"{error.code} {error}"
        hold(len(result.getvalue()) <= max(_PATCHED, len(before)), "stays within its limit")
        return f"patched {result.getvalue()!r}"

    return run


# --- forms and fields ---


def _make_form(random: Random) -> bytes:
    fields = {
        "hub.mode": random.choice(("subscribe", "unsubscribe", "denied", "")),
        "hub.topic": random.choice(_TEXTS),
        "hub.callback": random.choice(
            ("http://h/c", "http://h:99999/", "http://[", "file:///x", "")
        ),
        "hub.secret": random.choice(("", "s", "s" * 200, "%00", "\u00e9")),
        "hub.lease_seconds": random.choice(("", "0", "10", "9" * 20, "-1", "\u0663")),
        "hub.challenge": random.choice(_TEXTS),
    }
    some = [field for field in fields.items() if not probably(random, 8)]
    return "&".join(f"{name}={value}" for name, value in some).replace(" ", "+").encode()


def _run_form(data: bytes) -> str:
    fields = read_fields(data)
    if fields is None:
        return "none"
    wish = read_subscription_request(fields)
    if isinstance(wish, SubscriptionIntent) and wish.secret.isascii():
        again = read_fields(subscription_form(wish.topic, wish.callback, wish.secret.decode()))
        hold(again is not None, "reads what it writes")
    return f"form {fields!r} {wish!r}"


def _make_field(random: Random) -> bytes:
    if probably(random, 2):
        day = random.choice(
            ("Sun, 06 Nov 1994", "Sunday, 06-Nov-94", "Sun Nov  6", "Sun, 31 Feb 0001")
        )
        zone = random.choice(("GMT", "GMT", "1994", ""))
        return f"{day} 08:49:{random.randrange(62):02d} {zone}".encode()
    good = ("0-0", "5-", "-5", "0-999", "900-2000", " 1-2 ")
    bad = ("10-5", "-0", "x-y", "9" * 30 + "-", "")
    spans = random.choices(bad if probably(random, 4) else good, k=17 if probably(random, 8) else 1)
    unit = random.choice(("bytes=", "Bytes=", "items=")) if probably(random, 3) else "bytes="
    return (unit + ",".join(spans)).encode()


def _run_field(data: bytes) -> str:
    text = data.decode("latin-1")
    moment = parse_http_date(text)
    if moment is not None and format_http_date(moment):
        hold(parse_http_date(format_http_date(moment)) == moment, "reads what it writes")
    span = select_range(text, _SIZE)
    if isinstance(span, range):
        hold(0 <= span.start < span.stop <= _SIZE, "is within")
    return f"field {moment} {span!r}" if moment or isinstance(span, range) else f"none {span!r}"


OTHERS: Final = (
    Other("oai", _make_answer, _run_answer),
    Other("lines", _make_lines, _run_lines),
    Other("json-patches", _make_json_patch, _patching(json_patch.apply)),
    Other("xml-patches", _make_xml_patch, _patching(xml_patch.apply)),
    Other("forms", _make_form, _run_form),
    Other("http-fields", _make_field, _run_field),
)
