"""Lives whose Source moves: what happens then to a mirror, and what must hold."""

import random
from collections.abc import Callable
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import SourceError, SyncError
from resourcesync.model.settings import Limit
from tests.support.in_memory import ManualClock
from tests.support.worlds.moving import Moving
from tests.support.worlds.network import Answer
from tests.support.worlds.world import World


class Movements:
    """Lets the Source of a world move."""

    def __init__(
        self, world: World[Any], moving: Moving, luck: random.Random, log: list[str]
    ) -> None:
        self._world, self._moving, self._luck, self._log = world, moving, luck, log
        self._hosts = 0

    def move_behind_tls(self) -> None:
        """The Source goes behind TLS, and its server leads there."""
        self._moving.move_behind_tls()

    def move_away(self) -> None:
        """The Source goes to another host; until a person says so, nothing is right or lost."""
        self._hosts += 1
        before = self._world.files()
        self._moving.move(f"{self._luck.choice(('http', 'https'))}://moved{self._hosts}.example/")
        try:
            report = self._world.pull(None, max_delete=Limit(percent=100))
        except (SourceError, SyncError) as error:
            self._log.append(f"  not there any more: {error}")
        else:
            assert report.state is not MirrorState.IN_SYNC, "in sync with what is not there"
        assert self._world.files() == before, "lost because the Source moved"


class DatedAnswers:
    """Dates the answers of a server that tells versions by ``Last-Modified`` alone."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._written: dict[str, tuple[bytes, str]] = {}

    def dated(self, uri: str, answer: Answer) -> Answer:
        """Return an answer with the moment at which its body was seen first."""
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
