"""How much of each campaign runs in a night before a release, and how much in each run of CI."""

from typing import Final, NamedTuple


class Sizes(NamedTuple):
    """The sizes of a campaign, in its unit; ``ci`` is 0 where CI does not run it."""

    release: int
    ci: int = 0


SIZES: Final = {
    "ablation": Sizes(300),
    "clients": Sizes(12),
    "crash": Sizes(10_000),
    "cursor": Sizes(5_000),
    "foreign": Sizes(10_000),
    "fuzz": Sizes(3_000_000),
    "index": Sizes(1_000),
    "kill": Sizes(1_000, ci=20),
    "large": Sizes(500_000),
    "lives": Sizes(10_000, ci=100),
    "power": Sizes(300_000, ci=4_000),
    "producers": Sizes(33),
    "race": Sizes(300_000),
    "uris": Sizes(1_000_000),
    "watched": Sizes(20),
}
