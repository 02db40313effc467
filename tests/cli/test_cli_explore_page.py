"""The page Explore: it tells what ``explore`` tells, and looks at no other Sources."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.cli.configured_mirrors import load
from resourcesync.cli.render.explore_pages import CachedExplorer
from resourcesync.cli.service.watch_pages import WatchPages
from resourcesync.server.admin import OperationsApplication
from resourcesync.server.dashboard.app import Dashboard
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.settings.network import Network
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import TinySource

PAGE = "explore?name=museum&depth=8"


@contextmanager
def pages() -> Iterator[str]:
    configuration = load(None)
    views = WatchPages(lambda: (configuration.names, configuration), SystemClock())
    with ServerThread(Dashboard(views, OperationsApplication(look=lambda: None))) as server:
        yield server.uri


def get(address: str) -> str:
    with urlopen(address, timeout=30) as answer:
        return str(answer.read().decode())


def test_only_the_sources_that_are_known_here_are_looked_at(source: TinySource) -> None:
    put(museum(source))
    with TinySource() as other, pages() as address:
        more = quote(f"{other.url}/", safe="")
        for name in ("uri", "source", "address", "url", "target"):
            assert "/resourcelist.xml" in get(f"{address}{PAGE}&{name}={more}")
        assert "museum" in get(f"{address}explore?name=&source={more}")
        assert other.asked == []


def test_a_document_that_leads_to_a_private_address_is_not_followed_there(
    source: TinySource,
) -> None:
    put(museum(source))
    with TinySource() as other:
        pointer = f"{other.url}/resourcelist.xml".replace("127.0.0.1", "localhost")
        entry = f'<url><loc>{pointer}</loc><rs:md capability="resourcelist"/></url>'
        source.put_document("/capabilitylist.xml", '<rs:md capability="capabilitylist"/>', [entry])
        with pages() as address:
            page = get(address + PAGE)
        assert other.asked == []
    assert 'class="state bad"' in page
    assert pointer in page


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"seconds": 0.0}, "the time limit of 0 s was reached."),
        ({"most": 2}, "only the first 2 nodes are shown."),
    ],
)
def test_a_walk_is_neither_long_nor_far(
    limits: dict[str, float], why: str, source: TinySource
) -> None:
    explorer = CachedExplorer(SystemClock(), **limits)  # type: ignore[arg-type] # a float and a whole number
    found = explorer.explore("museum", source.url, Network, 8, "museum")
    assert found.notes == (why, "next   resourcesync explore museum")
    assert len(found.found) == limits.get("most", 0)
