"""``validate --live``: where it stops, and what it says of the rest."""

import json

import pytest

from resourcesync.cli.main import run
from resourcesync.validator import crawl
from resourcesync.validator.events import CutShort
from resourcesync.validator.rule import RULES
from tests.support.commands.command_line import Said, rows
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


def test_a_source_that_fits_is_not_said_to_be_cut(source: TinySource, said: Said) -> None:
    offer_many(source, 10)

    assert run(["validate", source.url, "--live", "--max-documents", "13"]) == 0

    text = said.readouterr().out
    assert text.endswith("0 warnings\n")
    assert "max-documents" not in text


def test_a_limit_is_a_warning_that_can_fail(source: TinySource, said: Said) -> None:
    offer_many(source, 3)
    words = ["validate", source.url, "--live", "--max-documents", "5", "--select", "RS1"]

    assert run([*words]) == 0
    assert run([*words, "--fail-on", "warning"]) == 1
    assert run([*words, "--max-documents", "9", "--fail-on", "warning"]) == 0


def test_every_format_says_that_it_stopped(source: TinySource, said: Said) -> None:
    offer_many(source, 3)
    words = ["validate", source.url, "--live", "--max-documents", "5"]

    def wrote(form: str) -> str:
        assert run([*words, "--format", form]) == 0
        return said.readouterr().out

    assert f"::warning title=cut-short::{source.url}" in wrote("github")
    found = [json.loads(line) for line in wrote("json").splitlines()]
    (event,) = [item for item in found if item["type"] == "cut-short"]
    assert (event["uri"], event["documents"]) == (source.url, 5)
    assert found[-1]["cut_short"] == 1


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


def test_the_description_above_a_capability_list_is_judged_too(source: TinySource) -> None:
    offer(source)

    events = judged(f"{source.url}/capabilitylist.xml", live=True)

    assert broken(events, *RULES) == []
    assert "/.well-known/resourcesync" in {asked.target for asked in source.asked}


# --- one document alone ---


def test_a_document_that_leads_to_others_is_said_to_be_judged_alone(
    source: TinySource, said: Said
) -> None:
    offer(source)
    alone = "  checked only this document; --live follows its links"

    assert run(["validate", f"{source.url}/capabilitylist.xml"]) == 0
    assert said.readouterr().out.splitlines()[-1] == alone

    assert run(["validate", source.url, f"{source.url}/capabilitylist.xml", "-q"]) == 0
    lines = said.readouterr().out.splitlines()
    assert lines[-1] == "  checked only 2 documents; --live follows their links"

    assert run(["validate", f"{source.url}/capabilitylist.xml", "--json"]) == 0
    told = rows(said)
    assert [row["others"] for row in told if row["type"] == "alone"] == [2]
    assert told[-1]["judged_alone"] == 1


@pytest.mark.parametrize("words", [("/resourcelist.xml",), ("", "--live")])
def test_nothing_is_said_where_no_link_was_left_out(
    source: TinySource, said: Said, words: tuple[str, ...]
) -> None:
    offer(source)
    path, *options = words

    assert run(["validate", source.url + path, *options]) == 0

    assert "alone" not in said.readouterr().out
