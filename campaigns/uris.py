"""The mapping from URI to path on very many hostile URIs: its laws hold for all of them."""

from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.destination.mapping import FileSystemProfile
from resourcesync.destination.mapping.escapes import EscapedMapping
from tests.properties.test_mapping_laws import BASES, assert_laws
from tests.support.documents.hostile_uris import seeded_uris

_AT_A_TIME: Final = 50_000
"""URIs that are compared with each other for clashes."""


def run(asked: Asked) -> Outcome:
    """Map, compare, turn back."""
    outcome = Outcome()
    accepted = done = 0
    while done < asked.size:
        count = min(_AT_A_TIME, asked.size - done)
        uris = list(seeded_uris(asked.seed + done, count))
        for profile in FileSystemProfile:
            mapping = EscapedMapping(base=BASES[done // _AT_A_TIME % len(BASES)], profile=profile)
            try:
                accepted += assert_laws(mapping, uris)
            except AssertionError as error:
                outcome.violations.append(f"{profile}: {error}")
        done += count
    outcome.add("URIs", done)
    outcome.add("places checked (both profiles)", accepted)
    outcome.require(accepted > done // 5, "hardly any URI was accepted: nothing was proven")
    return outcome


CAMPAIGN: Final = Campaign(run=run, size=200_000, unit="URIs", exact=True)
