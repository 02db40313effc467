"""The whole way over loopback: a file is written, and a subscriber, ours or another, knows."""

import signal
import sqlite3
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import trustme

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.app.configured_mirrors import MirrorConfiguration
from resourcesync.app.publishing import trees
from resourcesync.app.serving import applications
from resourcesync.app.watching.push_subscriptions import PushSubscriptions
from resourcesync.app.watching.watch_settings import WatchSettings
from resourcesync.cli.main import run
from resourcesync.documents import reader
from resourcesync.errors import ConfigurationError, LockedError
from resourcesync.push_state.rows import FollowerState
from resourcesync.push_state.stores import FileFollowers
from resourcesync.settings import config_file
from resourcesync.settings.mirror import Network, ServiceSettings
from resourcesync.websub.channels import Channel
from resourcesync.websub.messages import FORM
from tests.support.commands.run import free_port
from tests.support.commands.started import Started
from tests.support.servers.hubs import post, said
from tests.support.servers.listening import Listener, agreeing, serving, static
from tests.support.servers.pushing import served_with_hub, subscriber
from tests.support.waiting import wait_until


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "public"
    root.mkdir()
    (root / "a.txt").write_text("a")
    return root


def is_active(store: FileFollowers) -> bool:
    return [found.state for found in store.subscriptions()] == [FollowerState.ACTIVE]


def subscribed(root: Path) -> int:
    with closing(sqlite3.connect(root / ".resourcesync" / "hub.db")) as hub:
        return int(hub.execute("SELECT count(*) FROM subscription").fetchone()[0])


@pytest.mark.founding(
    "D-Lib §1",
    "Changes are pushed to subscribers in near real time",
    "`publish --hub`, `serve --hub`",
)
def test_a_file_that_is_written_and_published_is_known_to_subscribers_at_once(
    root: Path, tmp_path: Path
) -> None:
    hints: list[str] = []
    with served_with_hub(root) as base, subscriber(tmp_path, hints) as (mine, store):
        topic = f"{base}resourcesync/changenotification.xml"
        for name in ("changenotification.xml", "frameworknotification.xml"):
            answer = said(itself := f"{base}resourcesync/{name}")
            assert answer.fields["link"] == f'<{itself}>; rel="self", <{base}hub>; rel="hub"'
            header = reader.read(answer.text.encode()).header
            assert header.itself is not None
            assert (header.itself.href, [hub.href for hub in header.hubs]) == (
                itself,
                [f"{base}hub"],
            )
        assert "link" not in said(f"{base}resourcesync/changelist.xml").fields
        mine.follow("museum", [Channel(topic=topic, hubs=(f"{base}hub",))])
        mine.tick()
        wait_until(lambda: is_active(store))
        wait_until(lambda: hints == ["museum"])

        (root / "b.txt").write_text("b")
        began = time.monotonic()
        done = trees.publish_tree(root, {}, clock=SystemClock())
        wait_until(lambda: hints == ["museum"] * 2)
        seconds = time.monotonic() - began

        assert done.notified is not None
        assert done.notified.problems == ()
        assert seconds < 8.0  # without the hub: not at all
        mine.leave("museum")
        (root / "c.txt").write_text("c")
        trees.publish_tree(root, {}, clock=SystemClock())
        wait_until(lambda: subscribed(root) == 0)  # the next delivery was refused


def test_a_hub_takes_the_notifications_of_the_address_that_was_published_last(root: Path) -> None:
    with served_with_hub(root) as base, Listener() as listener:
        new = base.replace("127.0.0.1", "localhost")
        trees.publish_tree(root, {"url": new, "hubs": (f"{new}hub",)}, clock=SystemClock())
        topic = f"{new}resourcesync/changenotification.xml"
        fields = {"hub.mode": "subscribe", "hub.topic": topic}
        wish = fields | {"hub.callback": f"{listener.origin}/me"}

        assert post(f"{base}hub", urlencode(wish).encode(), content_type=FORM).status == 202
        wait_until(lambda: subscribed(root) == 1)
        (root / "b.txt").write_text("b")
        done = trees.publish_tree(root, {}, clock=SystemClock())

        assert done.notified is not None
        assert done.notified.problems == ()
        assert listener.wait(lambda: len(listener.posts()) > 0)
        assert f'<{new}hub>; rel="hub"' in listener.posts()[-1].fields["link"]


def test_a_hub_that_is_not_below_the_tree_cannot_be_served(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    chosen = {"url": "https://museum.example/", "hubs": ("https://hub.example/",)}
    trees.publish_tree(tmp_path, chosen, clock=SystemClock())
    with pytest.raises(ConfigurationError, match="no hub at this address"):
        applications.find_tree(tmp_path).own_hub(SystemClock())


@contextmanager
def serving_process(root: Path, port: int) -> Iterator[Started]:
    words = ["serve", str(root), "--bind", f"127.0.0.1:{port}", "--hub", "--private-callbacks"]
    with Started(*words, cwd=root.parent) as process:
        assert process.stdout.readline().startswith("Serving")
        yield process


def test_a_hub_that_is_killed_between_accepting_and_delivering_delivers_after_its_restart(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-settings"))
    port = free_port()
    base = f"http://127.0.0.1:{port}/"
    options = ["--url", base, "--hub", f"{base}hub", "-o", "notify=true", "-q"]
    assert run(["publish", str(root), *options]) == 0
    topic = f"{base}resourcesync/changenotification.xml"
    with Listener() as listener:
        fields = {
            "hub.mode": "subscribe",
            "hub.topic": topic,
            "hub.callback": f"{listener.origin}/me",
        }
        wish = urlencode(fields | {"hub.secret": "it"}).encode()
        with serving_process(root, port) as process:
            assert post(f"{base}hub", wish, content_type=FORM).status == 202
            wait_until(lambda: subscribed(root) == 1)
            listener.answer = lambda _: (503, b"")
            (root / "b.txt").write_text("b")
            assert run(["publish", str(root), "-q"]) == 0
            assert listener.wait(lambda: len(listener.posts()) >= 1)
            process.send_signal(signal.SIGKILL)
            process.wait(20)
        listener.answer = agreeing
        before = len(listener.posts())
        with serving_process(root, port):
            assert listener.wait(lambda: len(listener.posts()) > before)

    last = listener.posts()[-1]
    assert last.body == (root / "resourcesync/changenotification.xml").read_bytes()
    assert last.fields["x-hub-signature"].startswith("sha256=")


@contextmanager
def service(state: Path) -> Iterator[PushSubscriptions]:
    port = free_port()
    with PushSubscriptions(
        callback=f"http://127.0.0.1:{port}/push",
        listen=("127.0.0.1", port),
        state=state,
        on_hint=lambda _: None,
        clock=SystemClock(),
    ) as push:
        yield push


def push_state(folder: Path, name: str) -> Path:
    (folder / name).touch()
    service = ServiceSettings(state=folder / "state")
    configuration = MirrorConfiguration(config_file.read(folder / name))
    return WatchSettings(configuration=configuration, names=(), service=service).push_state()


def test_two_services_with_a_configuration_each_end_no_subscription_of_the_other(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    both = Network()
    state, other = (push_state(tmp_path, name) for name in ("one.toml", "other.toml"))
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
    state = push_state(tmp_path, "one.toml")
    with (
        service(state),
        pytest.raises(LockedError, match="another `watch` is running"),
        service(state),
    ):
        pass

    with service(state):
        pass


def test_hubs_are_trusted_as_sources_are_also_after_their_authority_was_replaced(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with Listener(tls=context) as hub, static(root) as origin, service(tmp_path / "s") as push:
        way = Network(ca_file="ca.pem", allow_origins=(hub.origin,))
        settings = {"url": f"{origin}/", "hubs": (f"{hub.origin}/hub",)}
        trees.publish_tree(root, settings, clock=SystemClock())
        assert run(["pull", f"{origin}/", "copy", "-q"]) == 0
        for time_ in (1, 2):
            authority = trustme.CA()
            authority.issue_cert("127.0.0.1").configure_cert(context)
            authority.cert_pem.write_to_path("ca.pem")
            push.retain({})
            push.retain({"museum": (f"{origin}/", way)})
            push.follow("museum", Path("copy"), way)
            wait_until(partial(lambda most: len(hub.posts()) == most, 2 * time_))

        monkeypatch.setenv("SSL_CERT_FILE", "ca.pem")
        (root / "b.txt").write_text("b")
        trees.publish_tree(root, {}, clock=SystemClock())
        assert run(["publish", "public", "--notify-only"]) == 0


class Queue:
    """What flask-websub needs of Celery: tasks that run in a thread of their own."""

    def task(self, bind: bool = False, **_: Any) -> Callable[[Any], Any]:
        import flask  # with all that it imports, when it is used

        def made(function: Any) -> Any:
            def delay(*arguments: Any) -> None:
                first = (flask,) if bind else ()
                threading.Thread(target=function, args=(*first, *arguments), daemon=True).start()

            function.delay = delay
            return function

        return made


@contextmanager
def running(app: Any) -> Iterator[str]:
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, app, threaded=True)
    with serving(server) as origin:
        yield f"{origin}/"


def test_we_subscribe_at_a_foreign_hub_and_tell_it_to_look(root: Path, tmp_path: Path) -> None:
    import flask
    from flask_websub.hub import Hub, SQLite3HubStorage

    storage = SQLite3HubStorage(str(tmp_path / "foreign.db"))
    foreign = Hub(storage, Queue())
    app = flask.Flask("hub")
    app.config["PUBLISH_SUPPORTED"] = True
    app.register_blueprint(foreign.build_blueprint(url_prefix="/hub"))
    hints: list[str] = []
    with (
        running(app) as there,
        served_with_hub(root) as base,
        subscriber(tmp_path, hints) as (mine, store),
    ):
        hub, topic = f"{there}hub", f"{base}resourcesync/changenotification.xml"
        trees.publish_tree(root, {"hubs": (hub,)}, clock=SystemClock())
        mine.follow("museum", [Channel(topic=topic, hubs=(hub,))])
        mine.tick()
        wait_until(lambda: is_active(store))
        wait_until(lambda: hints == ["museum"])
        wait_until(lambda: list(storage.get_callbacks(topic)))

        (root / "b.txt").write_text("b")
        done = trees.publish_tree(root, {}, clock=SystemClock())
        assert done.notified is not None
        assert [(outcome.problem, outcome.is_plain) for outcome in done.notified.sent] == [
            ("", True)
        ] * 2
        wait_until(lambda: hints == ["museum"] * 2)  # signed with sha512, which is good enough


def test_a_foreign_subscriber_finds_our_hub_and_gets_what_we_publish(
    root: Path, tmp_path: Path
) -> None:
    import flask
    from flask_websub import subscriber as others

    foreign = others.Subscriber(
        others.SQLite3SubscriberStorage(str(tmp_path / "foreign.db")),
        others.SQLite3TempSubscriberStorage(str(tmp_path / "foreign-temp.db")),
    )
    heard: list[tuple[str, bytes]] = []
    done: list[str] = []
    foreign.add_listener(lambda topic, _, body: heard.append((topic, body)))
    foreign.add_success_handler(lambda _topic, _callback, mode: done.append(mode))
    app = flask.Flask("subscriber")
    app.register_blueprint(foreign.build_blueprint(url_prefix="/callbacks"))
    with running(app) as there, served_with_hub(root) as base:
        app.config["SERVER_NAME"] = there[7:-1]
        topic = f"{base}resourcesync/changenotification.xml"
        found = others.discover(topic)
        assert found == {"hub_url": f"{base}hub", "topic_url": topic}
        with app.app_context():
            callback = foreign.subscribe(**found)
            wait_until(lambda: done == ["subscribe"])
            wait_until(lambda: subscribed(root) == 1)
            (root / "b.txt").write_text("b")
            trees.publish_tree(root, {}, clock=SystemClock())
            wait_until(lambda: len(heard) == 1)
            foreign.unsubscribe(callback)
            wait_until(lambda: done == ["subscribe", "unsubscribe"])
            wait_until(lambda: subscribed(root) == 0)

    assert heard == [(topic, (root / "resourcesync/changenotification.xml").read_bytes())]


def test_a_mirror_that_is_followed_during_its_first_pull_is_followed_after_it(
    root: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    with served_with_hub(root) as base, service(tmp_path / "state") as push:
        push.retain({"new": (base, Network())})
        with MirrorFolder(copy, SystemClock()):  # as a pull that has not found its Source yet
            push.follow("new", copy, Network())
        assert push.standings() == []

        assert run(["pull", base, str(copy), "-q"]) == 0
        push.follow("new", copy, Network())

        assert push.standings()
