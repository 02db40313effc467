"""A Source that moves: behind TLS by redirects, or to another host, as a person says."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

from resourcesync.destination.planner import DeletionLimit
from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.errors import SourceError, SyncError
from resourcesync.ports import FetchRequest
from tests.support.worlds.memory_fetcher import Answer
from tests.support.worlds.world import BASE, World

_LISTS = (".xml", "list", "resourcesync")


class MovingWorld(World):
    """A world whose Source may be at another address than its resources are known by.

    Attributes:
        home: Where it is now.
        entry: The path of the document that leads to the others.
    """

    home = BASE
    entry = ""
    _known = ""
    _redirects = False

    def move_behind_tls(self) -> None:
        """From now on the server leads whoever comes without TLS to the same address with it."""
        self.home = self.home.replace("http:", "https:")
        self._redirects = True

    def move(self, home: str) -> None:
        """From now on the Source is at another host, and nothing is at the old one."""
        self.home, self._redirects = home, False

    def serve(self, request: FetchRequest) -> Answer | Exception:
        before = self.home.replace("https:", "http:")
        came_to = before if self._redirects and request.uri.startswith(before) else self.home
        if not request.uri.startswith(came_to):
            return Answer(status=404)
        path = request.uri.removeprefix(came_to)
        answer = super().serve(structs.replace(request, uri=BASE + path))
        if not isinstance(answer, Answer) or self.home == BASE:
            return answer
        body = answer.body
        if path.endswith(_LISTS):
            body = body.replace(BASE.encode(), self.home.encode())
        return replace(answer, body=body, uri=self.home + path)

    def pull_from_home(self, **options: object) -> RunReport:
        """Pull; say where the Source is, if the mirror is of another host yet."""
        host = self.home.partition("://")[2]
        moved = None if host == self._known else f"{self.home}{self.entry}"
        if not self._known:
            report = World.pull(self, moved, **options)
        else:
            report = World.pull(self, None, **{"moved": moved, **options} if moved else options)
        self._known = host
        return report


class MovingLife(MovingWorld):
    """A mirror to which things happen, one of which is that its Source moves.

    Attributes:
        luck: What happens.
        log: What happened.
        hosts: How often the Source went to another host.
    """

    luck: random.Random
    log: list[str]
    hosts = 0

    def do_move_behind_tls(self) -> None:
        """The Source goes behind TLS, and its server leads there."""
        self.move_behind_tls()

    def do_move_away(self) -> None:
        """The Source goes to another host; until a person says so, nothing is right or lost."""
        self.hosts += 1
        before = self.files()
        self.move(f"{self.luck.choice(('http', 'https'))}://moved{self.hosts}.example/")
        try:
            report = World.pull(self, None, max_delete=DeletionLimit(percent=100))
        except (SourceError, SyncError) as error:
            self.log.append(f"  not there any more: {error}")
        else:
            assert report.state is not MirrorState.IN_SYNC, "in sync with what is not there"
        assert self.files() == before, "lost because the Source moved"


def live(
    name: str,
    life_of: Callable[[Path, Any, random.Random], Any],
    habits_of: Callable[[random.Random], Any],
    folder: Path,
    seed: int,
) -> None:
    """Live the life of a seed, in an empty folder that is made.

    Raises:
        AssertionError: Something did not hold.
    """
    luck = random.Random(f"{name} {seed}")
    folder.mkdir(parents=True)
    habits = habits_of(luck)
    life = None
    try:
        life = life_of(folder / "mirror", habits, luck)
        life.live()
    except Exception as error:
        log = [] if life is None else life.log
        error.add_note(f"the life of seed {seed}: {habits}\n" + "\n".join(log))
        raise
