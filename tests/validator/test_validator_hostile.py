"""Bytes that no document should be made of: findings, never exceptions, in bounded memory."""

import gzip
import tracemalloc
from collections.abc import Iterator
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.model.settings import RuleProfile
from resourcesync.model.vocabulary import MAX_BYTES
from resourcesync.validator.examination import Examination
from resourcesync.validator.rule import RULES, RuleFinding, Severity
from tests.support.rules.documents import CH, GOOD, NS, PLAIN, RL


def judged(data: bytes, *, size: int = 65_536) -> list[RuleFinding]:
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return list(Examination(pieces, uri="u"))


def ids(findings: list[RuleFinding]) -> list[str]:
    return [finding.rule.id for finding in findings]


MANY_ATTRIBUTES = " ".join(f"b{number}='1'" for number in range(65))
MANY_NAMES = "".join(f"<n{number}/>" for number in range(1_200))
ENTITIES = b'<!DOCTYPE urlset [<!ENTITY a "b"><!ENTITY c "&a;&a;">]>'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 100,
        b"not xml",
        b"<!DOCTYPE html><html></html>",
        ENTITIES + RL.encode(),
        RL.encode().replace(b"<urlset", b'<!DOCTYPE urlset SYSTEM "file:///etc/passwd"><urlset'),
        gzip.compress(RL.encode())[:-20],
        gzip.compress(RL.encode())[:50] + b"x" * 50,
        RL.encode()[:-1],
        RL.encode("utf-32"),
        b'<?xml version="1.0" encoding="ISO-8859-1"?>' + RL.encode(),
        RL.replace("/a<", "/ä<").encode("latin-1"),
        f"<urlset {NS}>{'<a>' * 20}".encode(),
        f'<urlset {NS}><url><loc x="{"y" * 200_000}"/></url></urlset>'.encode(),
        f"<urlset {NS}><url>{'<priority/>' * 1_001}</url></urlset>".encode(),
        f"<urlset {NS}><url><a {MANY_ATTRIBUTES}/></url>".encode(),
        f"<urlset {NS}><a xmlns='x:y'>{MANY_NAMES}</a>".encode() + b" " * 70_000,
    ],
    ids=range(17),
)
def test_what_is_no_sound_xml_is_one_finding_of_g01(data: bytes) -> None:
    found = judged(data)

    assert [name for name in ids(found) if RULES[name].severity is Severity.ERROR] == ["G01"]


@pytest.mark.parametrize("kind", GOOD)
def test_a_document_that_is_cut_short_is_never_complete(kind: str) -> None:
    data = GOOD[kind].encode()

    for length in range(0, len(data), 7):
        examination = Examination([data[:length]], uri="u")
        assert "G01" in ids(list(examination))
        assert not examination.summary.complete


def test_a_document_of_too_many_bytes_is_told_and_not_held_in_memory() -> None:
    def pieces() -> Iterator[bytes]:
        yield f"<urlset {NS}>".encode()
        for _ in range(MAX_BYTES // 65_536 + 1):
            yield b" " * 65_536
        yield b"</urlset>"

    tracemalloc.start()
    examination = Examination(pieces(), uri="u", profile="sitemap")
    found = list(examination)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert ids(found) == ["G20"]
    assert examination.summary.complete
    assert peak < 4 * 2**20


def test_a_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(f"<urlset {NS}>".encode() + b" " * 80 * 2**20)

    examination = Examination([bomb], uri="u", profile="sitemap")

    assert ids(list(examination)) == ["G20"]
    assert not examination.summary.complete


def test_a_place_after_far_more_text_than_is_kept_is_still_a_place() -> None:
    filler = "<!--" + "x" * 60_000 + "-->"
    text = RL.replace("</url>", f'{filler * 20}<rs:ln rel="up" href="x:y"/></url>', 1)

    (finding,) = judged(text.encode())

    assert finding.rule.id == "LK11"
    assert finding.line == text[: text.index('<rs:ln rel="up" href="x:y"')].count("\n") + 1


def test_lines_may_end_as_on_any_system_and_columns_count_characters() -> None:
    text = CH.replace('length="10"', 'note="ä" length="ten"').replace('note="ä" ', "")
    text = text.replace(
        '<url><loc>https://e.example/a</loc><rs:md change="created"',
        '<url><!-- ä ö --><loc>https://e.example/a</loc><rs:md change="created"',
        1,
    )
    for ending in ("\n", "\r\n", "\r"):
        (finding,) = judged(text.replace("\n", ending).encode())
        assert text.split("\n")[finding.line - 1][finding.column - 1 :].startswith('ten"')


@pytest.mark.parametrize("kept", [-1, -9, -30])
def test_a_document_that_is_cut_short_is_said_to_be(kept: int) -> None:
    told = [
        finding.message
        for finding in judged(RL.strip()[:kept].encode())
        if finding.rule.id == "G01"
    ]

    assert told == ["the document stops before its end"]


@given(data=st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    assert {"G01", "G02"} & set(ids(judged(data)))


@given(
    at=st.integers(0, len(RL)),
    put=st.text(max_size=8),
    profile=st.sampled_from(get_args(RuleProfile)),
)
def test_no_edit_raises(at: int, put: str, profile: RuleProfile) -> None:
    text = RL[:at] + put + RL[at + len(put) :]
    found = list(Examination([text.encode("utf-8", "replace")], uri="u", profile=profile))

    assert all(
        finding.line >= 1 and finding.column >= 1 and finding.length >= 1 for finding in found
    )
    assert all(profile in finding.rule.profiles for finding in found)


def test_a_plain_sitemap_is_judged_as_one() -> None:
    def under(profile: RuleProfile) -> list[str]:
        return ids(list(Examination([PLAIN.encode()], uri="u", profile=profile)))

    assert under("sitemap") == []
    assert under("rs-1.1") == ["G05"]


def test_entries_without_end_are_told_and_not_all_judged() -> None:
    def pieces() -> Iterator[bytes]:
        yield f"<urlset {NS}>".encode()
        for _ in range(200):
            yield b"<url><loc>x:y</loc></url>" * 1_000

    examination = Examination(pieces(), uri="u", profile="sitemap")

    assert ids(list(examination)) == ["G19", "G01"]
    assert not examination.summary.complete
    assert examination.summary.entries == 100_001
    assert len(examination.summary.resources) == 50_000
