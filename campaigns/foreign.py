"""Lives of mirrors whose Source writes its lists as foreign software does.

Lists begin again within a second, get shorter, lose deletions, have the newest change first; only
the Resource List is written again; caches have old copies. Who calls itself in sync must be so.
"""

from functools import partial
from typing import Final

from campaigns import lives
from campaigns.outcome import Campaign
from tests.support.foreign_lives import live_foreign

CAMPAIGN: Final = Campaign(
    run=partial(lives.run, live=live_foreign), size=2_000, unit="lives", exact=True
)
