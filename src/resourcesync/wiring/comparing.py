"""Compare a mirror with the tree it mirrors, byte for byte, by neither side's own account.

The tree is walked, not read from its catalogue or its lists, and every byte is compared, not its
hash. Only the names are asked: how a file's path is spelled as a URI, and where a URI belongs.
"""

import filecmp
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from resourcesync.adapters.files.names import to_segment
from resourcesync.adapters.mirror.copies import OWN_FOLDER
from resourcesync.adapters.mirror.mirror_folder import STATE_FILE
from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import ConfigurationError
from resourcesync.wiring import plugins, states


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteComparison:
    """What a comparison found.

    Attributes:
        files: Files of the tree.
        bytes: Their bytes.
        equal: How many of them are in the mirror with the same bytes.
        surplus: Files of the mirror that stand for no file of the tree.
        differences: The first that are not equal, or surplus.
    """

    files: int
    bytes: int
    equal: int
    surplus: int
    differences: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """Whether the mirror holds the tree and nothing else."""
        return self.equal == self.files and not self.surplus


def compare_bytes(tree: Path, mirror: Path, base: str, *, shown: int = 20) -> ByteComparison:
    """Compare what of a tree is published with what a mirror holds.

    Args:
        tree: The published tree.
        mirror: The mirror; nobody may pull it meanwhile.
        base: The address that the tree was published for, with ``/`` at its end.
        shown: How many differences are kept.

    Raises:
        ConfigurationError: The folder is no mirror.
        StateError: The mirror's memory is damaged.
        OSError: A file cannot be read.
    """
    with states.open_state(mirror / OWN_FOLDER / STATE_FILE, read_only=True) as state:
        mapping = SyncState(state).mapping(plugins.mapper)
    if mapping is None:
        raise ConfigurationError(
            f"{mirror} is no mirror", hint="make it one: resourcesync pull https://HOST/ DIR"
        )
    files = size = 0
    wanted: set[str] = set()
    differences: list[str] = []
    for path in _files(tree, {"resourcesync"}):
        place = mapping.path(base + "/".join(map(to_segment, path.split("/"))))
        wanted.add(place)
        files += 1
        size += (tree / path).stat().st_size
        copy = mirror / place
        if not copy.is_file() or not filecmp.cmp(tree / path, copy, shallow=False):
            differences.append(path)
    surplus = [path for path in _files(mirror, set()) if path not in wanted]
    filecmp.clear_cache()
    return ByteComparison(
        files=files,
        bytes=size,
        equal=files - len(differences),
        surplus=len(surplus),
        differences=tuple([*differences, *surplus][:shown]),
    )


def _files(root: Path, skipped: set[str]) -> Iterator[str]:
    """Yield the paths of the files that are not hidden, except in the root's skipped folders."""
    for folder, folders, names in os.walk(root):
        relative = Path(folder).relative_to(root)
        at_root = relative == Path()
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and not (at_root and name in skipped)
        ]
        for name in names:
            if not name.startswith(".") and not name.endswith("~"):
                yield (relative / name).as_posix()
