"""``validate --live``: where it stops, and what it says of the rest."""

import pytest

from resourcesync.cli.main import run
from resourcesync.validator import crawl
from resourcesync.validator.events import CutShort
from tests.support.commands.command_line import Said
from tests.support.rules.judged import broken, judged, offer
from tests.support.servers.tiny_source import TinySource

# --- where it stops ---


def offer_many(source: TinySource, number: int) -> None:
    """A Source with an index of so many lists."""
    offer(source)
    up = f'<rs:ln rel="up" href="{source.url}/capabilitylist.xml"/>'
    md = '<rs:md capability="resourcelist" at="2026-01-02T00:00:00Z"/>'
    back = f'<rs:ln rel="index" href="{source.url}/resourcelist.xml"/>'
    names = [f"/part{number}.xml" for number in range(number)]
    for name in names:
        source.put_document(name, f"{up}{back}{md}", [])
    parts = [f"<sitemap><loc>{source.url}{name}</loc></sitemap>" for name in names]
    source.put_document("/resourcelist.xml", f"{up}{md}", parts)
    text = source.answers["/resourcelist.xml"].body.decode()
    source.put(
        "/resourcelist.xml", text.replace("urlset", "sitemapindex").encode(), "application/xml"
    )


def asked_documents(source: TinySource) -> set[str]:
    return {asked.target for asked in source.asked} - {"/robots.txt", "/"}


def test_it_stops_at_its_limit_and_says_so(source: TinySource, said: Said) -> None:
    offer_many(source, 10)

    assert run(["validate", source.url, "--live", "--max-documents", "5"]) == 0

    lines = said.readouterr().out.splitlines()
    assert lines[-2] == (
        f"{source.url}: warning: only the first 5 documents were checked, and more are listed;"
        " --max-documents sets the limit"
    )
    assert lines[-1] == (
        "Checked 5 documents, 12 entries: 0 errors, 0 warnings; not all documents were checked"
    )
    assert len(asked_documents(source)) == 5
    assert run(["validate", source.url, "--live", "--max-documents", "5", "-q"]) == 0
    assert said.readouterr().out.splitlines() == [lines[-1]]


def test_where_more_is_listed_than_is_kept_all_documents_are_judged_all_the_same(
    source: TinySource, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer_many(source, 4)
    monkeypatch.setattr(crawl, "MAX_TARGETS", 3)

    assert run(["validate", source.url, "--live"]) == 0

    lines = said.readouterr().out.splitlines()
    assert lines[-2] == (
        f"{source.url}: warning: 7 documents list more than can be stored:"
        " their relations were checked only in part"
    )
    assert lines[-1].endswith("; not all documents were checked")
    assert len(asked_documents(source)) == 7
    assert run(["validate", source.url, "--live", "--fail-on", "warning", "-q"]) == 1

    monkeypatch.setattr(crawl, "MAX_TARGETS", 6)
    assert run(["validate", source.url, "--live", "-q"]) == 0
    assert "not all" not in said.readouterr().out.splitlines()[-1]


def test_what_is_missing_is_not_held_against_a_source_that_was_not_read_whole(
    source: TinySource,
) -> None:
    offer_many(source, 3)
    target = f"{source.url}/capabilitylist.xml"
    body = source.answers["/capabilitylist.xml"].body
    source.put("/capabilitylist.xml", body.replace(b'rel="up"', b'rel="x"'), "application/xml")

    assert broken(judged(target, live=True), "SD09") != []
    cut = judged(target, live=True, most_documents=2)

    assert broken(cut, "SD09") == []
    assert [item.documents for item in cut if isinstance(item, CutShort)] == [2]
