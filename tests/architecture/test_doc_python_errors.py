"""The page on errors in Python is true: its programs meet each of the troubles that it names."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resourcesync import Mirror, MirrorState, Network, Publisher
from resourcesync.adapters.http.settings import FetchSettings
from resourcesync.app.serving.applications import LateApplication
from resourcesync.errors import DiscontinuityError
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.servers.hostile_server import HostileServer, answer

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "errors-in-python.md"
ADDRESS = "https://museum.example"
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
        text = PAGE.read_text("utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        assert len(blocks) == text.count("```python") == 5
        code = blocks[number].replace(ADDRESS, self.address)
        exec(compile(code, f"{PAGE.name}, example {number + 1}", "exec"), self.names)


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
    text = PAGE.read_text("utf-8")
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
