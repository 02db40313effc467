"""What is too long costs itself, not the document; the reader and the validator agree on it."""

import io
import tracemalloc
from collections.abc import Iterator

import pytest

from resourcesync.documents.reader import read
from resourcesync.errors import DocumentLimitError, MalformedDocumentError
from resourcesync.model.entries import Resource
from resourcesync.validator.examination import Examination
from resourcesync.validator.rule import RuleFinding
from tests.support.documents.text import CountingStream, document, tell, uris, url

ROOT = '<rs:ln rel="up" href="https://s.example/capabilitylist.xml"/>'
A, B = "https://s.example/a", "https://s.example/b"
WORDS = {
    "plain words": "all is well, and some more words\n",
    "hyphens in it": "- a - b - c - what is - this - \n",
    "another script": "水水水水水水水水水\n",
    "what else would start something": "<![CDATA[ <? <urlset> ]]> ?> -> <!- \n",
}


def judged(data: bytes, size: int = 65_536) -> list[RuleFinding]:
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return list(Examination(pieces, uri="u"))


def rules(data: bytes) -> list[str]:
    return [finding.rule.id for finding in judged(data)]


@pytest.mark.parametrize(
    "element",
    [
        '<rs:md xmlns:f="f:f" f:note="{}"/>',
        '<rs:ln rel="describedby" href="https://s.example/d" xmlns:f="f:f" f:note="{}"/>',
        '<f:f xmlns:f="f:f" note="{}"/>',
        '<f:f xmlns:f="f:f"><f:g note="{}"/></f:f>',
    ],
)
@pytest.mark.parametrize("size", [8_193, 60_000])
@pytest.mark.parametrize("before", [0, 3_000])
def test_a_long_attribute_of_others_costs_nothing(element: str, size: int, before: int) -> None:
    odd = url(A, element.format("x" * size))
    data = document(ROOT, *[url(B)] * before, odd, url(B))

    told = tell(data)

    assert (uris(told.entries)[before:], told.refusals) == ([A, B], [])
    assert not {"value-long", "link-incomplete"} & set(told.codes)
    assert rules(data) == rules(data.replace(b"x" * size, b"x"))


@pytest.mark.parametrize("size", [2_049, 8_193, 60_000])
def test_a_long_href_costs_its_link_and_is_counted_and_named(size: int) -> None:
    odd = f'<rs:ln rel="describedby" href="{"https://s.example/".ljust(size, "x")}"/>'
    data = document(
        ROOT, url(A, odd, '<rs:ln rel="alternate" href="https://s.example/c"/>'), url(B)
    )

    opened = read(io.BytesIO(data), uri="u")
    first, second = opened.entries()
    assert isinstance(first, Resource)

    assert [link.rel for link in first.links] == ["alternate"]
    assert second.uri == B
    assert opened.dropped == 1
    (finding,) = [finding for finding in judged(data) if finding.rule.id == "G23"]
    assert f"{size:,} characters" in finding.message
    with pytest.raises(MalformedDocumentError):
        list(read(io.BytesIO(data), uri="u", strict=True).entries())


@pytest.mark.parametrize(
    ("name", "rule"), [("hash", "G27"), ("length", "G26"), ("type", "G30"), ("at", "G17")]
)
@pytest.mark.parametrize("before", [0, 3_000])
def test_a_long_value_counts_as_not_said_and_is_counted_and_named(
    name: str, rule: str, before: int
) -> None:
    text = {"type": "text/" + "x" * 9_000, "hash": "md5:" + "a" * 9_000}.get(name, "1" * 9_000)
    same = f'<rs:md hash="md5:{"0" * 32}"/>' if name == "hash" else '<rs:md type="text/html"/>'
    data = document(ROOT, *[url(B, same)] * before, url(A, f'<rs:md {name}="{text}"/>'), url(B))

    opened = read(io.BytesIO(data), uri="u")

    assert uris(opened.entries())[before:] == [A, B]
    assert opened.dropped == 1
    assert rule in rules(data)


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize("size", [70_000, 1_000_000])
@pytest.mark.parametrize("before", [0, 1_500])
def test_a_long_comment_is_skipped_and_changes_no_place(words: str, size: int, before: int) -> None:
    comment = f"<!--{words * (size // len(words.encode()))}-->"
    data = document(ROOT, *[url(B)] * before, comment, url(A), url(), "<url/>")

    told = tell(data)

    assert uris(told.entries)[before:][0] == A
    assert (len(told.entries), len(told.refusals)) == (before + 2, 1)
    line = data.decode().split("\n").index("<url/>") + 1
    assert told.refusals[0].line == line
    (finding,) = [finding for finding in judged(data) if finding.rule.id == "G12"]
    assert (finding.line, finding.column, finding.excerpt) == (line, 1, "<url/>")
    assert [finding.line for finding in judged(data, size=1_001) if finding.rule.id == "G12"] == [
        line
    ]


@pytest.mark.parametrize("fault", ["--", "\x01", "\ud800"])
@pytest.mark.parametrize("at", [10, 70_000, 150_000])
def test_what_xml_forbids_in_a_comment_is_found_in_a_long_one(fault: str, at: int) -> None:
    words = "all is well " * 20_000
    comment = f"<!--{words[:at]}{fault}{words[at:]}-->"
    data = document(ROOT, url(A)).replace(
        b"</urlset>", comment.encode(errors="surrogatepass") + b"</urlset>"
    )

    assert "G01" in rules(data)
    with pytest.raises(MalformedDocumentError):
        tell(data)


def test_a_comment_of_many_megabytes_takes_little_memory() -> None:
    def pieces() -> Iterator[bytes]:
        head, _, tail = document(ROOT, "|", url(A)).partition(b"|")
        yield head + b"<!--"
        yield from [b"all is well, and " * 4_096] * 300
        yield b"-->" + tail

    tracemalloc.start()
    found = uris(read(CountingStream(pieces()), uri="u").entries())
    findings = list(Examination(pieces(), uri="u"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (found, [finding.rule.id for finding in findings]) == ([A], ["RL07"])
    assert peak < 4 * 2**20


def test_a_long_comment_among_many_namespaces_is_no_way_round_the_limits() -> None:
    names = "".join(f'<a xmlns:n{number}="n:{number}"/>' for number in range(101))
    assert rules(document(ROOT, url(A, names))) == ["G01"]


@pytest.mark.parametrize("before", [0, 1_000, 60_000, 65_000])
def test_a_tag_that_nobody_writes_in_good_faith_is_refused_wherever_it_stands(before: int) -> None:
    comment = f"<!--{'x' * before}-->"
    data = document(ROOT, comment, url(A, f'<rs:md xmlns:f="f:f" f:note="{"x" * 66_000}"/>'))

    assert "G01" in rules(data)
    with pytest.raises(DocumentLimitError):
        tell(data)
