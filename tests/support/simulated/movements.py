"""Lives whose Source moves: what happens then to a mirror, and what must hold."""

import random
from collections.abc import Callable, Sequence
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import SourceError, SyncError
from resourcesync.model.settings import Limit
from resourcesync.ports import FetchRequest
from tests.support.crashes.killing import killed
from tests.support.in_memory import ManualClock
from tests.support.worlds.moving import Moving
from tests.support.worlds.network import Answer, Network, Serve
from tests.support.worlds.world import World


class Life:
    """One mirror and its Source, which may move: what happens is drawn, and written down."""

    def __init__(self, folder: Path, source: Any, entry: str, luck: random.Random) -> None:
        self.luck, self.source = luck, source
        self.log: list[str] = []
        self.moving = Moving(entry)
        self.world: World[Any] = World(folder, source, network=Network(self.route))
        self._hosts = 0

    def route(self, request: FetchRequest, serve: Serve) -> Answer | Exception:
        return self.moving.route(request, serve)

    def pull_checked(self) -> object:
        raise NotImplementedError

    def move_behind_tls(self) -> None:
        self.moving.move_behind_tls()

    def move_away(self) -> None:
        self._hosts += 1
        before = self.world.files()
        self.moving.move(f"{self.luck.choice(('http', 'https'))}://moved{self._hosts}.example/")
        try:
            report = self.world.pull(None, max_delete=Limit(percent=100))
        except (SourceError, SyncError) as error:
            self.log.append(f"  not there any more: {error}")
        else:
            assert report.state is not MirrorState.IN_SYNC, "in sync with what is not there"
        assert self.world.files() == before, "lost because the Source moved"

    def do_killed_pull(self) -> None:
        writes, how = self.luck.randrange(14), self.luck.randrange(3)
        with killed(self.world.home, writes, how=how) as fuse:
            self.pull_checked()
        self.log += ["  killed"] * fuse.is_burnt

    def do_steps(self, steps: Sequence[Callable[[], None]], count: int) -> None:
        for _ in range(count):
            step = self.luck.choice(steps)
            self.log.append(step.__name__)
            step()
            if self.luck.random() < 0.7:
                self.pull_checked()


class DatedAnswers:
    """Dates the answers of a server that tells versions by ``Last-Modified`` alone."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._written: dict[str, tuple[bytes, str]] = {}

    def dated(self, uri: str, answer: Answer) -> Answer:
        if answer.status != 200:
            return answer
        now = format_datetime(self._clock.now().replace(microsecond=0), usegmt=True)
        before = self._written.get(uri)
        if before is None or before[0] != answer.body:
            before = self._written[uri] = (answer.body, now)
        dates = {"etag": "", "last-modified": before[1], "date": now}
        return Answer(answer.status, answer.body, {**answer.headers, **dates}, answer.uri)


def live(
    name: str,
    life_of: Callable[[Path, Any, random.Random], Any],
    habits_of: Callable[[random.Random], Any],
    folder: Path,
    seed: int,
) -> None:
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
