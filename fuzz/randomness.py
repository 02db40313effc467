"""The one source of chance: seeded, so that every input can be made again."""

from random import Random


def chance(*seeds: int | str) -> Random:
    """Return a generator that gives the same values for the same seeds, on every machine."""
    return Random("/".join(map(str, seeds)))  # noqa: S311 - nothing secret hangs on it


def probably(random: Random, one_in: int) -> bool:
    """Return whether something happens that happens once in ``one_in`` times."""
    return random.randrange(one_in) == 0
