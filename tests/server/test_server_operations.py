"""What those who run a Source ask it, and the pages that lead to it."""

import re
from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publisher import Publisher
from resourcesync.app.serving.applications import PublishedTree, find_tree
from resourcesync.server.admin import OperationsApplication
from resourcesync.server.app import Application
from resourcesync.server.metrics import Metric, write_metrics
from tests.support.servers.asgi import ask
from tests.support.servers.served_tree import plant, served_source, settled


@pytest.fixture
def tree(tmp_path: Path) -> PublishedTree:
    (tmp_path / "a.txt").write_text("1")
    Publisher(tmp_path, url="http://h.example/").publish()
    (tmp_path / "b.txt").write_text("2")
    Publisher(tmp_path).publish()
    return find_tree(tmp_path)


def test_a_server_that_lives_and_can_serve_says_so(tree: PublishedTree) -> None:
    app = tree.operations()

    assert (ask(app, "/livez").status, ask(app, "/livez").body) == (200, b"live\n")
    assert (ask(app, "/readyz").status, ask(app, "/readyz").body) == (200, b"ready\n")
    assert ask(app, "/").status == 404
    assert ask(app, "/metrics", method="POST").status == 405


@pytest.mark.parametrize(
    ("gone", "is_folder"),
    [
        ("resourcesync/capabilitylist.xml", False),
        ("resourcesync/capabilitylist.xml", True),
        (".resourcesync/catalogue.db", False),
    ],
)
def test_a_source_that_cannot_be_served_is_not_ready_but_lives(
    tree: PublishedTree, gone: str, *, is_folder: bool
) -> None:
    app, path = tree.operations(), tree.root / gone
    path.unlink()
    path.mkdir() if is_folder else path.write_bytes(b"nothing")

    answer = ask(app, "/readyz")

    assert answer.status == 503
    assert answer.body.startswith(b"Not ready: ")
    assert answer.fields["retry-after"]
    assert ask(app, "/livez").status == 200
    assert ask(app, "/metrics").status == 503


def test_the_figures_are_those_of_the_source_and_of_what_was_served(tree: PublishedTree) -> None:
    source = tree.application(SystemClock())
    app = tree.operations(source.metrics)
    sent = len(ask(source, "/a.txt").body) + len(ask(source, "/nope").body)
    ask(source, "/b.txt", method="HEAD")

    answer = ask(app, "/metrics")

    assert answer.fields["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.body.decode().splitlines()
    name = tree.root.name
    assert f'resourcesync_source_resources{{source="{name}"}} 2' in lines
    assert f'resourcesync_source_changes{{source="{name}"}} 1' in lines
    assert 'resourcesync_served_requests_total{status="200"} 2' in lines
    assert 'resourcesync_served_requests_total{status="404"} 1' in lines
    assert f"resourcesync_served_bytes_total {sent}" in lines
    newest = max(path.stat().st_mtime for path in (tree.root / "resourcesync").iterdir())
    written = next(line for line in lines if line.startswith("resourcesync_source_changed_at"))
    assert float(written.split()[1]) == pytest.approx(newest, abs=2)
    assert any(line.startswith('resourcesync_build_info{version="') for line in lines)
    assert all(re.fullmatch(r'#.*|[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9.e+]+', x) for x in lines)


def test_a_label_cannot_forge_a_line() -> None:
    figure = Metric(
        name="x", kind="gauge", help_text="X.", values=(((("set", 'a"\n\\b\ud800'),), 1.5),)
    )

    assert write_metrics([figure]) == (
        b'# HELP x X.\n# TYPE x gauge\nx{set="a\\"\\n\\\\b\\ud800"} 1.5\n'
    )


def test_a_look_that_takes_too_long_is_not_ready() -> None:
    app = OperationsApplication(look=lambda: None, patience=0.0)

    assert ask(app, "/readyz").status == 503


def test_the_page_at_the_top_leads_to_the_lists_and_says_how_to_follow(tree: PublishedTree) -> None:
    app = tree.application(SystemClock())
    page = ask(app, "/")

    text = page.body.decode()
    lists = "http://h.example/resourcesync/capabilitylist.xml"
    assert page.fields["content-type"] == "text/html; charset=utf-8"
    assert page.fields["content-security-policy"].startswith("default-src 'none'")
    assert page.fields["link"] == f'<{lists}>; rel="resourcesync"'
    assert f'<link rel="resourcesync" href="{lists}">' in text
    assert '<a href=".well-known/resourcesync">' in text
    assert f"resourcesync pull {lists}" in text
    assert ask(app, "/", fields={"if-none-match": page.fields["etag"]}).status == 304
    assert ask(app, "/robots.txt").status == 404


def test_nothing_in_the_address_of_the_lists_is_taken_for_markup(tmp_path: Path) -> None:
    served = served_source(plant(tmp_path), capability_list_uri="http://x/'&c.xml")
    text = ask(Application(served, clock=settled()), "/").body.decode()

    assert 'href="http://x/&#x27;&amp;c.xml"' in text
