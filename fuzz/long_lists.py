"""Long lists of plain entries and something odd in between, read with the fast path or without."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, Final, NamedTuple

from fuzz.randomness import chance, probably
from fuzz.xml_target import URI
from resourcesync.documents import _fast_path, blocks
from resourcesync.documents.reader import Limits, Tolerated, read
from resourcesync.errors import DocumentError
from resourcesync.model.entries import RefusedEntry

SHA: Final = "sha-256:" + "ab" * 32
PLAIN: Final = (
    "<url><loc>{loc}</loc></url>\n",
    "<url><loc>{loc}</loc></url>",
    "<url>\n  <loc>{loc}</loc>\n  <lastmod>2013-01-02T13:00:00Z</lastmod>\n</url>\n",
    '<url><loc>{loc}</loc><lastmod>2013</lastmod><rs:md hash="' + SHA + '" length="{n}"/></url>\n',
    '<url> <loc>{loc}</loc>\t<rs:md\n length="{n}"  type="a/b" ></rs:md> </url>\n  ',
    "<url><loc>{loc}</loc><changefreq>daily</changefreq><priority>0.5</priority></url>\r\n",
    '<url><loc>{loc}</loc><rs:md change="updated" datetime="2013-01-03T09:00:00Z"/></url>\n',
    '<url><loc>{loc}</loc><rs:md change="deleted"/></url>\n',
    '<url><loc>{loc}</loc><rs:ln rel="via" href="http://b/?a=1&amp;b={n}"/></url>\n',
    '<url><loc>{loc}</loc><rs:ln pri="{n}" rel="x" href="{loc}"/> <rs:ln rel="y"></rs:ln></url>\n',
    '<url><loc>{loc}</loc><rs:ln rel="x" href="{loc}"></rs:ln></url>\n',
    "<url>\n<loc>{loc}</loc></url>",
    "<url><loc>{loc}?a=1&amp;b=&lt;&gt;&quot;&apos;&amp;lt;</loc></url>\n",
    "<url><loc>{loc}/\u00e9\u6c34\U0001f600</loc><lastmod>2013-01-02T13:00:00</lastmod></url>\n",
)
"""How programs write an entry; all of them fit into columns."""
CHANGES: Final = (
    PLAIN[6],
    PLAIN[7],
    '<url><loc>{loc}</loc><lastmod>2013</lastmod><rs:md change="created"/></url>\n',
    '<url><loc>{loc}</loc><lastmod>2013</lastmod><rs:md change="updated" datetime="2014" hash="'
    + SHA
    + '"/></url>\n',
    '<url><loc>{loc}</loc><rs:md change="updated" hash=""/></url>\n',
)
"""Changes that have their time in different places, or none."""
UNUSUAL: Final = (
    '<url> <rs:md  length = "{n}"\ttype="a/b" ></rs:md> <loc>{loc}</loc> </url>\n  ',
    "<url><loc>{loc}</loc><rs:md length='{n}'/></url>\n",
    '<s:url><s:loc>{loc}</s:loc><rs:md length="{n}"/></s:url>\n',
    '<url><loc>{loc}</loc><rs:md rs:length="{n}"/></url>\n',
    '<url><loc>{loc}</loc><rs:ln rel="via" rs:href="http://b/"/></url>\n',
    "<url><loc>{loc}/&#65;</loc></url>\n",
    "<url><s:url></s:url><loc>{loc}</loc></url>\n",
    "<url><x:url></x:url><loc>{loc}</loc></url>\n",
    "<url><changefreq>daily</changefreq><loc>{loc}</loc><changefreq>daily</changefreq></url>\n",
)
"""How entries can be written, too."""
LAYOUTS: Final = PLAIN + UNUSUAL
ODD: Final = (
    *("<!--", "-->", "<![CDATA[", "]]>", "]]", "<?x", "?>", "<!DOCTYPE a>", "&amp;", "&", "&#10;"),
    *("\r", "\r\n", "\n", "\t", " ", "\u00e9", "\u6c34", "\x7f", "\x0b", '"', "'", "<", ">", "="),
    *("</urlset>", "<urlset>", "<url>", "</url>", "<loc>", "</loc>", "<x:a>", "</x:a>", "<x:a/>"),
    *("<url><loc>http://a/z</loc></url>", "<rs:md/>", '<rs:ln rel="up" href="http://b/"/>'),
    *('<rs:md capability="resourcelist"/>', ' xmlns="urn:y"', ' x:y="z"', ' change="created"'),
    *("<url ", "<loc/>", "<lastmod/>", "soon", "2013-01-02T13:00:00", "../up", "\u202e", "9" * 30),
    *(
        ' href="http://c/"',
        ' length="7"',
        "<rs:ln/>",
        "&amp;amp;",
        "&lt;",
        "\ufffe",
        "\x85",
        "\u2028",
    ),
    *("x" * 300, " " * 300, "<sitemap>", "</sitemap>", "<expires>2013</expires>"),
)
"""What may stand between two entries, or in one, and means something."""
AROUND: Final = (
    ("<!--", "-->"),
    ("<![CDATA[", "]]>"),
    ("<?x ", "?>"),
    ("<x:a>", "</x:a>"),
    ("<rs:md>", "</rs:md>"),
    ("<url>", "</url>"),
    ("<url><loc>", "</loc></url>"),
)
"""What may stand around entries, which then are none."""
_HEAD: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<urlset'
    ' xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:rs="http://www.openarchives.org/rs/terms/" xmlns:x="urn:x">\n'
)
_METADATA: Final = (
    '<rs:md capability="resourcelist" at="2013-01-03T00:00:00Z"/>',
    '<rs:md capability="changelist" from="2013-01-03T00:00:00Z"/>',
    '<rs:md capability="resourcedump-manifest"/>',
    "",
)
_BLOCK: Final = 1_000
_DEFAULT: Final = Limits()


def entries(layout: str, count: int, place: str = "") -> list[str]:
    """Return entries written in the same way."""
    return [layout.format(loc=f"http://a/{place}{n}", n=n) for n in range(count)]


def make(random: Random) -> bytes:
    """Return a list, now and then with a fault in it, or cut short."""
    parts: list[str] = []
    for part in range(random.choice((1, 1, 2, 4))):
        layouts = random.choice((LAYOUTS, LAYOUTS, CHANGES))
        parts += entries(random.choice(layouts), random.choice((1, 3, 20, 40)), f"{part}/")
        if probably(random, 3):
            random.shuffle(parts)
        if probably(random, 2):
            parts.insert(random.randrange(len(parts) + 1), random.choice(ODD))
    if probably(random, 4):
        first, last = sorted(random.choices(range(len(parts) + 1), k=2))
        before, after = random.choice(AROUND)
        parts[first:last] = [before, *parts[first:last], after]
    text = f"{_HEAD}{random.choice(_METADATA)}\n{''.join(parts)}</urlset>\n"
    for _ in range(random.choice((0, 0, 1, 2))):
        at, cut = random.randrange(len(text)), random.choice((0, 0, 1, 5))
        text = text[:at] + random.choice(ODD) + text[at + cut :]
    data = text.encode()
    return data[: random.randrange(len(data))] if probably(random, 6) else data


class Told(NamedTuple):
    """All that a reading of a document tells; how it ended comes last."""

    entries: list[object]
    refusals: list[RefusedEntry]
    tolerated: list[Tolerated]
    ending: tuple[object, ...] = ()


@contextmanager
def small_blocks(*, is_fast: bool = True, size: int = _BLOCK) -> Iterator[None]:
    """Let documents be read in small blocks, so that a short one is long."""
    changed = [
        (blocks, "BLOCK", size),
        (_fast_path, "SHORTEST", 0 if is_fast else 2**62),
        (_fast_path, "_MAX_BUFFERED", 250),
        (_fast_path, "_FILLING", 50),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in changed]
    try:
        for module, name, value in changed:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def tell(
    data: bytes, *, as_rows: bool = False, strict: bool = False, limits: Limits = _DEFAULT
) -> Told:
    """Return what a document tells."""
    told = Told([], [], [])
    try:
        opened = read(
            io.BytesIO(data),
            uri=URI,
            limits=limits,
            strict=strict,
            on_refused=told.refusals.append,
            on_tolerated=told.tolerated.append,
        )
        told.entries.extend(opened.rows() if as_rows else opened.entries())
    except DocumentError as error:
        place = (error.line, error.column)
        return told._replace(ending=(error.code, error.message, *place, error.evidence))
    return told._replace(ending=("read", opened.dialect, opened.refused, opened.dropped))


def tell_both_ways(
    data: bytes, *, as_rows: bool = False, strict: bool = False, limits: Limits = _DEFAULT
) -> Told:
    """Return what a document tells with the fast path."""
    options: dict[str, Any] = {"as_rows": as_rows, "strict": strict, "limits": limits}
    with small_blocks():
        fast = tell(data, **options)
    with small_blocks(is_fast=False):
        slow = tell(data, **options)
    endings = {slow.ending}
    if fast.ending not in endings:
        # Which of two faults is found first depends on the blocks: the XML of a block is read
        # before its values. So the values come first in tiny blocks, the XML in huge ones; what
        # comes first where both are far from each other, blocks of a middling size tell.
        for size in (16, 64, 256, *range(700, 1_500, 50), 4096, 2**20):
            with small_blocks(is_fast=False, size=size):
                endings.add(tell(data, **options).ending)
    assert fast.ending in endings, f"ends with {fast.ending}, without with {endings}"
    is_whole = slow.ending[0] == "read"
    for some, others in ((fast.entries, slow.entries), (fast.refusals, slow.refusals)):
        assert _agree(some, others, is_whole=is_whole), "the fast path changes what is told"
    assert _agree_on_faults(fast.tolerated, slow.tolerated, is_whole=is_whole), "another fault"
    return fast


def _agree(some: Sequence[object], others: Sequence[object], *, is_whole: bool) -> bool:
    """Whether two accounts are equal; how many come before a fault is found depends on blocks."""
    if is_whole:
        return some == others
    shorter = min(len(some), len(others))
    return some[:shorter] == others[:shorter]


def _agree_on_faults(some: list[Tolerated], others: list[Tolerated], *, is_whole: bool) -> bool:
    """Whether the same is tolerated at the same places; in which order depends on blocks."""
    found, expected = ({fault.code: fault for fault in faults} for faults in (some, others))
    if is_whole:
        return found == expected
    return all(found[code] == expected[code] for code in found.keys() & expected.keys())


class LongLists:
    """Long lists: `documents._fast_path`."""

    name = "long-lists"
    roughness = 0.3

    def __init__(self) -> None:
        self.seeds = tuple(make(chance("seed", number)) for number in range(40))

    def make(self, random: Random) -> bytes:
        """Return a list."""
        return make(random)

    def run(self, data: bytes) -> str:
        """Read it as entries and as rows, with the fast path and without."""
        told = tell_both_ways(data)
        rows = tell_both_ways(data, as_rows=True)
        strict = tell_both_ways(data, strict=True)
        return f"{told.ending[0]} {told!r} {rows.ending!r} {strict.ending!r}"
