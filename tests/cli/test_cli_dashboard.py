"""The pages of ``watch --admin`` and ``serve --admin``: real mirrors, and a real server."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.configured_mirrors import MirrorConfiguration
from resourcesync.app.publishing import trees
from resourcesync.app.serving import applications
from resourcesync.cli.main import run
from resourcesync.cli.options import load
from resourcesync.cli.service.watch_status import WatchView
from resourcesync.model.timestamps import to_microseconds
from resourcesync.push_state.rows import SubscriptionIntent
from resourcesync.server.admin import OperationsApplication
from resourcesync.server.dashboard.app import mirror_pages
from resourcesync.server.dashboard.mirror_page import mirror_page
from resourcesync.server.dashboard.operator_actions import OperatorApplication
from resourcesync.server.dashboard.views import MirrorSummary
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.watch.scheduler import JobKind, MirrorJob
from tests.support.commands.command_line import FILES
from tests.support.commands.settings_file import museum, put
from tests.support.page_checkers import barriers, markup_faults
from tests.support.servers.listening import get as ask
from tests.support.servers.tiny_source import TinySource

PULL = MirrorJob(mirror="museum", kind=JobKind.PULL)
CALLBACK = "https://two.example:8443/hook/secret-2"


@pytest.fixture
def running() -> dict[MirrorJob, float]:
    return {}


@pytest.fixture
def configuration(source: TinySource) -> MirrorConfiguration:
    put(museum(source, 'every = "1h"\n'))
    return load(None)


@pytest.fixture
def pages(configuration: MirrorConfiguration, running: dict[MirrorJob, float]) -> WatchView:
    names = (configuration.names, configuration)
    return WatchView(lambda: names, SystemClock(), running=lambda: running)


@contextmanager
def served(views: WatchView, operator: OperatorApplication | None = None) -> Iterator[str]:
    health = OperationsApplication(look=lambda: None)
    with ServerThread(mirror_pages(views, health, operator)) as server:
        yield server.uri


@pytest.fixture
def address(pages: WatchView) -> Iterator[str]:
    with served(pages) as found:
        yield found


def get(address: str, place: str = "") -> str:
    found = ask(address, f"/{place}")
    assert found.status == 200
    assert found.fields["cache-control"] == "no-store"
    assert found.fields["content-security-policy"].startswith("default-src 'none';")
    return found.body.decode()


def test_a_mirror_shows_since_when_it_fails_why_and_what_is_pending(
    source: TinySource, address: str
) -> None:
    lost = next(iter(FILES))
    del source.answers[lost]
    assert run(["pull", "museum", "-qq"]) == 3
    assert "Failing since" not in get(address)
    source.answers.clear()
    for _ in range(2):
        assert run(["pull", "museum", "-qq"]) != 0

    assert "Failing since" in get(address)
    page = get(address, "mirror?name=museum")
    assert "Failing since" in page
    assert f"{len(FILES) - 1} created, 1 failed" in page
    causes = page.partition("Pending resources, by cause")[2]
    assert f"{source.url}{lost}" in causes
    assert "; 2 times since " in page


def test_what_is_watched_has_a_page_that_is_loaded_again_until_it_is_to_stay(address: str) -> None:
    for place, code, again in (
        ("", 200, "30"),
        ("?still=1", 200, None),
        ("mirror?name=museum", 200, None),
        ("?" + "x=1&" * 100, 200, "30"),
        ("mirror?name=nobody", 404, None),
        ("mirror?name=/etc", 404, None),
        ("mirror", 404, None),
        ("mirrors.html", 404, None),
        ("mirror?name=" + "x" * 20_000, 414, None),
    ):
        found = ask(address, f"/{place}")
        assert (found.status, found.fields.get("refresh")) == (code, again), place
    assert 'href="./?still=1"' in get(address)


def test_a_mirror_that_cannot_be_read_is_said_to_be_so(source: TinySource, tmp_path: Path) -> None:
    own = tmp_path / "broken" / ".resourcesync"
    own.mkdir(parents=True)
    (own / "state.db").write_bytes(b"no database at all" * 100)
    put(f'{museum(source)}[mirror.broken]\nsource = "http://x/"\ndest = "{own.parent}"\n')
    loaded = load(None)
    pages = WatchView(lambda: (loaded.names, loaded), SystemClock())

    found = {summary.name: summary.error for summary in pages.mirrors()}
    assert "damaged" in found["broken"] or "not the state" in found["broken"]
    assert found["museum"] == ""
    detail = pages.mirror("broken")
    assert detail is not None
    assert found["broken"].lower() in mirror_page(detail).lower()


def test_a_mirror_that_may_not_be_looked_into_is_no_fault_of_ours(tmp_path: Path) -> None:
    class Closed(WatchView):
        def mirrors(self) -> Sequence[MirrorSummary]:
            raise PermissionError(13, "Permission denied", str(tmp_path))

    with served(Closed(lambda: ((), load(None)), SystemClock())) as address:
        found = ask(address, "/")
    assert (found.status, str(tmp_path) in found.body.decode()) == (503, False)
    assert b"Permission denied." in found.body


def test_a_running_pull_is_shown_with_its_progress_until_it_ends(
    pages: WatchView, running: dict[MirrorJob, float]
) -> None:
    running[PULL] = 9.0
    pages.show_progress("museum", {"done": 12, "total": 30})
    [job] = [summary.running for summary in pages.mirrors()]
    assert job is not None
    assert (job.kind, job.done, job.total) == ("pull", 12, 30)

    running.clear()
    pages.end_progress("museum")
    running[PULL] = 1.0
    [job] = [summary.running for summary in pages.mirrors()]
    assert job is not None
    assert job.total == 0  # that of the last pull is forgotten


@contextmanager
def source_served(root: Path) -> Iterator[str]:
    clock = SystemClock()
    root.mkdir()
    (root / "a.txt").write_text("a")
    base = "https://demo.example/"
    trees.publish_tree(root, {"url": base, "hubs": (f"{base}hub",)}, clock=clock)
    tree = applications.find_tree(root)
    hub, now = tree.own_hub(clock), to_microseconds(clock.now())
    topic = f"{base}resourcesync/changenotification.xml"
    intent = SubscriptionIntent(
        mode="subscribe", topic=topic, callback=CALLBACK, secret=b"", lease=864_000, requested=now
    )
    hub.store.add_intent(intent)
    [kept] = hub.store.due_intents(now, 1, ())
    hub.store.confirm(kept, now + 9 * 86_400_000_000)
    with hub.running(), ServerThread(tree.board(clock, hub, hub.figures)) as server:
        yield server.uri


def test_a_source_shows_who_is_subscribed_without_what_only_they_may_know(tmp_path: Path) -> None:
    with source_served(tmp_path / "demo") as address:
        page = get(address)
        for words in ("https://two.example:8443", "changenotification.xml", "up to date"):
            assert words in page
        assert CALLBACK.rpartition("/")[2] not in page
        assert "resourcelist.xml" in page
        (tmp_path / "demo" / "resourcesync").rename(tmp_path / "gone")
        assert ask(address, "/").status == 503


@pytest.mark.night
def test_chromium_may_send_the_form_of_an_operator(browser: Any, pages: WatchView) -> None:
    done: list[tuple[str, str]] = []

    def operate(action: str, name: str, number: int) -> bool:
        assert not number
        done.append((action, name))
        return True

    with served(pages, OperatorApplication("a-token-of-this-test", operate)) as address:
        page = browser.new_page()
        page.goto(f"{address}mirror?name=museum")
        page.fill("#token", "a-token-of-this-test")
        page.click("button[value=pause]")
        page.locator("h1", has_text="museum").wait_for()
        assert done == [("pause", "museum")]


@pytest.mark.night
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_have_no_barrier_and_fit_on_a_phone(
    browser: Any, source: TinySource, address: str, tmp_path: Path, scheme: str
) -> None:
    assert run(["pull", "museum", "-qq"]) == 0
    with source_served(tmp_path / "demo") as own:
        source.offer({next(iter(FILES)): b"the only one"}, at="2026-01-02T00:00:00Z")
        assert run(["pull", "museum", "-qq"]) == 7
        places = [address, f"{address}mirror?name=museum", f"{address}mirror?name=lost", own]
        assert barriers(browser, places, color_scheme=scheme) == []
        context = browser.new_context(viewport={"width": 390, "height": 900})
        page = context.new_page()
        for place in places:
            page.goto(place)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
        context.close()


@pytest.mark.night
def test_the_checker_of_the_w3c_finds_no_fault(
    source: TinySource, pages: WatchView, tmp_path: Path
) -> None:
    assert run(["pull", "museum", "-qq"]) == 0
    source.offer({next(iter(FILES)): b"the only one"}, at="2026-01-02T00:00:00Z")
    assert run(["pull", "museum", "-qq"]) == 7
    operator = OperatorApplication("a-token-of-this-test", lambda *_: False)
    with source_served(tmp_path / "demo") as own, served(pages, operator) as address:
        shown = [get(address), get(address, "mirror?name=museum"), get(own)]
        for number, text in enumerate(shown):
            (tmp_path / f"{number}.html").write_text(text)
        assert "held deletions" in (tmp_path / "1.html").read_text()
    faults = markup_faults(tmp_path)
    assert {fault for fault in faults if not fault.startswith("CSS: ")} == set()
