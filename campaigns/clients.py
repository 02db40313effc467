"""Real clients of others follow our Source, under each policy of ``publish``.

A baseline; then a file is created, one updated, one deleted; then one renamed; then a Resource List
is written. After each step each client follows, and what it has is compared: copies by SHA-256, and
where it only reads lists, the entries. A client that cannot be had here is skipped, with the
reason. ``RESOURCESYNC_CLIENTS`` names a folder in which clients stay set up between runs.

The table shows after which steps each is equal: ``1234`` is always, ``-`` never.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from campaigns import foreign_clients
from campaigns.foreign_clients import Client, ClientError, Seen, SetupError, plain_uri
from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving.applications import find_tree
from resourcesync.model.timestamps import parse_w3c
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.source.publication_options import PublishRequest
from resourcesync.source.stored_plan import PublicationStep
from tests.support.commands.run import files_of, free_port

POLICIES: Final[Mapping[str, Mapping[str, object]]] = {
    "default": {},
    "default, sitemap": {"sitemap": True},
    "open": {"rebase_up_to": 0},
    "rotated": {"rebase_up_to": 0, "rotate": 1e-6},
    "per-run": {"rebase_up_to": 0, "change_lists": "per-run"},
    "per-run, rebased": {"change_lists": "per-run"},
    "archive": {"rebase_up_to": 0, "change_lists": "archive"},
    "archive, rebased": {"change_lists": "archive"},
    "parts": {"max_entries": 5},
    "1.0": {"dialect": "1.0"},
}
"""The settings of each policy; ``parts`` has indexes of all lists."""
STEPS: Final = ("baseline", "changes", "renamed", "rebased")
_OWN: Final = ("resourcesync-sitemap", "robots.txt")
_BEGIN: Final = 1_700_000_000

_MAKERS: Final[tuple[tuple[str, Callable[[Path], Client]], ...]] = (
    ("resync-sync", foreign_clients.Resync),
    ("resync-sync --incremental", partial(foreign_clients.Resync, incremental=True)),
    ("rs-aggregator", foreign_clients.Aggregator),
    ("resync-client (Ruby)", foreign_clients.RubyClient),
    ("resync-client (Ruby), changes", partial(foreign_clients.RubyClient, changes=True)),
    ("go-resourcesync", foreign_clients.GoReader),
    *((name, partial(foreign_clients.PythonReader, name=name)) for name in foreign_clients.READERS),
)


def run(asked: Asked) -> Outcome:
    """Let each client that is there follow a Source of each policy."""
    outcome = Outcome()
    folder = Path(os.environ.get("RESOURCESYNC_CLIENTS") or asked.folder / "clients").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    clients = _set_up(folder, outcome)
    table = {policy: _follow(asked, policy, clients) for policy in POLICIES if clients}
    width = max(map(len, POLICIES))
    outcome.add("client", "  ".join(f"{policy:<{width}}" for policy in table))
    for client in clients:
        cells = (f"{table[policy][client.name]:<{width}}" for policy in table)
        outcome.add(client.name, "  ".join(cells))
        always = "".join(str(number + 1) for number in range(len(STEPS)))
        equal = table["default, sitemap"][client.name] == always
        outcome.require(equal, f"{client.name} does not follow what is published by default")
    outcome.add("clients that could be had", len(clients))
    if not clients:
        outcome.missing = "no client could be had here"
    return outcome


def _set_up(folder: Path, outcome: Outcome) -> list[Client]:
    clients: list[Client] = []
    for name, make in _MAKERS:
        try:
            clients.append(make(folder))
        except SetupError as error:
            outcome.add(f"{name} is skipped", str(error)[:200])
    return clients


def _follow(asked: Asked, policy: str, clients: list[Client]) -> Mapping[str, str]:
    """Publish step by step under a policy; return the steps after which each client is equal."""
    home = asked.folder / policy.replace(", ", "-")
    tree = home / "tree"
    tree.mkdir(parents=True)
    port = free_port()
    base, equal = f"http://127.0.0.1:{port}/", {client.name: "" for client in clients}
    for number, step in enumerate(STEPS):
        _change(tree, number, asked.size)
        request = PublishRequest()
        if step == "rebased":
            request = PublishRequest(step=PublicationStep.REBASE)
        options = {**POLICIES[policy], "url": base, "robots": True} if number == 0 else {}
        publish_tree(tree, options, clock=SystemClock(), asked=request)
        with ServerThread(find_tree(tree).application(SystemClock()), port=port):
            for client in clients:
                of = home / client.name.replace(" ", "-")
                of.mkdir(exist_ok=True)
                try:
                    seen = client.follow(base, of, first=number == 0)
                except ClientError as error:
                    print(f"{policy}, {step}: {client.name}: {error}", flush=True)
                    continue
                if _is_equal(client, seen, tree, base):
                    equal[client.name] += str(number + 1)
    return {name: steps or "-" for name, steps in equal.items()}


def _change(tree: Path, number: int, size: int) -> None:
    """Make the files of a step; each changed file has a later second of its own."""
    if number == 0:
        for file in range(size):
            _write(tree / f"shelf {file % 3}" / f"object {file:03}.txt", f"object {file}", file)
        return
    if number == 1:
        _write(tree / "shelf 1" / "new.txt", "new", 1_000)
        (tree / "shelf 1" / "object 001.txt").unlink()
    if number == 2:
        (tree / "shelf 2" / "object 002.txt").rename(tree / "shelf 2" / "renamed.txt")
        return
    _write(tree / "shelf 0" / "object 000.txt", f"changed {number}", 1_000 * number)


def _write(path: Path, text: str, second: int) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (_BEGIN + second, _BEGIN + second))


def _is_equal(client: Client, seen: Seen, tree: Path, base: str) -> bool:
    """Tell whether a client has the files of the tree; of entries, the times that it shows."""
    there = {name: content for name, content in files_of(tree).items() if not name.startswith(_OWN)}
    if client.copies:
        return seen == {
            name: hashlib.sha256(content).hexdigest() for name, content in there.items()
        }
    times = {plain_uri(base + name): int((tree / name).stat().st_mtime) for name in there}
    read = {plain_uri(uri): text for uri, text in seen.items()}
    return read.keys() == times.keys() and all(
        not text or parse_w3c(text).timestamp() == times[uri] for uri, text in read.items()
    )


CAMPAIGN: Final = Campaign(run=run, size=12, unit="files", least=6, most=1_000)
