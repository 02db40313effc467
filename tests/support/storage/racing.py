"""The mirror's files at work while somebody swaps its folders for links that lead out of it."""

import hashlib
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from resourcesync.adapters.mirror.installed_copies import FileTreeCopies
from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.errors import StorageError
from resourcesync.ports import CopyInstallation, CopyMove, CopyRemoval

FOLDERS: Final = ("a", "b", "c", "a/deep", "b/deep")
_EMPTIED: Final = ("a/new", "c/new/deep")
"""Folders that come and go by moves; outside they are there, and empty."""
_SWAPPED: Final = ("a", "b", "c")
_FILES: Final = 6
_BATCH: Final = 10
_SECRET: Final = b"nobody's business"
_SECRET_DIGEST: Final = hashlib.sha256(_SECRET).hexdigest()
_SWAPPER: Final = Path(__file__).with_name("swapping.py")


@dataclass(slots=True, kw_only=True)
class Race:
    operations: int = 0  # how many files were to be put, moved, taken away, read or looked at
    done: int = 0
    refused: int = 0  # how many were not, since a link was in the way
    moved: int = 0  # how many files have moved
    swaps: int = 0  # how often a folder and a link changed places meanwhile
    escapes: list[str] = field(default_factory=list)  # what was done or read outside the mirror

    def count(self, result: object) -> None:
        self.operations += 1
        self.done += not isinstance(result, StorageError)
        self.refused += isinstance(result, StorageError) and result.code == "path-in-the-way"


def race(folder: Path, *, operations: int, seed: int) -> Race:
    luck, result = random.Random(seed), Race()
    mirror, shadow, outside = folder / "mirror", folder / "shadow", folder / "outside"
    for name in FOLDERS:
        (mirror / name).mkdir(parents=True, exist_ok=True)
        (outside / name).mkdir(parents=True, exist_ok=True)
        for number in range(_FILES):
            (outside / name / f"{number}.txt").write_bytes(_SECRET)
    for name in _EMPTIED:
        (outside / name).mkdir(parents=True)
    shadow.mkdir()
    for name in _SWAPPED:
        (shadow / name).symlink_to(outside / name)
    before = _look(outside)
    with MirrorFolder(mirror, SystemClock()) as opened:
        assert opened.copies is not None
        with _swapping(mirror, shadow, result):
            while result.operations < operations:
                _act(opened.copies, luck, result)
    after = _look(outside)
    result.escapes += [f"{path} was changed" for path in before if after.get(path) != before[path]]
    result.escapes += [f"{path} was made" for path in after if path not in before]
    result.escapes += [
        f"{path} was made"
        for path in _look(folder)
        if path.parts[0] not in {"mirror", "shadow", "outside"}
    ]
    return result


@contextmanager
def _swapping(mirror: Path, shadow: Path, result: Race) -> Iterator[None]:
    command = [sys.executable, "-I", "-S", str(_SWAPPER), str(mirror), str(shadow), *_SWAPPED]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as swapper:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            told, _ = swapper.communicate(timeout=20)
        result.swaps = int(told)


def _act(copies: FileTreeCopies, luck: random.Random, result: Race) -> None:
    paths = [f"{luck.choice(FOLDERS)}/{luck.randrange(_FILES)}.txt" for _ in range(_BATCH)]
    what = luck.randrange(6)
    if what == 0:
        _install(copies, luck, list(dict.fromkeys(paths)), result)
    elif what == 1:
        batch = [CopyRemoval(path=path, signature=copies.signature(path) or "") for path in paths]
        for removed in _or_error(lambda: copies.remove(batch, "raced"), len(batch)):
            result.count(removed)
    elif what == 2:
        for path in paths:
            _read(copies, path, result)
    elif what == 3:
        for path in paths:
            _copy(copies, path, result)
    elif what == 4:
        _move(copies, luck, result)
    else:
        (listed,) = _or_error(lambda: [list(copies.paths())], 1)
        result.count(listed)


def _or_error(work: Callable[[], list[Any]], many: int) -> list[Any]:
    try:
        return work()
    except StorageError as error:
        return [error] * many


def _install(copies: FileTreeCopies, luck: random.Random, paths: list[str], result: Race) -> None:
    batch = []
    for path in paths:
        staged = copies.stage(["sha-256"])
        staged.write(f"{path} {luck.random()}".encode())
        staged.seal()
        replaces = copies.signature(path)
        batch.append(CopyInstallation(staged=staged, path=path, replaces=replaces))
    for installed in _or_error(lambda: list(copies.install(batch)), len(batch)):
        result.count(installed)


def _move(copies: FileTreeCopies, luck: random.Random, result: Race) -> None:
    folders = (*FOLDERS, *_EMPTIED)
    paths = {f"{luck.choice(folders)}/{luck.randrange(_FILES)}.txt" for _ in range(_BATCH)}
    _install(copies, luck, sorted(paths), result)
    batch = []
    for path in sorted(paths):
        to = f"{luck.choice(folders)}/{luck.randrange(2 * _FILES)}.txt"
        batch.append(CopyMove(path=path, to=to, signature=copies.signature(path) or ""))
    for copy_move, moved in zip(
        batch, _or_error(lambda: copies.move(batch), len(batch)), strict=True
    ):
        result.count(moved)
        result.moved += isinstance(moved, str) and moved == copies.signature(copy_move.to)


def _read(copies: FileTreeCopies, path: str, result: Race) -> None:
    (found,) = _or_error(lambda: [copies.digest(path, ["sha-256"])], 1)
    result.count(found)
    if isinstance(found, tuple) and found[1][0].value == _SECRET_DIGEST:
        result.escapes.append(f"{path} was read outside")


def _copy(copies: FileTreeCopies, path: str, result: Race) -> None:
    (staged,) = _or_error(lambda: [copies.stage_copy(path, ["sha-256"])], 1)
    result.count(staged)
    if staged is not None and not isinstance(staged, StorageError):
        if staged.seal()[1][0].value == _SECRET_DIGEST:
            result.escapes.append(f"{path} was copied from outside")
        staged.discard()


def _look(root: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(root): b"" if path.is_dir() else path.read_bytes()
        for path in root.rglob("*")
        if not path.is_symlink()
    }
