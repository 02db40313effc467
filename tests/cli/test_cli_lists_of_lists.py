"""Lists that list lists, as some Sources have it: indexes but for their root."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, MIRRORED, Said, rows
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource
from tests.support.software.software_source import Event, Known
from tests.support.software.weko import Weko
from tests.support.worlds.network import BASE

AT = 'at="2026-01-01T00:00:00Z"'


@pytest.fixture
def mistaken(source: TinySource) -> TinySource:
    """Offer two lists in one that ought to be an index; each tells the moment, and no more."""
    up = f'<rs:ln rel="up" href="{source.url}/capabilitylist.xml"/>'
    head = f'{up}<rs:md capability="resourcelist" {AT}/>'
    entries = [source.entry(target, body) for target, body in FILES.items()]
    for name, some in (("/one.xml", entries[:5]), ("/two.xml", entries[5:])):
        source.put_document(name, head, some)
    lists = [
        f"<url><rs:md {AT}/><loc>{source.url}{name}</loc></url>"
        for name in ("/one.xml", "/two.xml")
    ]
    source.put_document("/resourcelist.xml", head, lists)
    return source


def test_it_is_pulled_as_an_index(mistaken: TinySource) -> None:
    assert run(["pull", mistaken.url, "museum"]) == 0

    assert files_of(Path("museum")) == MIRRORED


def test_the_judge_names_the_mistake_and_goes_on_to_the_lists(
    mistaken: TinySource, said: Said
) -> None:
    assert run(["validate", mistaken.url, "--live", "--json"]) == 1

    found = rows(said)
    told = [row for row in found if row["type"] == "finding"]
    misused = [row for row in told if row["rule"] == "RL08"]
    assert [(row["severity"], row["uri"]) for row in misused] == [
        ("warning", f"{mistaken.url}/resourcelist.xml")
    ]
    judged = {row["uri"] for row in found if row["type"] == "document"}
    assert {f"{mistaken.url}/{name}.xml" for name in ("one", "two")} <= judged


def test_a_list_among_the_resources_is_found_by_what_is_served(
    source: TinySource, said: Said
) -> None:
    inner = source.answers["/resourcelist.xml"].body
    source.put("/inner.xml", inner)
    source.offer_entries([source.entry("/inner.xml", inner)])

    run(["validate", source.url, "--sample", "5", "--json"])

    told = [row for row in rows(said) if row.get("rule") == "RL08"]
    assert [row["message"] for row in told] == [f"{source.url}/inner.xml is a Resource List itself"]


@pytest.fixture
def weko(source: TinySource) -> TinySource:
    """Offer what WEKO3 does, with one change."""
    now = datetime(2026, 1, 3, 9, tzinfo=UTC)
    event = Event(time=now.replace(day=2), uri=f"{BASE}a.html", change="updated", data=b"a")
    known = Known(now=now, contents={event.uri: event.data}, events=[event])
    for path, body in Weko().documents(known).items():
        text = body.replace(BASE.encode(), f"{source.url}/".encode())
        source.put(f"/{path}", text, "application/xml")
    source.put("/a.html", b"a")
    return source
