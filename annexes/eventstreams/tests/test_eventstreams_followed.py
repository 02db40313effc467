"""A live wiki becomes a Source that a mirror follows."""

import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app import mirror_opening
from resourcesync.app.mirror_home import Home
from resourcesync.app.publishing import accounts
from resourcesync.app.publishing.accounts import FollowedAccount
from resourcesync.app.serving.applications import LateApplication, find_tree
from resourcesync.destination.options import PullOptions
from resourcesync.ports import CancelToken
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.source.publication_options import PublishRequest
from resourcesync_eventstreams import account, pending_changes
from tests.support.accounts.wikimedia import event
from tests.support.servers.event_server import EventServer

ENGLISH = {"namespace": "0", "wiki": "enwiki"}
QUICK = {"quiet": "0.2"}


@dataclass(slots=True)
class Wiki:
    """The pages as they are, each of them a file, and a feed that tells of each change."""

    root: Path
    feed: EventServer
    luck: random.Random
    numbers: Counter[str] = field(default_factory=Counter)

    def happen(self) -> None:
        title = f"page_{self.luck.randrange(400)}.html"
        dice, path = self.luck.random(), self.root / "wiki" / title
        kind, more = ("edit" if path.exists() else "new"), dict[str, object]()
        if dice < 0.1:  # nothing that concerns us
            other = ({"namespace": 1}, {"wiki": "dewiki"}, {"type": "categorize"})
            more = dict(self.luck.choice(other))
        elif dice < 0.2 and path.exists():
            kind = "delete"
            path.unlink()
        else:
            self.numbers[title] += 1
            fresh = path.with_name(f".{title}")
            fresh.write_text(f"{title}, change {self.numbers[title]}\n")
            fresh.rename(path)
        comment = "c" * self.luck.randrange(1_000)
        self.feed.tell(event(title, kind, datetime.now(UTC), comment=comment, **more))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(pending_changes, "MAX_BATCH_SECONDS", 0.05)


def pull(folder: Path, url: str) -> None:
    with mirror_opening.open_destination(
        Home(folder), source=url, report=lambda *_: None, cancel=CancelToken(SystemClock())
    ) as destination:
        destination.pull(PullOptions())


@pytest.mark.founding(
    "WWW §2.2",
    "Wikipedia: its stream of changes becomes a Source that is followed",
    "`publish eventstreams:URL --watch`",
)
def test_a_wiki_is_mirrored_though_its_feed_is_cut_and_its_publisher_ends_again_and_again(
    tmp_path: Path,
) -> None:
    root, copy, late = tmp_path / "public", tmp_path / "copy", LateApplication()
    (root / "wiki").mkdir(parents=True)
    with EventServer() as feed, ServerThread(late) as server:
        feed.named(lambda number: json.dumps([{"offset": number}]))
        feed.manners.cut_after = 7
        wiki = Wiki(root, feed, random.Random(5))
        followed = FollowedAccount(
            address=f"eventstreams:{feed.url}",
            values={"uri": f"{server.uri}wiki/{{title}}", **ENGLISH, **QUICK},
            out=root,
        )
        for number in range(3):
            publishing = accounts.publish_continuously(
                followed,
                {"url": server.uri},
                clock=SystemClock(),
                asked=PublishRequest(),
                every=0.3,
            )
            next(publishing)
            late.application = find_tree(root).application(SystemClock())
            for _ in range(20):
                wiki.happen()
            if number < 2:
                next(publishing)
                pull(copy, server.uri)
            else:
                until = time.monotonic() + 8
                while time.monotonic() < until and not _is_equal(wiki, copy):
                    next(publishing)
                    pull(copy, server.uri)
            publishing.close()  # type: ignore[attr-defined]

        assert _is_equal(wiki, copy)
        assert len(wiki.numbers) > 20
        assert len(feed.asked) >= 8


def _is_equal(wiki: Wiki, copy: Path) -> bool:
    here = {path.name: path.read_text() for path in (wiki.root / "wiki").iterdir()}
    there = {path.name: path.read_text() for path in (copy / "wiki").glob("*")}
    return here == there
