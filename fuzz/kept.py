"""Inputs that once showed a fault, and laws that are checked."""

from pathlib import Path
from typing import Final

SEEDS: Final = Path(__file__).parent / "seeds"


class WrongAnswerError(Exception):
    """An answer that breaks a law: worse than an exception, for nobody would notice."""


def hold(law: bool, sentence: str) -> None:  # noqa: FBT001 - it reads like an assertion
    """Check a law."""
    if not law:
        raise WrongAnswerError(sentence)


def kept(name: str) -> tuple[bytes, ...]:
    """Return the inputs of a target that once showed a fault."""
    folder = SEEDS / name
    return tuple(path.read_bytes() for path in sorted(folder.glob("*"))) if folder.is_dir() else ()
