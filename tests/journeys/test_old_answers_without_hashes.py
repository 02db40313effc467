"""An older change and an old replica, where the Resource List has dates and no hashes."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.worlds.contradicting_source import OTHERS, ContradictingSource, change
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World


class DatedSource(ContradictingSource):
    def list(self, at: str, listed: str | None, *changes: str) -> None:
        known = {**OTHERS} if listed is None else {**OTHERS, "a.html": listed}
        entries = [
            f"<url><loc>{BASE}{name}</loc><lastmod>2026-01-02T01:00:00Z</lastmod>"
            f'<rs:md length="{len(text)}"/></url>'
            if self.lengths
            else f"<url><loc>{BASE}{name}</loc><lastmod>2026-01-02T01:00:00Z</lastmod></url>"
            for name, text in sorted(known.items())
        ]
        self._write("resourcelist", f'at="{at}"', entries)
        self._write("changelist", 'from="2025-12-30T00:00:00Z"', changes)

    lengths = False


@pytest.mark.parametrize("mode", ["auto", "baseline"])
@pytest.mark.parametrize("served", ["first", None])
def test_an_older_change_and_an_old_replica_take_no_dated_copy_away(
    tmp_path: Path, served: str | None, mode: str
) -> None:
    world = World(tmp_path, DatedSource())
    world.source.begin()
    world.source.serve_one("second")
    world.source.list("2026-01-02T02:00:00Z", "second")
    assert world.pull().state is MirrorState.IN_SYNC
    kind = "deleted" if served is None else "updated"
    text = change(kind, served or "", time="2026-01-02T00:00:00Z")
    world.source.list("2026-01-03T02:00:00Z", "second", text)
    world.source.serve_one(served)
    world.clock.advance(seconds=3_600)

    world.pull(mode=mode)

    assert world.texts().get("a.html") == "second"
