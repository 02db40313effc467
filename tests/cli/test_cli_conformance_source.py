"""``resourcesync conformance URL``: each fault of a live Source is named by its clause."""

from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.cli.main import run
from resourcesync.conformance.scripted_source import (
    CAPABILITIES,
    CHANGES,
    RESOURCES,
    ScriptedSource,
)
from resourcesync.conformance.site import ScriptedAnswer, ScriptedSite, SiteServer
from tests.support.commands.command_line import Said, rows

DESCRIPTION = ".well-known/resourcesync"
Rows = list[dict[str, object]]


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer() as server:
        yield server


def begun(server: SiteServer) -> ScriptedSource:
    source = ScriptedSource(server.base, SystemClock().now())
    source.put("a.txt", "b.txt", "c.txt")
    source.list_resources()
    source.forget_changes()
    source.put("a.txt", text="second")
    source.put("d.txt")
    source.remove("b.txt")
    server.serve(source.site())
    return source


def judged(server: SiteServer, said: Said, *words: str) -> tuple[int, dict[str, Rows]]:
    """Return the exit code, and the rows by their types."""
    code = run(["conformance", server.base, "--json", *words])
    found: dict[str, Rows] = {}
    for row in rows(said):
        found.setdefault(str(row["type"]), []).append(row)
    return code, found


def failed(found: dict[str, Rows]) -> set[object]:
    return {
        row["rule"]
        for row in found["clause"]
        if row["result"] == "failed" and row["level"] == "MUST"
    }


def edited(name: str, old: str, new: str) -> Callable[[ScriptedSite], ScriptedSite]:
    def edit(site: ScriptedSite) -> ScriptedSite:
        text = site.answers[name].body.decode()
        assert old in text, (old, text)
        return site.with_answers({name: ScriptedAnswer(body=text.replace(old, new, 1).encode())})

    return edit


def answered(name: str, **answer: object) -> Callable[[ScriptedSite], ScriptedSite]:
    return lambda site: site.with_answers({name: ScriptedAnswer(**answer)})  # type: ignore[arg-type]


FAULTS = {
    "not well-formed": (edited(RESOURCES, "</urlset>", ""), "G01"),
    "another root": (edited(RESOURCES, "0.9", "0.8"), "G02"),
    "no capability": (edited(CHANGES, 'capability="changelist" ', ""), "G06"),
    "an address without its host": (edited(RESOURCES, "<loc>http://127", "<loc>127"), "G13a"),
    "a time that is none": (edited(RESOURCES, "<lastmod>20", "<lastmod>"), "G17"),
    "a length that is none": (edited(RESOURCES, 'length="', 'length="-'), "G26"),
    "a hash that is none": (edited(RESOURCES, "sha-256:", "sha-256:zz"), "G28"),
    "an announcement that is wrong": (edited(CAPABILITIES, '"changelist"', '"changedump"'), "G08"),
    "a description of another kind": (
        edited(DESCRIPTION, '"description"', '"resourcelist"'),
        "SD01",
    ),
    "a Capability List without up": (edited(CAPABILITIES, 'rel="up"', 'rel="license"'), "CA01"),
    "one capability twice": (edited(CAPABILITIES, '"changelist"', '"resourcelist"'), "CA05"),
    "a Resource List without its time": (edited(RESOURCES, ' at="', ' x:at="'), "RL01"),
    "a Resource List without up": (edited(RESOURCES, 'rel="up"', 'rel="license"'), "RL02"),
    "a change among resources": (edited(RESOURCES, "length", 'change="created" length'), "RL06"),
    "a Change List without its begin": (edited(CHANGES, ' from="', ' x:from="'), "CH01"),
    "a change without its kind": (edited(CHANGES, ' change="updated"', ""), "CH03"),
    "a change of an unknown kind": (edited(CHANGES, '"created"', '"made"'), "G33"),
    "other bytes": (answered("c.txt", body=b"other content of c.txt"), "HT02"),
}


def declared(name: str) -> Callable[[ScriptedSite], ScriptedSite]:
    return edited(name, "<urlset", '<urlset xmlns:x="http://e.example/"')


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_of_a_live_source_is_named_by_its_clause(
    name: str, server: SiteServer, said: Said
) -> None:
    fault, rule = FAULTS[name]
    site = begun(server).site()
    for document in (RESOURCES, CHANGES):
        site = declared(document)(site)
    server.serve(fault(site))

    code, found = judged(server, said)

    assert code == 1
    assert rule in failed(found)
    row = next(row for row in found["clause"] if row["rule"] == rule)
    assert row["evidence"]


def test_a_source_without_a_fault_has_no_failed_clause(server: SiteServer, said: Said) -> None:
    begun(server)

    code, found = judged(server, said)

    assert failed(found) == set()
    assert code == 3
    untested = {row["rule"] for row in found["clause"] if row["result"] == "not-tested"}
    assert untested == {"CH10", "CH11", "CH14"}


def test_documents_beyond_the_limit_are_not_called_passed(server: SiteServer, said: Said) -> None:
    begun(server)

    code, found = judged(server, said, "--max-documents", "2")

    assert code == 3
    assert found["run.end"][0]["verdict"] == "incomplete"
    assert "more are listed" in str(found["run.end"][0]["bounds"])


def test_what_cannot_be_fetched_is_named_and_nothing_conforms(
    server: SiteServer, said: Said
) -> None:
    site = begun(server).site()
    server.serve(answered(CHANGES, status=500)(site))

    code, found = judged(server, said, "--retries", "0")

    assert code == 3
    assert f"{server.base}{CHANGES}" in str(found["run.end"][0]["bounds"])


def test_the_report_of_a_source_is_a_page_and_a_badge(server: SiteServer, tmp_path: Path) -> None:
    site = begun(server).site()
    server.serve(answered("c.txt", body=b"other content of c.txt")(site))
    page, badge = tmp_path / "report.html", tmp_path / "badge.svg"

    code = run(["conformance", server.base, "-q", "--report", str(page), "--badge", str(badge)])

    assert code == 1
    text = page.read_text("utf-8")
    assert f"the sha-256 of {server.base}c.txt is not the list" in text
    assert "the Source was visited once" in text
    assert "<script" not in text
    assert "differs" in "".join(ET.parse(badge).getroot().itertext())


@pytest.mark.parametrize(
    ("links", "result", "code"),
    [
        ('<{hub}>; rel="hub", <>; rel="self"', "passed", 3),
        ('<{hub}>; rel="hub"', "failed", 1),
        ("", "not-applicable", 3),
    ],
)
def test_the_links_to_a_hub_are_tested_and_its_messages_are_not(
    links: str, result: str, code: int, server: SiteServer, said: Said
) -> None:
    site = begun(server).site()
    body = site.answers[CAPABILITIES].body
    linked = ScriptedAnswer(body=body, links=links.format(hub=f"{server.base}hub"))
    server.serve(site.with_answers({CAPABILITIES: linked}))

    ended, found = judged(server, said)

    rows = {row["rule"]: row for row in found["clause"] if str(row["rule"]).startswith("NT")}
    assert (ended, rows["NT06"]["result"]) == (code, result)
    assert rows["NT04"]["result"] == "not-applicable"
    for rule in ("NT01", "NT02", "NT03", "NT05"):
        untested = (rows[rule]["result"], "record its messages" in str(rows[rule]["reason"]))
        assert untested == (("not-tested", True) if links else ("not-applicable", False))
