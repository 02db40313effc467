"""The pages for programs are true: their examples are run as written, one after the other."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resourcesync import Mirror, MirrorState, Network, Publisher
from resourcesync.adapters.http.settings import FetchSettings
from resourcesync.app.serving.applications import LateApplication
from resourcesync.errors import ConfigurationError, DiscontinuityError
from resourcesync.server import create_app
from resourcesync.server.connection_limits import ConnectionLimits
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.servers.asgi import ask
from tests.support.servers.hostile_server import HostileServer, answer
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.embedding import EARLY
from tests.support.sources.embedding import FILES as TEXTS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-from-python.md"
ADDRESS = "https://museum.example"
FILES = {"objects/1.txt": "a jug", "objects/2.txt": "a bowl"}


def blocks_of(page: Path) -> list[str]:
    text = page.read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == text.count("```python")
    return blocks


def run_blocks(page: Path, blocks: list[str], names: dict[str, Any], address: str = "") -> None:
    """Run blocks of a page one after the other, at another address than it shows."""
    for block in blocks:
        code = block.replace(ADDRESS, address or ADDRESS)
        exec(compile(code, page.name, "exec"), names)


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        path = tmp_path / "public" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    late = LateApplication()
    with ServerThread(late) as server:
        publisher = Publisher("public", url=server.uri)
        publisher.publish()
        late.application = publisher.application()
        yield server.uri.rstrip("/")


def test_the_examples_of_the_page_do_what_it_says(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks, names = blocks_of(PAGE), dict[str, Any](__name__="example")

    run_blocks(PAGE, blocks, names, address)

    assert len(blocks) == 11
    assert names["report"].state is MirrorState.IN_SYNC
    assert names["audit"].in_sync
    assert names["index"] == {f"{address}/{name}": text.encode() for name, text in FILES.items()}
    assert [change.uri for change in names["mirror"].changes(since=names["position"])] == []
    assert names["done"].resources == len(FILES)
    assert names["count"] == 100
    said = capsys.readouterr()
    assert said.err == ""
    assert "in sync 2 0 0" in said.out
    assert "Resource List 1.1" in said.out
    assert "error" not in said.out


ERRORS_PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "errors-in-python.md"
COUNT = 60


class Museum:
    """A Source of many files, its mirror, and the programs of the page."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.names: dict[str, Any] = {"__name__": "example"}
        self.publisher = Publisher("public", url=f"{address}/")
        for number in range(COUNT):
            self.write(f"{number}.txt")
        self.publisher.publish()
        self.run(0)

    def write(self, name: str) -> None:
        Path("public").mkdir(exist_ok=True)
        (Path("public") / name).write_text(name)

    def run(self, number: int) -> None:
        blocks = blocks_of(ERRORS_PAGE)
        assert len(blocks) == 5
        run_blocks(ERRORS_PAGE, [blocks[number]], self.names, self.address)


@pytest.fixture
def museum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Museum]:
    monkeypatch.chdir(tmp_path)
    late = LateApplication()
    with ServerThread(late) as server:
        museum = Museum(server.uri.rstrip("/"))
        late.application = museum.publisher.application()
        yield museum


def test_lost_changes_make_the_program_start_over(museum: Museum) -> None:
    update, follow, index = (museum.names[name] for name in ("update", "follow", "index"))
    assert update(Mirror(museum.address, "museum")) == 900
    position = follow(Mirror(None, "museum"), "start")
    assert len(index) == COUNT
    shutil.rmtree("museum")
    update(Mirror(museum.address, "museum"))

    with pytest.raises(DiscontinuityError) as lost:
        list(Mirror(None, "museum").changes(since=position))
    after = follow(Mirror(None, "museum"), position)

    assert lost.value.code == "changes-lost"
    assert (after, index) == ("start", {})
    follow(Mirror(None, "museum"), after)
    assert len(index) == COUNT


def test_held_deletions_are_shown_and_released(
    museum: Museum, capsys: pytest.CaptureFixture[str]
) -> None:
    update = museum.names["update"]
    update(Mirror(museum.address, "museum"))
    for number in range(40):
        (Path("public") / f"{number}.txt").unlink()
    museum.publisher.publish()

    update(Mirror(museum.address, "museum"))
    assert f"40 deletions of {COUNT} copies are held" in capsys.readouterr().out
    museum.run(1)
    assert len(capsys.readouterr().out.splitlines()) == 40
    museum.run(2)

    assert museum.names["report"].deleted == 40
    assert capsys.readouterr().out == "40 deleted; in sync\n"
    assert museum.names["mirror"].pull().state is MirrorState.IN_SYNC


def test_the_settings_of_requests_are_those_of_the_page(
    museum: Museum, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSEUM_TOKEN", "s3cret")
    museum.run(3)
    museum.run(4)
    text = ERRORS_PAGE.read_text("utf-8")
    built_in = FetchSettings()

    assert museum.names["mirror"].pull().created == COUNT
    assert f"| `timeout` | {built_in.timeout:.0f} |" in text
    assert f"| `retries` | {built_in.retries} |" in text
    assert built_in.per_host == built_in.jobs
    assert f"| `per_host`, `jobs` | {built_in.jobs} |" in text
    with HostileServer() as server:
        server.on("/list.xml", answer("401 Unauthorized"))
        network = Network(credentials=(museum.names["secret"],))
        museum.names["update"](Mirror(f"{server.origin}/list.xml", "other", network=network))
        assert {asked.fields.get("authorization") for asked in server.asked} == {"Bearer s3cret"}


ROOT = Path(__file__).parents[2]
FEEDING_PAGE = ROOT / "docs" / "how-to" / "feed-an-index.md"


def test_the_program_for_a_vector_store_has_the_text_of_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    [program] = blocks_of(FEEDING_PAGE)
    names: dict[str, Any] = {"__name__": "example"}

    with TinySource() as source:
        source.offer(TEXTS, at=EARLY)
        run_blocks(FEEDING_PAGE, [program.replace("https://docs.example.org", source.url)], names)
        base = source.url.rstrip("/")

    store = names["store"]
    assert set(store.uris()) == {f"{base}{name}" for name, body in TEXTS.items() if body}
    assert Path("position").read_text()
    store.delete(store.ids(store.uris()[0]))
    assert len(store.uris()) == len([body for body in TEXTS.values() if body]) - 1


HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
MOUNT, OPERATE = HOW_TO / "serve.md", HOW_TO / "operate-a-server.md"


def test_the_examples_of_the_page_on_the_server_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "jug.txt").write_text("a jug")
    Publisher("public", url="https://museum.example/data/").publish()
    names: dict[str, Any] = {"__name__": "example"}

    run_blocks(MOUNT, blocks_of(MOUNT), names)

    app = names["app"]
    jug = ask(app, "/data/jug.txt")
    assert jug.body == b"a jug"
    assert "https://museum.example/data/resourcesync/capabilitylist.xml" in jug.fields["link"]
    target = ask(app, "/.well-known/resourcesync").fields["location"]
    assert b'capability="description"' in ask(app, target).body
    figures = ask(names["operations"], "/metrics").body.decode()
    assert 'served_requests_total{status="200"} 2' in figures
    for name in re.findall(r"^# TYPE (\w+)", figures, re.MULTILINE):
        of_reports = re.sub("(resourcesync_source_).*", r"\1…", name)
        assert f"`{of_reports}" in OPERATE.read_text("utf-8")


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
