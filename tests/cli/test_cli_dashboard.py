"""The pages of ``watch --admin``: real mirrors, a real server, and Chromium where there is one."""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.cli.configured_mirrors import MirrorConfiguration, load
from resourcesync.cli.main import run
from resourcesync.cli.render.status_table import status_table
from resourcesync.cli.service.watch_pages import WatchPages
from resourcesync.server.admin import OperationsApplication
from resourcesync.server.dashboard.app import Dashboard
from resourcesync.server.dashboard.mirror_page import mirror_page
from resourcesync.server.dashboard.views import EndedAudit
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.commands.command_line import Said
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.dashboard_week import configured, served, subscriptions
from tests.support.sources.own_source import source_pages
from tests.support.worlds.world import World


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> MirrorConfiguration:
    return configured(tmp_path_factory.mktemp("week"))


@pytest.fixture(scope="module")
def pages(configuration: MirrorConfiguration) -> WatchPages:
    names = lambda: (configuration.names, configuration)  # noqa: E731 - said twice
    return WatchPages(names, SystemClock(), subscriptions)


@pytest.fixture(scope="module")
def address(configuration: MirrorConfiguration, pages: WatchPages) -> Iterator[str]:
    with served(configuration, pages) as found:
        yield found


@pytest.fixture(scope="module")
def own_source(configuration: MirrorConfiguration) -> Iterator[str]:
    assert configuration.file is not None
    with source_pages(configuration.file.path.parent / "demo") as (address, _):
        yield address


class Rows(HTMLParser):
    """The cells of the rows of a page, as their texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in {"td", "th"}:
            self.rows[-1].append("")
            self.inside = True
        elif tag == "title":
            self.inside = False

    def handle_endtag(self, tag: str) -> None:
        self.inside = tag != "td" and (self.inside or tag == "title")

    def handle_data(self, data: str) -> None:
        if self.inside and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def get(address: str) -> str:
    with urlopen(address) as answer:
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-security-policy"].startswith("default-src 'none';")
        return str(answer.read().decode())


def status(
    configuration: MirrorConfiguration, capsys: pytest.CaptureFixture[str]
) -> dict[str, dict[str, object]]:
    assert configuration.file is not None
    run(["status", "--json", "--config", str(configuration.file.path)])
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    return {line["mirror"]: line for line in lines if line["type"] == "mirror"}


def test_a_mirror_its_pulls_its_resources_and_its_audits_have_pages(address: str) -> None:
    page = get(f"{address}mirror?name=theses")
    assert "Pending resources, by cause" in page
    assert 'class="join"' in page
    place = page.partition('href="run?')[2].partition('"')[0].replace("&amp;", "&")
    assert "Result" in get(f"{address}run?{place}")
    failed = get(f"{address}mirror?name=maps")
    assert "503" in failed
    uri = quote("http://source.example/collection-0/item-00007.xml", safe="")
    for resource in (uri, "collection-0/item-00007.xml"):
        why = get(f"{address}resource?name=theses&resource={resource}")
        assert "the file was changed in the mirror after it was fetched" in why
        assert "resourcesync repair" in why
    audits = get(f"{address}audits")
    report = audits.partition('href="audit?name=theses')[2].partition('"')[0]
    evidence = get(f"{address}audit?name=theses{report.replace('&amp;', '&')}")
    assert ">Not in sync<" in evidence
    with urlopen(f"{address}audit?name=theses{report.replace('&amp;', '&')}") as answer:
        assert "style-src 'sha256-" in answer.headers["content-security-policy"]
    assert "item-00007.xml" in evidence
    assert '<a href="audits" aria-current="page">Audits</a>' in evidence


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("mirror?name=nobody", 404),
        ("mirror?name=/etc", 404),
        ("mirror", 404),
        ("run?name=museum&run=x", 404),
        ("audit?name=museum&run=../../etc", 404),
        ("resource?name=museum", 404),
        ("events?" + "x=1&" * 100, 200),
        ("mirrors.html", 404),
        ("explore?name=nobody", 404),
        ("explore?name=http://127.0.0.1:9/", 404),
        ("mirror?name=" + "x" * 20_000, 414),
    ],
)
def test_what_is_not_watched_has_no_page(address: str, place: str, code: int) -> None:
    try:
        with urlopen(address + place) as answer:
            found = answer.status
    except HTTPError as error:
        found = error.code
        error.close()
    assert found == code


def test_the_pages_only_read(address: str) -> None:
    with pytest.raises(HTTPError) as caught:
        urlopen(Request(address, data=b"x", method="POST"))
    caught.value.close()
    assert caught.value.code == 405
    with urlopen(f"{address}metrics") as answer:
        assert b"resourcesync_mirror_resources" in answer.read()


def test_a_mirror_that_cannot_be_read_is_said_to_be_so(
    configuration: MirrorConfiguration, tmp_path: Path
) -> None:
    assert configuration.file is not None
    broken = tmp_path / "resourcesync.toml"
    text = configuration.file.path.read_text()
    broken.write_text(text + f'[mirror.broken]\nsource = "http://x/"\ndest = "{tmp_path}"\n')
    own = tmp_path / ".resourcesync"
    own.mkdir()
    (own / "state.db").write_bytes(b"no database at all" * 100)
    loaded = load(broken)
    found = WatchPages(lambda: (loaded.names, loaded), SystemClock()).mirrors()
    assert [bool(summary.error) for summary in found] == [True, False, False, False]
    assert "damaged" in found[0].error or "not the state" in found[0].error


def test_watch_serves_the_pages_and_tells_what_ended(source: TinySource, said: Said) -> None:
    put(museum(source, 'every = "1h"\n'))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    found: list[str] = []

    def look() -> None:
        until = time.monotonic() + 20
        while time.monotonic() < until and not found:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/events") as answer:
                text = answer.read().decode()
                found.extend([text] if "in sync" in text else [])
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=look)
    thread.start()
    assert run(["watch", "--admin", f"127.0.0.1:{port}"]) == 0
    thread.join()

    rows = Rows(found[0]).rows
    assert rows[1][1:4] == ["museum", "pull", "good"]
    assert f"Admin     http://127.0.0.1:{port}/\n" in said.readouterr().out


def test_a_mirror_that_may_not_be_looked_into_is_no_fault_of_ours(tmp_path: Path) -> None:
    class Closed(WatchPages):
        def audits(self) -> Sequence[EndedAudit]:
            raise PermissionError(13, "Permission denied", str(tmp_path))

    views = Closed(lambda: ((), load(None)), SystemClock())
    with ServerThread(Dashboard(views, OperationsApplication(look=lambda: None))) as server:
        with pytest.raises(HTTPError) as caught:
            urlopen(f"{server.uri}audits")
        with caught.value as answer:
            text = answer.read().decode()
    assert (caught.value.code, str(tmp_path) in text) == (503, False)
    assert "Permission denied." in text


def test_deletions_that_are_held_back_are_told_alike_everywhere(tmp_path: Path) -> None:
    world, place = World(tmp_path / "m"), str(tmp_path / "m")
    for number in range(40):
        world.source.put(f"{number}", "same")
    world.source.publish()
    world.pull()
    for number in range(30):
        world.source.remove(f"{number}")
    world.source.publish()
    world.clock.advance(hours=2)
    assert world.pull().held == 30

    (tmp_path / "empty.toml").write_text("")
    configuration = load(tmp_path / "empty.toml")
    found = WatchPages(lambda: ((place,), configuration), world.clock).mirror(
        place, timedelta(days=1)
    )
    assert found is not None
    page = mirror_page(found)
    assert (found.summary.status.right, found.summary.status.listed) == (10, 40)
    assert "  25 %  " in status_table([found.summary.status], world.clock.now())[1]
    assert page.count(">25 %<") >= 2  # the tile, and the table of the chart
    assert "30 deletions held" in page
    assert "40 listed" not in page
