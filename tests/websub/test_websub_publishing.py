"""What a Source tells of its channels, and when hubs hear of what it published."""

import itertools
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving import hubs
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.documents import Capability, read
from resourcesync.errors import ConfigurationError
from resourcesync.model.entries import CapabilityEntry, Change
from resourcesync.source import notifications
from resourcesync.source.publication_options import PublicationResult
from resourcesync.source.publication_settings import CATALOGUE
from resourcesync.websub.messages import FORM, is_signed
from tests.support.servers.listening import Heard, Listener, Reply

BASE = "https://museum.example/"


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = SystemClock()

    def put(self, *names: str, content: str = "") -> None:
        for name in names:
            (self.root / name).write_text(content or name, encoding="utf-8")

    def publish(self, **chosen: Any) -> PublicationResult:
        return publish_tree(self.root, chosen, clock=self.clock)

    def notify(self) -> notifications.Notified:
        return hubs.notify_published(self.root / CATALOGUE, self.root, self.clock)

    def entries(self, name: str) -> list[Any]:
        return list(read((self.root / name).read_bytes()).entries())

    def channel(self, name: str) -> CapabilityEntry | None:
        found = [entry for entry in self.entries(name) if "notification" in entry.label]
        assert len(found) < 2
        return found[0] if found else None


@pytest.fixture
def hub() -> Iterator[Listener]:
    with Listener() as found:
        yield found


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    root = tmp_path / "public"
    root.mkdir()
    made = Tree(root)
    made.put("a")
    return made


def payloads_of(hub: Listener, name: str = "changenotification") -> list[bytes]:
    return [post.body for post in hub.posts() if name in post.fields["link"]]


def uris(body: bytes) -> list[str]:
    return [entry.uri.removeprefix(BASE) for entry in read(body).entries()]


def test_the_lists_lead_to_the_channels_and_their_hubs(tree: Tree) -> None:
    hubs = ("https://hub.example/", "https://museum.example/hub")
    tree.publish(url=BASE, hubs=hubs)

    changes = tree.channel("resourcesync/capabilitylist.xml")
    documents = tree.channel(".well-known/resourcesync")
    assert changes is not None
    assert documents is not None
    assert changes.uri == f"{BASE}resourcesync/changenotification.xml"
    assert changes.capability is Capability.CHANGE_NOTIFICATION
    assert documents.uri == f"{BASE}resourcesync/frameworknotification.xml"
    assert documents.capability is Capability.FRAMEWORK_NOTIFICATION
    for entry in (changes, documents):
        assert tuple(link.href for link in entry.hubs) == hubs

    assert not tree.publish().publication.written
    tree.publish(hubs=())
    assert tree.channel("resourcesync/capabilitylist.xml") is None
    assert tree.channel(".well-known/resourcesync") is None
    assert not list((tree.root / "resourcesync").glob("*notification.xml"))


@pytest.mark.parametrize(
    "chosen",
    [
        {"hubs": ("hub",)},
        {"hubs": ("ftp://hub.example/",)},
        {"hubs": ("https://hub.example/<x>",)},
        {"hubs": ('https://hub.example/"',)},
        {"hubs": ("https://hub.example/",), "dialect": "0.9.1"},
    ],
)
def test_a_hub_that_cannot_be_told_is_refused(tree: Tree, chosen: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        tree.publish(url=BASE, **chosen)


def test_a_publication_is_told_after_it_can_be_read(tree: Tree, hub: Listener) -> None:
    seen: list[list[str]] = []

    def answer(heard: Heard) -> Reply:
        del heard
        listed = tree.entries("resourcesync/changelist.xml")
        seen.append([item.uri.removeprefix(BASE) for item in listed])
        assert (tree.root / "resourcesync/changenotification.xml").exists()
        return 204, b""

    hub.answer = answer
    tree.publish(url=BASE, hubs=(hub.origin,), notify=True)
    assert hub.heard == []  # nobody could have subscribed yet
    tree.put("b")
    done = tree.publish()

    assert done.notified is not None
    assert (done.notified.changes, done.notified.documents) == (1, 2)
    assert done.notified.problems == ()
    assert seen == [["b"]] * 2
    [body] = payloads_of(hub)
    assert uris(body) == ["b"]
    assert body == (tree.root / "resourcesync/changenotification.xml").read_bytes()
    [document] = payloads_of(hub, "frameworknotification")
    assert sorted(uris(document)) == [
        "resourcesync/changelist.xml",
        "resourcesync/resourcelist.xml",
    ]
    assert not tree.publish().notified.sent  # type: ignore[union-attr]


def test_one_notification_begins_where_the_last_one_ended(tree: Tree, hub: Listener) -> None:
    tree.publish(url=BASE, hubs=(hub.origin,), notify=True)
    for name in "bcd":
        tree.put(name)
        tree.publish()

    headers = [read(body).header for body in payloads_of(hub)]
    assert len(headers) == 3
    for before, after in itertools.pairwise(headers):
        assert before.until is not None
        assert after.from_ is not None
        assert timedelta(0) <= after.from_ - before.until < timedelta(seconds=5)
    for header, body in zip(headers, payloads_of(hub), strict=True):
        for change in read(body).entries():
            assert isinstance(change, Change)
            assert change.time is not None
            assert header.from_ is not None
            assert header.until is not None
            assert header.from_ <= change.time <= header.until


def test_what_a_hub_did_not_hear_it_hears_the_next_time_with_what_came_since(
    tree: Tree, hub: Listener
) -> None:
    with Listener() as other:
        tree.publish(url=BASE, hubs=(hub.origin, other.origin), notify=True)
        hub.answer = lambda _: (500, b"")
        tree.put("b")
        done = tree.publish()
        assert done.notified is not None
        assert {problem.notice.hub for problem in done.notified.problems} == {hub.origin}
        assert done.publication.created == 1
        tree.put("c")
        tree.publish()
        hub.answer = lambda _: (204, b"")
        assert not tree.notify().problems
        assert [uris(chunk) for chunk in payloads_of(hub)] == [["b"], ["b", "c"], ["b", "c"]]
        assert [uris(chunk) for chunk in payloads_of(other)][:1] == [["b"]]
        assert not tree.notify().sent
        assert len({post.body for post in other.posts()}) == len(other.posts())


def test_submissions_are_signed_once_there_is_a_key(tree: Tree, hub: Listener) -> None:
    tree.publish(url=BASE, hubs=(hub.origin,), notify=True)
    tree.put("b")
    tree.publish()
    assert all("x-hub-signature" not in post.fields for post in hub.posts())
    folder = tree.root / ".resourcesync"
    key = hubs.read_key(folder, makes=True)
    assert len(key) >= 43
    assert hubs.read_key(folder, makes=True) == key
    assert (folder / "push.key").stat().st_mode & 0o777 == 0o600
    tree.put("c")
    tree.publish()
    last = hub.posts()[-1]
    assert is_signed(key, last.body, [last.fields["x-hub-signature"]])


def test_a_hub_that_takes_no_payload_is_told_to_look(tree: Tree, hub: Listener) -> None:
    def answer(heard: Heard) -> Reply:
        return (204, b"") if heard.fields["content-type"] == FORM else (400, b"hub.mode?")

    hub.answer = answer
    tree.publish(url=BASE, hubs=(hub.origin,), notify=True)
    tree.put("b")
    done = tree.publish()

    assert done.notified is not None
    assert not done.notified.problems
    assert all(outcome.is_plain for outcome in done.notified.sent)
    forms = [
        parse_qs(post.body.decode()) for post in hub.posts() if post.fields["content-type"] == FORM
    ]
    assert [form["hub.mode"] for form in forms] == [["publish"], ["publish"]]
    topics = {
        f"{BASE}resourcesync/{name}.xml" for name in ("changenotification", "frameworknotification")
    }
    assert {form["hub.url"][0] for form in forms} == topics
    assert {form["hub.topic"][0] for form in forms} == topics


def test_more_changes_than_one_notification_holds_show_their_gap(
    tree: Tree, hub: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resourcesync.source.notifications.MOST_ENTRIES", 3)
    tree.publish(url=BASE, hubs=(hub.origin,), notify=True)
    tree.put(*"bcdef")
    tree.publish()

    [body] = payloads_of(hub)
    assert uris(body) == ["d", "e", "f"]
    [first, *_] = read(body).entries()
    assert isinstance(first, Change)
    assert read(body).header.from_ == first.time


def test_a_notification_is_never_longer_than_a_receiver_takes(
    tree: Tree, hub: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resourcesync.websub.messages.MOST_PAYLOAD", 2_000)
    tree.publish(url=BASE, hubs=(hub.origin,), notify=True)
    tree.put(*"bcdefghijklmnopqrstuvwxyz")
    tree.publish()

    [body] = payloads_of(hub)
    assert len(body) <= 2_000
    assert uris(body)[-1] == "z"


def test_a_damaged_note_fails_no_publication(tree: Tree, hub: Listener) -> None:
    tree.publish(url=BASE, hubs=(hub.origin,), notify=True)
    with closing(
        SourceCatalogue(tree.root / ".resourcesync/catalogue.db", tree.clock)
    ) as catalogue:
        catalogue.write_notes({"notifications": '{"x": []}'})
    tree.put("b")
    done = tree.publish()

    assert done.publication.created == 1
    assert done.notified is not None
    assert done.notified.error is not None
