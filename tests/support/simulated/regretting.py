"""A Source that is set back to what it was, as from a backup; also while a pull lies dead."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.model.settings import Limit
from tests.support.simulated.campaign import Campaign, Move
from tests.support.simulated.lives import WEIGHTS, moves_of, style_of
from tests.support.worlds.loose_source import LooseSource, Style
from tests.support.worlds.network import BASE
from tests.support.worlds.published_source import PublishedSource

REGRETTING: Final = {**WEIGHTS, "save": 4, "set_back": 1.5, "regretted_pull": 4}


class Backup(NamedTuple):
    source: PublishedSource | LooseSource
    published: dict[str, bytes]


class Regretting:
    """A campaign whose Source keeps backups of itself, and goes back to them."""

    def __init__(self, folder: Path, *, style: Style | None, max_entries: int) -> None:
        # Old copies come from caches alone: of an old server nobody can tell (ADR 0102).
        self.campaign = Campaign(folder, style=style, max_entries=max_entries, only_caches_lie=True)
        self._saved: Backup | None = None

    def do(self, move: Move) -> None:
        name, _ = move
        own = {
            "save": self._save,
            "set_back": self._set_back,
            "regretted_pull": self._regretted_pull,
        }
        self.campaign.do(move, own.get(name))

    def _save(self, luck: random.Random) -> None:
        del luck
        self._saved = self._backup()

    def _set_back(self, luck: random.Random) -> None:
        if self._saved is not None:
            self._become(self._saved)
            self._go_on(luck)

    def _regretted_pull(self, luck: random.Random) -> None:
        """Much changes, a pull is killed in the middle of it, and nothing of it ever was."""
        campaign = self.campaign
        if not campaign.published:
            return
        before = self._backup()
        campaign.change_all(luck, campaign.source.contents())
        with campaign.killed(luck):
            campaign.attempt(luck)
        self._become(before)
        self._go_on(luck)

    def _go_on(self, luck: random.Random) -> None:
        campaign = self.campaign
        campaign.clock.advance(seconds=luck.choice((1, 3, 90)))
        for _ in range(luck.choice((0, 1, 1, 4))):
            campaign.do_put(luck)
        campaign.clock.advance(seconds=3)
        campaign.publish()

    def _backup(self) -> Backup:
        return Backup(self.campaign.source.saved(), dict(self.campaign.published))

    def _become(self, backup: Backup) -> None:
        self.campaign.world.source = backup.source.saved()
        self.campaign.published = dict(backup.published)
        self.campaign.note_versions()

    def heal(self) -> None:
        campaign = self.campaign
        campaign.untamper()
        for hours in (0, 2.5, 25, 2.5, 25):
            campaign.clock.advance(hours=hours)
            tick = f"{campaign.clock.now()}".encode()
            campaign.source.put("tick.txt", tick)
            campaign.ever.setdefault(BASE + "tick.txt", set()).add(tick)
            campaign.publish()
            campaign.pull_checked(random.Random(0), filters=Filters())
        campaign.do_snapshot(random.Random(0))
        report = campaign.world.pull(mode="baseline", max_delete=Limit(number=99))
        campaign.rot.tampered.clear()
        campaign.assert_in_sync()
        if _is_only_in_doubt(report):
            report = campaign.world.pull()
        assert report.state is MirrorState.IN_SYNC, report


def _is_only_in_doubt(report: RunReport) -> bool:
    """True if all that was listed is here, and a request decided what the lists dispute."""
    left = (
        report.listed.pending
        + report.failed
        + report.held
        + report.listed.refused
        + report.faults.unread
    )
    return report.state is MirrorState.BEHIND and not left and not report.faults.gap


def live_regretting(folder: Path, seed: int) -> None:
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
