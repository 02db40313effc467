"""Several services of one user: each has the subscriptions of its own configuration, no others."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from resourcesync.adapters.hub import FileFollowers
from resourcesync.adapters.system import SystemClock
from resourcesync.app.watching.push_subscriptions import PushState, PushSubscriptions
from resourcesync.cli.main import run
from resourcesync.errors import LockedError
from resourcesync.ports.subscriptions import ChannelSubscription, FollowerState
from resourcesync.settings.network import Network
from tests.support.commands.run import free_port
from tests.support.servers.pushing import served_with_hub
from tests.support.waiting import wait_until

CALLBACK = "https://aggregator.example/push/"


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
            wait_until(lambda: second.standings() == [] and subscribed(root) == 2)
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


def test_a_configuration_is_known_by_its_real_path(tmp_path: Path) -> None:
    real, link = tmp_path / "one.toml", tmp_path / "link.toml"
    real.touch()
    link.symlink_to(real)
    found = {PushState(folder=tmp_path, configuration=path).path for path in (real, link)}
    assert len(found) == 1
    assert PushState(folder=tmp_path, configuration=tmp_path / "two.toml").path not in found


def row(name: str, base: str, token: str) -> ChannelSubscription:
    return ChannelSubscription(
        name=name,
        topic=f"https://{name}.example/channel",
        hub="https://hub.example/",
        state=FollowerState.ACTIVE,
        token=token,
        secret=b"secret",
        lease_until=1_796_083_200_000_000,
        due=1_796_083_200_000_000,
        base=base,
    )


def names(path: Path) -> dict[str, str]:
    with closing(FileFollowers(path)) as store:
        return {subscription.name: subscription.token for subscription in store.subscriptions()}


def test_what_is_verified_is_taken_over_from_the_file_that_all_services_shared(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "push.db"
    with closing(FileFollowers(shared)) as store:
        store.save(row("museum", CALLBACK, "one"))
        store.save(row("removed", CALLBACK, "two"))  # is still to be ended, by us
        store.save(row("early", "", "three"))  # before callbacks were noted
        store.save(row("foreign", "https://other.example/push/", "four"))
        store.save(row("unknown", "", "five"))
    state = PushState(
        folder=tmp_path,
        configuration=tmp_path / "one.toml",
        mirrors=frozenset({"museum", "early", "foreign"}),
    )

    with state.open_store(CALLBACK.rstrip("/")) as store:
        assert store.find_token("one") == row("museum", CALLBACK, "one")

    assert names(state.path) == {"museum": "one", "removed": "two", "early": "three"}
    assert names(shared) == {"foreign": "four", "unknown": "five"}


def test_a_subscription_that_is_here_already_is_newer_than_the_shared_one(tmp_path: Path) -> None:
    state = PushState(folder=tmp_path, configuration=tmp_path / "one.toml")
    with state.open_store(CALLBACK) as store:
        store.save(row("museum", CALLBACK, "new"))
    with closing(FileFollowers(tmp_path / "push.db")) as store:
        store.save(row("museum", CALLBACK, "old"))

    with state.open_store(CALLBACK) as store:
        assert [subscription.token for subscription in store.subscriptions()] == ["new"]

    assert names(tmp_path / "push.db") == {}
