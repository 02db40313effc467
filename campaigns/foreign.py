"""Lives of mirrors whose Source writes its lists as foreign software does.

Every second Source is of no known software: its lists begin again within a second, get shorter,
lose deletions, have the newest change first; only the Resource List is written again; caches have
old copies. The others are WEKO3, Hyrax, DSpace of 2013 and CORE FastSync, and things change within
a second. All move behind TLS or to another host, and pulls are killed. Who says in sync must be so,
and nothing may be gone that the Source has.
"""

from functools import partial
from pathlib import Path
from typing import Final

from campaigns import lives
from campaigns.outcome import Campaign
from tests.support.simulated.foreign_lives import live_foreign
from tests.support.simulated.software_lives import live_software


def _live(folder: Path, seed: int) -> None:
    """Live the life of a seed: of odd ones with a Source of known software."""
    (live_software if seed % 2 else live_foreign)(folder, seed // 2)


CAMPAIGN: Final = Campaign(run=partial(lives.run, live=_live), size=2_000, unit="lives", exact=True)
