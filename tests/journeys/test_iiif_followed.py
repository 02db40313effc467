"""IIIF Change Discovery over HTTP: our own stream is followed, and leads to the same resources."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app import plugins
from resourcesync.app.publishing import accounts, catalogues, trees
from resourcesync.app.publishing.accounts import FollowedAccount
from resourcesync.app.serving import applications
from resourcesync.errors import ConfigurationError
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from tests.support.documents.change_discovery import WrittenStream, faults
from tests.support.servers.asgi import ask

needs_entry_point = pytest.mark.skipif(
    "iiif" not in plugins.names(plugins.ACCOUNTS),
    reason="this installation is older than iiif: run pip install -e . again",
)
RULES = ("Manifest=*/manifest.json", "Collection=*/collection.json")
CLOCK = SystemClock()


class OfferedTree:
    """A tree of manifests that is published and served."""

    def __init__(self, root: Path, base: str) -> None:
        self.root = root
        self.base = base

    def put(self, name: str, text: str = "{}") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def publish(self) -> None:
        trees.publish_tree(
            self.root, {"url": self.base, "iiif": RULES, "max_entries": 10}, clock=CLOCK
        )

    def manifests(self) -> set[str]:
        names = ("manifest.json", "collection.json")
        return {
            self.base + path.relative_to(self.root).as_posix()
            for path in self.root.rglob("*.json")
            if path.name in names
        }


@contextmanager
def offered(root: Path) -> Iterator[OfferedTree]:
    late = applications.LateApplication()
    with ServerThread(late) as server:
        tree = OfferedTree(root, server.uri)
        for number in range(25):
            tree.put(f"objects/{number}/manifest.json")
        tree.put("collection.json")
        tree.put("image.jpg")
        tree.publish()
        late.application = applications.find_tree(root).application(CLOCK)
        yield tree


def follow(tree: OfferedTree, out: Path) -> PublicationResult:
    followed = FollowedAccount(
        address=f"iiif:{tree.base}resourcesync/activities.json", values={}, out=out
    )
    return accounts.publish_account(
        followed, {"url": tree.base}, clock=CLOCK, asked=PublishRequest()
    )


def followed_resources(out: Path) -> set[str]:
    return {
        resource.uri for resource in catalogues.read_resources(out / ".resourcesync/catalogue.db")
    }


@needs_entry_point
def test_our_own_stream_leads_to_the_same_set_after_each_of_many_changes(tmp_path: Path) -> None:
    dice, out = random.Random(24), tmp_path / "out"
    with offered(tmp_path / "tree") as tree:
        follow(tree, out)
        assert followed_resources(out) == tree.manifests()
        for round_ in range(20):
            for _ in range(dice.randrange(4)):
                tree.put(f"objects/{dice.randrange(60)}/manifest.json", f"{round_}")
            for path in sorted((tree.root / "objects").rglob("*.json"))[round_::19]:
                path.unlink()
            tree.publish()
            done = follow(tree, out)
            assert followed_resources(out) == tree.manifests()
            assert not done.scan.left  # nothing was lost, and nothing read again
        assert follow(tree, out).publication.written == ()


def test_the_stream_is_served_as_the_specification_asks(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    with offered(root) as tree:
        app = applications.find_tree(root).application(CLOCK)
        stream = WrittenStream(
            f"{tree.base}resourcesync/activities.json",
            lambda uri: ask(app, "/" + uri.removeprefix(tree.base)).body,
        )
        assert faults(stream) == []
        assert stream.objects().keys() == tree.manifests()
        assert len(stream.pages) == 3
        answer = ask(
            app, "/resourcesync/activities-000001.json", fields={"accept-encoding": "gzip"}
        )
        assert answer.fields["content-type"] == (
            'application/ld+json;profile="http://iiif.io/api/discovery/1/context.json"'
        )
        assert answer.fields["access-control-allow-origin"] == "*"
        assert answer.fields["content-encoding"] == "gzip"
        assert stream.activities[-1]["object"]["format"] == "application/json"
        (root / "resourcesync/other.json").write_text("{}")
        assert ask(app, "/resourcesync/other.json").status == 404


def test_a_file_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "resourcesync").mkdir()
    foreign = tmp_path / "resourcesync/activities.json"
    foreign.write_text('{"mine": true}')
    (tmp_path / "manifest.json").write_text("{}")
    chosen = {"url": "https://h.example/", "iiif": ("Manifest",)}
    with pytest.raises(ConfigurationError, match="was not written by resourcesync"):
        trees.publish_tree(tmp_path, chosen, clock=CLOCK)
    assert foreign.read_text() == '{"mine": true}'
    trees.publish_tree(tmp_path, {"url": "https://h.example/"}, clock=CLOCK)
