"""Inputs chosen by what they reach in our code, where atheris is installed.

Usage: ``python -m fuzz.guided TARGET FOLDER COUNT SEED``. What it learns, and the input of a fault,
are kept in the folder.
"""

import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any, Final

from fuzz.mutation import MAX_SIZE, mutate

_SECONDS: Final = 10
"""Of one input, which is followed on its way and so takes longer than by itself."""
_FOUND: Final = "found-"


def installed() -> bool:
    """Whether there is an atheris."""
    return find_spec("atheris") is not None


def run(name: str, folder: Path, *, count: int, seed: int) -> str:
    """Run so many inputs in a process of their own; return what went wrong, or nothing."""
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "fuzz.guided", name, str(folder), str(count), str(seed)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if ended.returncode == 0:
        return ""
    inputs = [repr(path.read_bytes()) for path in folder.glob(f"{_FOUND}*")]
    return f"{', '.join(inputs) or 'no input was kept'}: {ended.stdout[-600:]}{ended.stderr[-600:]}"


def main(name: str, folder: str, count: str, seed: str) -> None:
    """Fuzz; the process ends in here."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["resourcesync"]):
        target = importlib.import_module("fuzz.targets").TARGETS[name]
    known = Path(folder) / "known"
    known.mkdir()
    for number, data in enumerate(target.seeds):
        (known / f"seed-{number}").write_bytes(data)

    def change(data: bytes, size: int, which: int) -> bytes:
        random = Random(which)  # noqa: S311 - nothing secret hangs on it
        if random.random() < target.roughness / 2:
            return bytes(atheris.Mutate(data, size))
        if random.random() < target.roughness:
            return mutate(random, data, target.seeds)[:size]
        return bytes(target.make(random))[:size]

    words = [f"-runs={count}", f"-seed={seed}", f"-max_len={MAX_SIZE}", f"-timeout={_SECONDS}"]
    place = f"-artifact_prefix={Path(folder) / _FOUND}"
    atheris.Setup([sys.argv[0], *words, place, str(known)], target.run, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
