"""A Source with a hub of its own, and a subscriber with its callbacks, both on loopback."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing import trees
from resourcesync.app.serving import applications, hubs
from resourcesync.push_state.stores import FileFollowers
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.server.websub import CallbackApplication
from resourcesync.websub.subscriber import Subscriber


@contextmanager
def served_with_hub(root: Path) -> Iterator[str]:
    clock = SystemClock()
    late = applications.LateApplication()
    with ServerThread(late) as server:
        base = server.uri
        chosen = {"url": base, "hubs": (f"{base}hub",), "notify": True}
        trees.publish_tree(root, chosen, clock=clock)
        found = applications.find_tree(root)
        own = found.own_hub(clock, private=True)
        late.application = found.application(clock, hub=own)
        with own.running():
            yield base


@contextmanager
def subscriber(folder: Path, hints: list[str]) -> Iterator[tuple[Subscriber, FileFollowers]]:
    clock = SystemClock()
    late = applications.LateApplication()
    with ExitStack() as stack:
        server = stack.enter_context(ServerThread(late))
        store = FileFollowers(folder / "push.db")
        stack.callback(store.close)
        messenger = hubs.open_messenger(clock, private=True)
        stack.callback(messenger.close)
        made = Subscriber(
            store,
            messenger,
            clock,
            callback_base=server.uri,
            on_hint=hints.append,
            token=hubs.new_token,
            chance=Random(1).random,
            hint_every=0.0,
        )
        late.application = CallbackApplication(made)
        yield made, store
