"""Documents of every kind, written in all the ways that XML allows, and some wrong on purpose.

The names are right and the grammar mostly is: such a document comes further into the reader than
random bytes do. What varies is how it is written: prefixes, quotes, the order of attributes,
blanks, character references, CDATA, comments, foreign elements, wrong namespaces, duplicates,
misplaced elements, bad values, encodings.
"""

import codecs
import gzip
from collections.abc import Callable, Sequence
from random import Random
from typing import Final
from xml.sax.saxutils import escape

from fuzz.randomness import probably
from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS, Capability

INDEXED: Final = frozenset(
    {
        Capability.RESOURCE_LIST,
        Capability.CHANGE_LIST,
        Capability.RESOURCE_DUMP,
        Capability.CHANGE_DUMP,
        Capability.RESOURCE_DUMP_MANIFEST,
        Capability.CHANGE_DUMP_MANIFEST,
    }
)

_SHA: Final = "sha-256:" + "0123456789abcdef" * 4
_TIMES: Final = (
    "2013-01-03T09:00:00Z",
    "2013-01-03T09:00:00.123456Z",
    "2013-01-03T09:00:00.5+01:00",
    "2013-01-03T09:00-00:30",
    "2013-01-03",
    "2013-01",
    "2013",
    " 2013-01-03T09:00:00Z\n",
    "2018-11-06T17:41:16.901455",
)
_BAD_TIMES: Final = (
    "soon",
    "2013-13-01",
    "2013-02-30T00:00:00Z",
    "2013-01-03T24:00:00Z",
    "20130103",
    "2013-W05-7",
    "9999-12-31T23:59:59-14:00",
    "2013-01-03t09:00:00z",
    "2013-01-03T09:00:00,5Z",
)
_URIS: Final = (
    "http://example.com/res1",
    "http://example.com/a?b=1&c=<2>",
    "https://example.com/\u6c34/\U0001f600",
    "urn:x:y",
    "res1",
    " http://example.com/blanks \n",
    "http://example.com/a'b\"c",
)
_BAD_URIS: Final = (
    "",
    "  ",
    "http://a/\u202ex",
    "http://a/\u200b",
    "http://a/\ufeff",
    "http://a/\x7f",
    "http://a/\nb",
    "http://a/" + "x" * 2040,
)
_HASHES: Final = (
    _SHA,
    _SHA.upper(),
    f"md5:{'ab' * 16}\n   {_SHA}",
    "crc32:1 odd :: sha-256:",
    "",
    "sha256:" + "0123456789abcdef" * 4,
    " ".join(f"x{number}:{number}" for number in range(20)),
)
_BAD_HASHES: Final = (f"{_SHA} sha-256:{'cd' * 32}", f"md5:{'ab' * 16} MD5:{'ac' * 16}")
_LENGTHS: Final = ("0", "17", " 8 ", "9" * 19, "007")
_BAD_LENGTHS: Final = ("-1", "1e9", "", "9" * 20, "\u0663", "0x10", "5 6")
_TYPES: Final = ("text/html", " a/b ", "application/x;y=1", "\u6c34", "a&b", "")
_CHANGES: Final = ("created", "updated", "deleted", " Updated ", "DELETED")
_RELATIONS: Final = ("duplicate", "describedby", "canonical alternate", "up", "Memento", "")
_BLANKS: Final = ("", "", " ", "\n  ", "\t", "\r\n")
_OTHERS: Final = (
    '<x:f xmlns:x="urn:x" a="1">text<url><loc>no</loc></url></x:f>',
    '<f xmlns="">none</f>',
    '<q:md xmlns:q="urn:not-rs" capability="changelist" hash="md5:00"/>',
    "<unknown/>",
    '<i:image xmlns:i="urn:image"><i:loc>http://example.com/image</i:loc></i:image>',
)

Known = Callable[[Random], str]


def _either(good: Sequence[str], bad: Sequence[str], one_in: int = 40) -> Known:
    return lambda random: random.choice(bad if probably(random, one_in) else good)


_TIME: Final = _either(_TIMES, _BAD_TIMES)
_VALUES: Final[dict[str, Known]] = {
    "hash": _either(_HASHES, _BAD_HASHES),
    "length": _either(_LENGTHS, _BAD_LENGTHS),
    "type": _either(_TYPES, _TYPES),
    "encoding": _either(("gzip", " br", ""), ("x y",)),
    "at": _TIME,
    "completed": _TIME,
    "from": _TIME,
    "until": _TIME,
    "modified": _TIME,
    "datetime": _TIME,
    "change": _either(_CHANGES, ("odd", "", "moved"), 200),
    "path": _either(("/a/b.txt", "a", "/\u6c34"), ("/../x", "", "//x", "/a\\b")),
    "pri": _either(("1", "999999", " 7"), ("0", "1000000", "x", "-1")),
}
_ENTRY_ATTRIBUTES: Final = {
    Capability.RESOURCE_LIST: ("hash", "length", "type", "encoding"),
    Capability.CHANGE_LIST: ("hash", "length", "type", "encoding", "datetime"),
    Capability.RESOURCE_DUMP_MANIFEST: ("hash", "length", "type", "encoding", "path"),
    Capability.CHANGE_DUMP_MANIFEST: ("hash", "length", "type", "path", "datetime"),
    Capability.RESOURCE_DUMP: ("hash", "length", "type", "encoding", "at", "completed"),
    Capability.CHANGE_DUMP: ("hash", "length", "type", "encoding", "from", "until"),
}
_NOTIFIED: Final = ("hash", "length", "type", "encoding", "datetime")
_CHANGING: Final = frozenset(
    {Capability.CHANGE_LIST, Capability.CHANGE_DUMP_MANIFEST, Capability.CHANGE_NOTIFICATION}
)


class Writer:
    """Writes one document, all choices taken from one random generator."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._sitemap = random.choice(("", "", "", "sm:"))
        self._rs = random.choice(("rs:", "rs:", "r:", "_1:"))

    def document(self, *, kinds: Sequence[Capability | None] | None = None) -> str:
        """Return one document of one of these kinds; of any when none are told."""
        random = self._random
        kind = random.choice(kinds or (None, *Capability))
        is_index = kind in {None, *INDEXED} and probably(random, 4)
        if kind in {Capability.DESCRIPTION, Capability.CAPABILITY_LIST}:
            is_index = probably(random, 20)
        head = [] if kind is None else [self._root_metadata(kind)]
        head += [self._link() for _ in range(random.choice((0, 0, 1, 2)))]
        if probably(random, 100):
            head += head[:1]  # the root's metadata twice
        random.shuffle(head)
        name = "sitemapindex" if is_index else "urlset"
        entries = [self._entry(kind, name) for _ in range(random.choice((0, 1, 2, 3, 8)))]
        if probably(random, 150) and kind is not None:
            entries.append(self._root_metadata(kind))
        return self._root(name, [*head, *entries])

    def _root(self, name: str, children: list[str]) -> str:
        random = self._random
        declared = f"xmlns:{self._sitemap[:-1]}" if self._sitemap else "xmlns"
        attributes = [
            (declared, random.choice((SITEMAP_NS,) * 9 + ("urn:wrong",))),
            (f"xmlns:{self._rs[:-1]}", random.choice((RS_NS,) * 19 + ("urn:wrong",))),
        ]
        if probably(random, 6):
            attributes.append(("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance"))
            attributes.append(("xsi:schemaLocation", f"{SITEMAP_NS} http://127.0.0.2:9/x.xsd"))
        if probably(random, 20):
            attributes.append(("xml:base", "http://127.0.0.2:9/"))
        between = [self.between() for _ in children]
        body = "".join(part for pair in zip(between, children, strict=True) for part in pair)
        return self._element(f"{self._sitemap}{name}", attributes, body + self.between())

    def _root_metadata(self, kind: Capability) -> str:
        random = self._random
        # The times of the other side are what older dialects are told by.
        own = ("at", "completed") if kind.is_snapshot else ("from", "until") if kind.is_log else ()
        names = list(own[: random.choice((0, 1, 1, 2))])
        attributes = self._attributes(names)
        if not probably(random, 60):
            attributes.append(("capability", kind.value))
        elif probably(random, 2):
            attributes.append(("capability", random.choice(("other", "", kind.value.upper()))))
        return self._element(f"{self._rs}md", attributes, "")

    def _entry(self, kind: Capability | None, root: str) -> str:
        random = self._random
        name = "sitemap" if root == "sitemapindex" else "url"
        if probably(random, 60):
            name = "url" if name == "sitemap" else "sitemap"
        children = [self._text_element("loc", _either(_URIS, _BAD_URIS)(random))]
        if probably(random, 2):
            children.append(self._text_element("lastmod", _TIME(random)))
        if probably(random, 4):
            children.append(self._text_element("changefreq", random.choice(("daily", " ", ""))))
        if probably(random, 8):
            children.append(self._text_element("priority", "0.5"))
        children += self._metadata(kind)
        children += [self._link() for _ in range(random.choice((0, 0, 0, 1, 2)))]
        if probably(random, 8):
            children.append(random.choice(_OTHERS))
        if probably(random, 60):
            children.append(random.choice(children))  # something twice
        if probably(random, 100):
            children.pop(random.randrange(len(children)))
        random.shuffle(children)
        body = "".join(self.between() + child for child in children) + self.between()
        return self._element(f"{self._sitemap}{name}", [], body)

    def _metadata(self, kind: Capability | None) -> list[str]:
        random = self._random
        changing = kind in _CHANGING
        if kind is None or (not changing and probably(random, 4)):
            return []
        other = _NOTIFIED if kind.value.endswith("notification") else ("at", "completed", "type")
        known = _ENTRY_ATTRIBUTES.get(kind, other)
        attributes = self._attributes([name for name in known if probably(random, 2)])
        if changing or kind is Capability.FRAMEWORK_NOTIFICATION:
            attributes.append(("change", _VALUES["change"](random)))
        if kind in {Capability.CAPABILITY_LIST, Capability.DESCRIPTION}:
            label = random.choice((*Capability, "other", ""))
            attributes.append(("capability", str(label)))
        return [self._element(f"{self._rs}md", attributes, "")]

    def _link(self) -> str:
        random = self._random
        names = ("hash", "length", "type", "encoding", "modified", "path", "pri")
        attributes = self._attributes([name for name in names if probably(random, 5)])
        attributes.append(("rel", random.choice(_RELATIONS)))
        attributes.append(("href", _either(_URIS[:5], _BAD_URIS)(random)))
        if probably(random, 30):
            attributes.pop()
        return self._element(f"{self._rs}ln", attributes, "")

    def _attributes(self, names: Sequence[str]) -> list[tuple[str, str]]:
        random = self._random
        found = [(name, _VALUES[name](random)) for name in names]
        if probably(random, 20):
            found.append(("x:odd", random.choice(("1", " a\n b ", "\u6c34"))))
        if found and probably(random, 20):
            name, value = found.pop()
            found.append((name if ":" in name else f"{self._rs}{name}", value))
        return found

    def _text_element(self, name: str, value: str) -> str:
        text = self.text(value)
        if probably(self._random, 120):
            text += random_element(self._random)
        return self._element(f"{self._sitemap}{name}", [], text)

    def _element(self, name: str, attributes: list[tuple[str, str]], body: str) -> str:
        random = self._random
        random.shuffle(attributes)
        if any(key.startswith("x:") for key, _ in attributes):
            attributes.append(("xmlns:x", "urn:x"))
        parts = [f"<{name}"]
        for key, value in attributes:
            equals = random.choice(("=", "=", "=", " = ", "\n="))
            parts.append(random.choice((" ", " ", "\n  ", "\t")))
            parts.append(key + equals + self._quoted(value))
        if not body and not probably(random, 3):
            return "".join([*parts, random.choice(("/>", " />", "\n/>"))])
        return "".join([*parts, random.choice((">", ">", " >")), body, f"</{name}>"])

    def _quoted(self, value: str) -> str:
        quote = self._random.choice("\"'")
        written = "".join(self._character(letter, quote) for letter in value)
        return f"{quote}{written}{quote}"

    def _character(self, letter: str, quote: str) -> str:
        if letter in "<&" or letter == quote:
            return _REFERENCES[letter]
        if probably(self._random, 60) or (letter in "\r\n\t" and probably(self._random, 3)):
            return self._random.choice((f"&#{ord(letter)};", f"&#x{ord(letter):X};"))
        return letter

    def text(self, value: str) -> str:
        """Return a text, written in one of the many ways."""
        random = self._random
        if not probably(random, 5):
            return escape(value)
        pieces: list[str] = []
        for letter in value:
            if probably(random, 12):
                pieces.append(random.choice(("<!-- c -->", "<?pi x?>", "<![CDATA[]]>")))
            if probably(random, 8):
                pieces.append(f"<![CDATA[{letter}]]>")
            else:
                pieces.append(self._character(letter, ">"))
        return "".join(pieces)

    def between(self) -> str:
        """Return what may stand between two elements and means nothing."""
        random = self._random
        if not probably(random, 12):
            return random.choice(_BLANKS)
        return random.choice((*_OTHERS, "<!-- <url> -->", "<?pi <url>?>", "text", "&#32;"))


_REFERENCES: Final = {"<": "&lt;", "&": "&amp;", '"': "&quot;", "'": "&apos;", ">": "&gt;"}


def random_element(random: Random) -> str:
    """Return an element where none belongs."""
    return random.choice(("<b/>", "<loc>x</loc>", '<x:y xmlns:x="urn:x">z</x:y>', "<url/>"))


def encoded(random: Random, text: str) -> bytes:
    """Return a document as bytes, in one of the encodings that are read."""
    choice = random.randrange(20)
    declaration = random.choice(("", '<?xml version="1.0"?>', "<?xml version='1.0'?>\n"))
    if choice == 0:
        return (declaration + text).encode("utf-16")
    if choice == 1:
        return codecs.BOM_UTF8 + (declaration + text).encode()
    if choice == 2:  # noqa: PLR2004 - one of twenty
        return gzip.compress((declaration + text).encode(), mtime=0)
    if probably(random, 3):
        declaration = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return (declaration + text).encode()


def generate(random: Random, *, kinds: Sequence[Capability | None] | None = None) -> bytes:
    """Return one document as bytes."""
    return encoded(random, Writer(random).document(kinds=kinds))
