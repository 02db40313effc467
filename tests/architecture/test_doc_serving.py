"""The pages on the server are true: its examples are run, its tables are those of the code."""

import re
from pathlib import Path
from typing import Any

import pytest

from resourcesync import Publisher
from resourcesync.errors import ConfigurationError
from resourcesync.server import create_app
from resourcesync.server.uvicorn_server import ConnectionLimits
from tests.support.servers.asgi import ask

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
MOUNT, OPERATE = HOW_TO / "serve.md", HOW_TO / "operate-a-server.md"


def test_the_examples_of_the_page_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "jug.txt").write_text("a jug")
    Publisher("public", url="https://museum.example/data/").publish()
    text = MOUNT.read_text("utf-8")
    names: dict[str, Any] = {"__name__": "example"}

    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(block, MOUNT.name, "exec"), names)

    app = names["app"]

    jug = ask(app, "/data/jug.txt")
    assert jug.body == b"a jug"
    assert "https://museum.example/data/resourcesync/capabilitylist.xml" in jug.fields["link"]
    target = ask(app, "/.well-known/resourcesync").fields["location"]
    assert b'capability="description"' in ask(app, target).body
    figures = ask(names["operations"], "/metrics").body.decode()
    assert 'served_requests_total{status="200"} 2' in figures
    for name in re.findall(r"^# TYPE (\w+)", figures, re.MULTILINE):
        assert f"`{name}" in OPERATE.read_text("utf-8")


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    text, limits = OPERATE.read_text("utf-8"), ConnectionLimits()

    assert f"`--connections`, {limits.connections};" in text
    assert f"| {limits.header_bytes // 1024} KiB |" in text
    assert f"| {limits.client_timeout:.0f} to {2 * limits.client_timeout:.0f} s |" in text
    assert f"| {limits.keep_alive} s |" in text


def test_an_application_of_ones_own_has_all_that_serve_has(tmp_path: Path) -> None:
    (tmp_path / "jug.txt").write_text("a jug")
    with pytest.raises(ConfigurationError, match="not published"):
        create_app(tmp_path)
    Publisher(tmp_path, url="https://museum.example/").publish()

    def links(path: str) -> tuple[str, ...]:
        return ('<https://museum.example/terms>; rel="license"',) if path == "jug.txt" else ()

    app = create_app(str(tmp_path), links=links)

    assert ask(app, "/jug.txt").fields["link"].endswith('rel="license"')
    assert "link" not in ask(app, "/.well-known/resourcesync").fields
