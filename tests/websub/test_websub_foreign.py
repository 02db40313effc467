"""flask-websub, written by others, as a hub for us and as a subscriber of our hub."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.push_state.rows import FollowerState
from resourcesync.websub.channels import Channel
from tests.support.servers.listening import serving
from tests.support.servers.pushing import served_with_hub, subscriber
from tests.support.waiting import wait_until


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


def test_we_subscribe_at_a_foreign_hub_and_tell_it_to_look(tmp_path: Path) -> None:
    import flask
    from flask_websub.hub import Hub, SQLite3HubStorage

    root = tmp_path / "public"
    root.mkdir()
    (root / "a.txt").write_text("a")
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
        publish_tree(root, {"hubs": (hub,)}, clock=SystemClock())
        mine.follow("museum", [Channel(topic=topic, hubs=(hub,))])
        mine.tick()
        wait_until(
            lambda: (
                [subscription.state for subscription in store.subscriptions()]
                == [FollowerState.ACTIVE]
            )
        )
        wait_until(lambda: hints == ["museum"])
        wait_until(lambda: list(storage.get_callbacks(topic)))

        (root / "b.txt").write_text("b")
        done = publish_tree(root, {}, clock=SystemClock())
        assert done.notified is not None
        assert [(outcome.problem, outcome.is_plain) for outcome in done.notified.sent] == [
            ("", True)
        ] * 2
        wait_until(lambda: hints == ["museum"] * 2)  # signed with sha512, which is good enough


def test_a_foreign_subscriber_finds_our_hub_and_gets_what_we_publish(tmp_path: Path) -> None:
    import flask
    from flask_websub import subscriber as others

    root = tmp_path / "public"
    root.mkdir()
    (root / "a.txt").write_text("a")
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
            wait_until(lambda: hub_has(root, 1))
            (root / "b.txt").write_text("b")
            publish_tree(root, {}, clock=SystemClock())
            wait_until(lambda: len(heard) == 1)
            foreign.unsubscribe(callback)
            wait_until(lambda: done == ["subscribe", "unsubscribe"])
            wait_until(lambda: hub_has(root, 0))

    assert heard == [(topic, (root / "resourcesync/changenotification.xml").read_bytes())]


def hub_has(root: Path, number: int) -> bool:
    with closing(sqlite3.connect(root / ".resourcesync/hub.db")) as connection:
        found: int = connection.execute("SELECT count(*) FROM subscription").fetchone()[0]
    return found == number
