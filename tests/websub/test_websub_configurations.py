"""Several services of one user: each has the subscriptions of its own configuration, no others."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.watching.push_subscriptions import PushState, PushSubscriptions
from resourcesync.cli.main import run
from resourcesync.errors import LockedError
from resourcesync.settings.mirror import Network
from tests.support.commands.run import free_port
from tests.support.servers.pushing import served_with_hub
from tests.support.waiting import wait_until


@contextmanager
def service(state: PushState) -> Iterator[PushSubscriptions]:
    port = free_port()
    with PushSubscriptions(
        callback=f"http://127.0.0.1:{port}/push",
        listen=("127.0.0.1", port),
        state=state,
        on_hint=lambda _: None,
        clock=SystemClock(),
    ) as push:
        yield push


def subscribed(root: Path) -> int:
    with closing(sqlite3.connect(root / ".resourcesync" / "hub.db")) as hub:
        return int(hub.execute("SELECT count(*) FROM subscription").fetchone()[0])


def test_two_services_with_a_configuration_each_end_no_subscription_of_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root, both = tmp_path / "public", Network()
    root.mkdir()
    (root / "a.txt").write_text("a")
    state = PushState(folder=tmp_path / "state", configuration=Path("one.toml"))
    other = PushState(folder=tmp_path / "state", configuration=Path("other.toml"))
    with served_with_hub(root) as base:
        for name in ("first", "second"):
            assert run(["pull", base, name, "-q"]) == 0
        with service(state) as first, service(other) as second:
            first.retain({"first": (base, both)})
            first.follow("first", Path("first"), both)
            wait_until(lambda: subscribed(root) == 2)

            second.retain({"second": (base, both)})
            second.follow("second", Path("second"), both)
            wait_until(lambda: subscribed(root) == 4)

            assert {standing.mirror for standing in first.standings()} == {"first"}
            assert {standing.mirror for standing in second.standings()} == {"second"}
            second.retain({"third": (base, both)})
            wait_until(lambda: second.standings() == [])
            assert len(first.standings()) == 2


def test_a_second_service_of_one_configuration_is_refused(tmp_path: Path) -> None:
    state = PushState(folder=tmp_path, configuration=tmp_path / "one.toml")
    with (
        service(state),
        pytest.raises(LockedError, match="another `watch` is running"),
        service(state),
    ):
        pass

    with service(state):
        pass
