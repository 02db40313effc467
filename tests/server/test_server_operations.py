"""What those who run a Source ask it, and the pages that lead to it."""

import re
from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving.applications import PublishedTree, find_tree
from resourcesync.errors import StorageError
from resourcesync.model import formatting
from resourcesync.model.vocabulary import Capability
from resourcesync.server.admin import OperationsApplication
from resourcesync.server.app import ServedSource, create_app
from resourcesync.server.dashboard.front_page import OfferedList, Overview
from resourcesync.server.metrics import Metric, write_metrics
from tests.support.servers.asgi import ask
from tests.support.servers.served_tree import LIST_URI, media_type, plant, settled


@pytest.fixture
def tree(tmp_path: Path) -> PublishedTree:
    (tmp_path / "a.txt").write_text("1")
    publish_tree(tmp_path, {"url": "http://h.example/"}, clock=SystemClock())
    (tmp_path / "b.txt").write_text("2")
    publish_tree(tmp_path, {}, clock=SystemClock())
    return find_tree(tmp_path)


def test_a_server_that_lives_and_can_serve_says_so(tree: PublishedTree) -> None:
    app = tree.operations()

    assert (ask(app, "/livez").status, ask(app, "/livez").body) == (200, b"live\n")
    assert (ask(app, "/readyz").status, ask(app, "/readyz").body) == (200, b"ready\n")
    assert ask(app, "/").status == 404
    assert ask(app, "/metrics", method="POST").status == 405


@pytest.mark.parametrize("gone", ["resourcesync/capabilitylist.xml", ".resourcesync/catalogue.db"])
def test_a_source_that_cannot_be_served_is_not_ready_but_lives(
    tree: PublishedTree, gone: str
) -> None:
    app = tree.operations()
    (tree.root / gone).write_bytes(b"nothing")

    answer = ask(app, "/readyz")

    assert answer.status == 503
    assert answer.body.startswith(b"Not ready: ")
    assert answer.fields["retry-after"]
    assert ask(app, "/livez").status == 200
    assert ask(app, "/metrics").status == 503


def test_a_list_that_cannot_be_read_is_told_of(tree: PublishedTree) -> None:
    path = tree.root / "resourcesync" / "capabilitylist.xml"
    path.unlink()
    path.mkdir()

    answer = ask(tree.operations(), "/readyz")

    assert answer.status == 503
    assert b"cannot read" in answer.body


def test_the_figures_are_those_of_the_source_and_of_what_was_served(tree: PublishedTree) -> None:
    source = tree.application(SystemClock())
    app = tree.operations(source.metrics)
    sent = len(ask(source, "/a.txt").body) + len(ask(source, "/nope").body)
    ask(source, "/b.txt", method="HEAD")

    answer = ask(app, "/metrics")

    assert answer.fields["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.body.decode().splitlines()
    name = tree.root.name
    assert f'resourcesync_source_entries{{set="{name}",capability="resourcelist"}} 2' in lines
    assert f'resourcesync_source_entries{{set="{name}",capability="changelist"}} 1' in lines
    assert 'resourcesync_served_requests_total{status="200"} 2' in lines
    assert 'resourcesync_served_requests_total{status="404"} 1' in lines
    assert f"resourcesync_served_bytes_total {sent}" in lines
    newest = max(path.stat().st_mtime for path in (tree.root / "resourcesync").iterdir())
    written = next(line for line in lines if line.startswith("resourcesync_source_last_publish"))
    assert float(written.split()[1]) == pytest.approx(newest)
    assert any(line.startswith('resourcesync_build_info{version="') for line in lines)
    assert all(re.fullmatch(r'#.*|[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9.e+]+', x) for x in lines)


def test_a_label_cannot_forge_a_line() -> None:
    figure = Metric(
        name="x", kind="gauge", help_text="X.", values=(((("set", 'a"\n\\b\ud800'),), 1.5),)
    )

    assert write_metrics([figure]) == (
        b'# HELP x X.\n# TYPE x gauge\nx{set="a\\"\\n\\\\b\\ud800"} 1.5\n'
    )


def _resource_list(uri: str) -> OfferedList:
    return OfferedList(capability=Capability.RESOURCE_LIST, uri=uri)


def test_a_look_that_takes_too_long_is_not_ready() -> None:
    app = OperationsApplication(look=lambda: None, patience=0.0)

    assert ask(app, "/readyz").status == 503


def test_the_page_leads_to_every_list_and_says_how_to_follow(tree: PublishedTree) -> None:
    page = ask(tree.application(SystemClock()), "/")

    text = page.body.decode()
    base = "http://h.example/"
    assert page.fields["content-type"] == "text/html; charset=utf-8"
    policy = page.fields["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert page.fields["cache-control"] == "no-cache"
    assert f'<link rel="resourcesync" href="{base}resourcesync/capabilitylist.xml">' in text
    size = (tree.out / "resourcesync" / "resourcelist.xml").stat().st_size
    assert f'<a href="{base}resourcesync/resourcelist.xml">Resource List</a>' in text
    assert f'<a href="{base}resourcesync/changelist.xml">Change List</a>' in text
    assert f">{formatting.size(size)}</td>" in text
    assert text.count('data-label="Written">20') == 2
    assert "2 resources, 1 change recorded." in text
    assert f"resourcesync pull {base}" in text
    app = tree.application(SystemClock())
    assert ask(app, "/", fields={"if-none-match": page.fields["etag"]}).status == 304


def test_nothing_that_a_page_tells_is_taken_for_markup(tmp_path: Path) -> None:
    plant(tmp_path)
    hostile = '"><script>alert(1)</script>&'
    served = ServedSource(
        root=tmp_path,
        capability_list_uri="http://x/'c.xml",
        media_type=media_type,
        overview=lambda: Overview(address=hostile, lists=(_resource_list("http://x/" + hostile),)),
    )

    text = ask(create_app(served, clock=settled()), "/").body.decode()

    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "http://x/&#x27;c.xml" in text


def test_the_pages_are_made_once_for_many_requests_and_without_what_fails(tmp_path: Path) -> None:
    made: list[int] = []

    def overview() -> Overview:
        made.append(1)
        if len(made) > 1:
            raise StorageError("gone")
        return Overview(address="http://x/", lists=(_resource_list("http://x/r.xml"),))

    app = create_app(
        ServedSource(
            root=plant(tmp_path / "tree"),
            capability_list_uri=LIST_URI,
            media_type=media_type,
            overview=overview,
        ),
        clock=SystemClock(),
    )

    pages = [ask(app, path) for path in ("/", "/robots.txt", "/", "/robots.txt")]
    assert made == [1]
    assert {page.status for page in pages} == {200}
    assert pages[1].body == b"User-agent: *\nAllow: /\nSitemap: http://x/r.xml\n"
    assert "link" not in pages[1].fields
