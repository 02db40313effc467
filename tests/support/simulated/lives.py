"""Choose the life of a mirror from a seed, and live it."""

import random
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.support.simulated.campaign import Campaign, Move
from tests.support.worlds.loose_source import CLOCKS, Style, without_interval

WEIGHTS: Final = {
    "put": 8,
    "remove": 3,
    "clear": 0.3,
    "publish": 6,
    "rotate": 2,
    "snapshot": 1,
    "restart": 0.3,
    "wait": 1,
    "tamper": 0.5,
    "foreign": 0.2,
    "pull": 4,
    "baseline": 0.3,
    "reselect": 0.3,
    "bad_pull": 3,
    "interrupted_pull": 1.5,
    "killed_pull": 2.5,
}


def style_of(luck: random.Random) -> Style | None:
    if luck.random() < 0.35:
        return None
    hashes = luck.random() < 0.75
    style = Style(
        hashes=hashes,
        times=luck.random() < 0.8,
        lastmods=not hashes or luck.random() < 0.6,
        index=luck.random() < 0.6,
        announces=luck.random() < 0.75,
        fixed=luck.random() < 0.4,
        whole_seconds=luck.random() < 0.4,
        keep=luck.choice((0, 1, 2, 5)),
    )
    # Told from the others, so that the lives of all seeds stay what they were.
    style = replace(style, mixed=style.keep > 1, newest_first=style.keep > 1 and style.fixed)
    shape = random.Random(copy(luck).random())
    if shape.random() < 0.2:
        style = replace(style, ahead=shape.choice(CLOCKS))
    is_dated = style.hashes and (style.times or style.lastmods)  # else nothing shows a gap
    return without_interval(style, shape) if is_dated and shape.random() < 0.3 else style


ROTTING: Final = {**WEIGHTS, "rot": 2, "audit": 2}


def moves_of(luck: random.Random, steps: int, weights: Mapping[str, float] = WEIGHTS) -> list[Move]:
    names = luck.choices(list(weights), list(weights.values()), k=steps)
    return [("put", luck.randrange(2**32)) for _ in range(6)] + [
        ("publish", luck.randrange(2**32)),
        *((name, luck.randrange(2**32)) for name in names),
    ]


def live(folder: Path, style: Style | None, max_entries: int, moves: Sequence[Move]) -> None:
    folder.mkdir(parents=True)
    campaign = Campaign(folder / "mirror", style=style, max_entries=max_entries)
    for move in moves:
        campaign.do(move)
    campaign.heal()


def born(
    seed: int, steps: int, weights: Mapping[str, float] = WEIGHTS
) -> tuple[Style | None, int, list[Move]]:
    luck = random.Random(seed)
    return style_of(luck), luck.choice((3, 6, 50)), moves_of(luck, steps, weights)
