"""A Source that is set back to what it was, as from a backup; also while a pull lies dead."""

import copy
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from resourcesync.destination.options import Filters
from resourcesync.destination.planner import DeletionLimit
from resourcesync.destination.reports import MirrorState
from resourcesync.ports import FetchRequest
from tests.support.crashes.killing import Fuse
from tests.support.simulated.campaign import Campaign
from tests.support.simulated.lives import WEIGHTS, moves_of, style_of
from tests.support.worlds.memory_fetcher import Answer
from tests.support.worlds.world import BASE

REGRETTING: Final = {**WEIGHTS, "save": 4, "set_back": 1.5, "regretted_pull": 4}
"""The steps of a life whose Source is set back."""
_KEPT: Final = ("originals", "catalogue", "documents", "loose", "published")


class Regretting(Campaign):
    """A campaign whose Source keeps backups of itself, and goes back to them."""

    saved: dict[str, Any] | None = None

    def do_save(self, luck: random.Random) -> None:
        del luck
        self.saved = self._kept()

    def do_set_back(self, luck: random.Random) -> None:
        """The Source is what it was, and goes on from there."""
        if self.saved is not None:
            self._become(self.saved)
            self._go_on(luck)

    def do_regretted_pull(self, luck: random.Random) -> None:
        """Much changes, a pull is killed in the middle of it, and nothing of it ever was."""
        if not self.published:
            return
        before = self._kept()
        self._change_all(luck, self.originals.contents())
        self.fuse = Fuse(luck.randrange(14), how=luck.randrange(3))
        try:
            self._attempt(luck)
        finally:
            self.fuse = None
        self._become(before)
        self._go_on(luck)

    def _bad_network(self, luck: random.Random) -> None:
        """Old copies come from caches alone: of an old server nobody can tell (ADR 0071)."""
        super()._bad_network(luck)
        lying = self.fetcher.serve

        def serve(request: FetchRequest) -> Answer | Exception:
            return self.honest(request.uri) if request.uncached else lying(request)

        self.fetcher.serve = serve

    def _go_on(self, luck: random.Random) -> None:
        self.clock.advance(seconds=luck.choice((1, 3, 90)))
        for _ in range(luck.choice((0, 1, 1, 4))):
            self.do_put(luck)
        self.clock.advance(seconds=3)
        self.publish()

    def _kept(self) -> dict[str, Any]:
        known = {id(self.clock): self.clock}
        return copy.deepcopy({name: getattr(self, name) for name in _KEPT}, known)

    def _become(self, kept: dict[str, Any]) -> None:
        for name, value in copy.deepcopy(kept, {id(self.clock): self.clock}).items():
            setattr(self, name, value)
        self._store()

    def heal(self) -> None:
        """Time passes, and nobody lies meanwhile; who asks for a baseline then has all.

        What only a request could decide is in sync when the next pull has read the lists again.
        """
        self._untamper()
        for hours in (0, 2.5, 25, 2.5, 25):
            self.clock.advance(hours=hours)
            tick = f"{self.clock.now()}".encode()
            self.put("tick.txt", tick)
            self.ever.setdefault(BASE + "tick.txt", set()).add(tick)
            self.publish()
            self._pull_checked(random.Random(0), filters=Filters())
        self.do_snapshot(random.Random(0))
        report = self.pull(self.address(), mode="baseline", max_delete=DeletionLimit(count=99))
        self.tampered.clear()
        self.assert_in_sync()
        if report.refetched:
            report = self.pull(self.address())
        assert report.state is MirrorState.IN_SYNC, report


def live_regretting(folder: Path, seed: int) -> None:
    """Live the life of a seed, in an empty folder that is made.

    Its Source tells digests, and times to more than a second: of one that is set back within the
    second in which it lists something, nothing tells.

    Raises:
        AssertionError: Something did not hold.
    """
    luck = random.Random(seed)
    style = style_of(luck)
    if style is not None:
        style = replace(style, hashes=True, whole_seconds=False)
    max_entries, moves = luck.choice((3, 6, 50)), moves_of(luck, 30, REGRETTING)
    folder.mkdir(parents=True)
    regretting = Regretting(folder / "mirror", style=style, max_entries=max_entries)
    try:
        for move in moves:
            regretting.do(move)
        regretting.heal()
    except Exception as error:
        error.add_note(f"the life of seed {seed}: {style}, {max_entries} entries, {moves}")
        raise
