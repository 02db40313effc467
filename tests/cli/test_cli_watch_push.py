"""``watch`` tells what keeps notifications from coming."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing import trees
from resourcesync.cli.main import run
from tests.support.commands.command_line import MIRRORED, Said, rows
from tests.support.commands.meanwhile import meanwhile
from tests.support.commands.run import files_of, free_port
from tests.support.commands.settings_file import museum, put
from tests.support.commands.watching import AdminPages
from tests.support.servers.pushing import served_with_hub
from tests.support.servers.tiny_source import TinySource

VERIFIED = 'resourcesync_mirror_subscriptions{mirror="museum",state="verified"} 2'
FIGURES = (
    "resourcesync_mirror_lease_end_timestamp_seconds",
    "resourcesync_mirror_last_delivery_timestamp_seconds",
    "resourcesync_mirror_deliveries_total",
)


def test_push_without_a_callback_is_warned_of_and_the_mirror_is_polled(
    source: TinySource, said: Said
) -> None:
    put(museum(source, 'every = "1s"\npush = true\n'))

    with meanwhile(lambda: files_of(Path("copies/museum")) == MIRRORED):
        assert run(["watch", "--json"]) == 0

    lines = rows(said)
    [warning] = [line for line in lines if line["type"] == "warning"]
    assert warning["code"] == "config"
    assert warning["message"] == "`push = true` of museum has no effect: `watch` has no callback"
    assert warning["mirror"] == "museum"
    assert any(line["type"] == "watch" for line in lines)


def check_events(lines: list[dict[str, Any]], topic: str, hub: str) -> None:
    told = [line for line in lines if line["type"] == "watch.subscription"]
    mine = [fields for fields in told if fields["topic"] == topic]
    assert mine[0]["state"] == "pending"
    last = {"mirror": "museum", "hub": hub, "state": "verified", "was": "pending"}
    assert mine[-1] | last == mine[-1]


class Looker(AdminPages):
    """Looks at the pages of a service while it runs."""

    def __init__(self, root: Path, base: str) -> None:
        super().__init__()
        self.root = root
        self.topic = f"{base}resourcesync/changenotification.xml"
        self.pages: dict[str, str] = {}
        self.subscription: dict[str, Any] = {}

    def publish(self) -> bool:
        if not self.answers() or VERIFIED not in self.metrics():
            return False
        (self.root / "b.txt").write_text("b")
        trees.publish_tree(self.root, {}, clock=SystemClock())
        return True

    def look(self) -> bool:
        found = self.report()["subscriptions"]
        [self.subscription] = [item for item in found if item["topic"] == self.topic]
        self.pages = {name: self.get(name) for name in ("metrics", "", "mirror?name=museum")}
        return bool(self.subscription["taken"] == 1)


@pytest.mark.founding("D-Lib §1", "A Destination subscribes", "`watch`, `push = true`")
def test_operators_see_how_the_subscription_of_a_mirror_stands(
    tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "public"
    root.mkdir()
    (root / "a.txt").write_text("a")
    listen = free_port()
    with served_with_hub(root) as base:
        looker = Looker(root, base)
        put(f'[mirror.museum]\nsource = "{base}"\ndest = "copy"\nevery = "1h"\npush = true\n')
        given = ["--callback", f"http://127.0.0.1:{listen}/push/", "--state", "state"]
        given += ["--listen", f"127.0.0.1:{listen}", "--admin", looker.bind]
        with meanwhile(looker.publish, looker.look):
            assert run(["watch", "--json", *given]) == 0

    check_events(rows(said), looker.topic, f"{base}hub")
    status, page = looker.subscription, looker.pages
    assert (status["state"], status["refused"]) == ("verified", 0)
    for name in FIGURES:
        assert f'{name}{{mirror="museum"' in page["metrics"]
    assert ">Push<" in page[""]
    assert '<span class="state good">on</span>' in page[""]
    card = page["mirror?name=museum"].partition("<h2>Notifications</h2>")[2]
    for words in (looker.topic, f"At the hub {base}hub.", " s ago"):
        assert words in card
