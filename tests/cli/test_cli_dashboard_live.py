"""The pages of ``watch --admin`` follow what happens, and show when they no longer do."""

import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.stored_names import StoredNames
from resourcesync.app.watching.mirror_views import read_activity
from resourcesync.app.watching.service import StateCache
from resourcesync.cli.configured_mirrors import MirrorConfiguration, load
from resourcesync.cli.main import run
from resourcesync.cli.service.watch_mirrors import WatchJobRunner
from resourcesync.cli.service.watch_pages import WatchPages
from resourcesync.cli.watch_settings import WatchSettings
from resourcesync.ports.cancellation import CancelToken
from resourcesync.server.admin import OperationsApplication
from resourcesync.server.dashboard.app import Dashboard
from resourcesync.server.dashboard.operator_actions import OperatorApplication
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.watch.scheduler import JobKind, MirrorJob
from tests.support.commands.command_line import FILES
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import TinySource

CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--host-resolver-rules=MAP plain.example 127.0.0.1"]
PULL = MirrorJob(mirror="museum", kind=JobKind.PULL)


class Running:
    """The jobs that run, as a loop returns them."""

    def __init__(self) -> None:
        self.jobs: dict[MirrorJob, float] = {}

    def __call__(self) -> dict[MirrorJob, float]:
        return self.jobs


@pytest.fixture
def running() -> Running:
    return Running()


@pytest.fixture
def configuration(source: TinySource) -> MirrorConfiguration:
    put(museum(source, 'every = "1h"\n'))
    return load(None)


@pytest.fixture
def pages(configuration: MirrorConfiguration, running: Running) -> WatchPages:
    names = (configuration.names, configuration)
    return WatchPages(lambda: names, SystemClock(), running=running)


def test_a_running_pull_is_shown_with_its_progress_until_it_ends(
    pages: WatchPages, running: Running
) -> None:
    before = pages.version()
    assert pages.version() == before

    running.jobs[PULL] = 9.0
    started = pages.version()
    pages.show_progress("museum", {"done": 12, "total": 30})
    job = pages.mirrors()[0].running
    assert started > before
    assert pages.version() > started
    assert job is not None
    assert (job.kind, job.done, job.total) == ("pull", 12, 30)

    running.jobs.clear()
    pages.end_progress("museum")
    running.jobs[PULL] = 1.0
    assert pages.running()[0].total == 0  # that of the last pull is forgotten


def test_a_pull_of_the_service_reports_its_progress(
    configuration: MirrorConfiguration, tmp_path: Path
) -> None:
    seen: list[str] = []

    def show(mirror: str, fields: Mapping[str, object]) -> None:
        seen.append(f"{mirror} {fields['done']} of {fields['total']}")

    runner = WatchJobRunner(
        SystemClock(), lambda _: None, show, StoredNames(tmp_path / "pulled"), StateCache()
    )
    settings = WatchSettings(configuration=configuration, names=configuration.names)
    runner.configure(*settings.watched_mirrors())
    runner(PULL, CancelToken(SystemClock()))
    assert seen[-1] == f"museum {len(FILES)} of {len(FILES)}"


def test_a_mirror_fails_since_the_first_of_its_failures_in_a_row(source: TinySource) -> None:
    put(museum(source))
    folder = Path("copies/museum")

    def failing_since() -> datetime | None:
        return read_activity(folder, datetime.now(UTC), 7).failing_since

    assert run(["pull", "museum", "-qq"]) == 0
    assert failing_since() is None
    source.answers.clear()
    begun = datetime.now(UTC)
    assert run(["pull", "museum", "-qq"]) != 0
    first = failing_since()
    assert first is not None
    assert first > begun
    assert run(["pull", "museum", "-qq"]) != 0
    assert failing_since() == first
    source.offer(FILES)
    assert run(["pull", "museum", "-qq"]) == 0
    assert failing_since() is None


@pytest.fixture
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Paused:
    """A service in which a mirror can be paused, and nothing else."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def pull_now(self, name: str) -> bool:
        return not name

    def pause(self, name: str) -> bool:
        self.done.append(name)
        return True

    def resume(self, name: str) -> bool:
        return not name


@pytest.mark.night
@pytest.mark.parametrize("host", ["127.0.0.1", "plain.example"])
def test_chromium_may_send_the_form_of_an_operator(
    browser: Any, pages: WatchPages, host: str
) -> None:
    """A browser sends less about a form to a plain address that is not its own machine."""
    operations, health = Paused(), OperationsApplication(look=lambda: None)
    operator = OperatorApplication("a-token-of-this-test", operations)
    with ServerThread(Dashboard(pages, health, operator=operator)) as server:
        page = browser.new_page()
        page.goto(f"{server.uri.replace('127.0.0.1', host)}mirror?name=museum")
        page.fill("#token", "a-token-of-this-test")
        page.click("button[value=pause]")
        page.locator("h1", has_text="museum").wait_for()
        assert operations.done == ["museum"]
        page.fill("#token", "another")
        page.click("button[value=pause]")
        page.locator("body", has_text="The operator's token is wrong.").wait_for()
        assert operations.done == ["museum"]


@pytest.mark.night
def test_chromium_follows_the_pages_and_shows_when_the_connection_is_lost(
    browser: Any, pages: WatchPages, running: Running
) -> None:
    health = OperationsApplication(look=lambda: None)
    with ServerThread(Dashboard(pages, health)) as server:
        page = browser.new_page()
        page.goto(server.uri)
        page.locator("#live", has_text="live").wait_for()
        assert "nothing runs" in page.inner_text("main")
        running.jobs[PULL] = 5.0
        page.locator("main", has_text="pull runs").wait_for()
        title = page.get_attribute("header time", "title")
        assert title.startswith("20")
        assert "\n" in title  # and the local time
        page.locator("#live", has_text="live").wait_for()
    page.locator("#live", has_text="connection lost, shown as of ").wait_for()


@pytest.mark.night
def test_chromium_does_not_call_the_page_of_a_removed_mirror_live(
    browser: Any, configuration: MirrorConfiguration, running: Running
) -> None:
    watched = {"now": (configuration.names, configuration)}
    pages = WatchPages(lambda: watched["now"], SystemClock(), running=running)
    health = OperationsApplication(look=lambda: None)
    with ServerThread(Dashboard(pages, health)) as server:
        page = browser.new_page()
        page.goto(f"{server.uri}mirror?name=museum")
        page.locator("#live", has_text="live").wait_for()
        watched["now"] = ((), MirrorConfiguration(None))
        running.jobs[PULL] = 5.0
        page.locator("#live", has_text="not renewed, shown as of ").wait_for()
        watched["now"] = (configuration.names, configuration)
        running.jobs.clear()
        page.locator("#live", has_text="live").wait_for()
