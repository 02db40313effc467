"""A Resource List of local files, under the name of resync."""

import hashlib
import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from resourcesync.compat.resync.lists import ResourceList
from resourcesync.compat.resync.mapping import CompatMapper
from resourcesync.compat.resync.resources import CompatResource

LOGGER: Final = logging.getLogger("resync.resource_list_builder")
_OWN: Final = ".resourcesync"
_HASHES: Final = {"md5": "md5", "sha-1": "sha1", "sha-256": "sha256"}


def check_hashes(names: Iterable[str] | None) -> frozenset[str]:
    """Return the names of digests, all of them known.

    Raises:
        ValueError: One is not ``md5``, ``sha-1`` or ``sha-256``.
    """
    found = frozenset(names or ())
    unknown = sorted(found - _HASHES.keys())
    if unknown:
        raise ValueError(f"Hash type {unknown[0]} not supported")
    return found


class ResourceListBuilder:
    """``resync.resource_list_builder.ResourceListBuilder``: lists the files of folders.

    Symbolic links, and the folder ``.resourcesync``, are left out.

    Args:
        mapper: The addresses of the files.
        set_hashes: Digests to compute: ``md5``, ``sha-1``, ``sha-256``.
        set_length: True to set the length.
        set_path: True to set the local path.

    Attributes:
        exclude_patterns: Regular expressions; a file or folder whose name begins with a match of
            one is left out.
    """

    def __init__(
        self,
        mapper: CompatMapper | None = None,
        set_hashes: Iterable[str] | None = None,
        set_length: bool = True,
        set_path: bool = False,
    ) -> None:
        self.mapper = mapper
        self.set_hashes = set_hashes
        self.set_length = set_length
        self.set_path = set_path
        self.exclude_patterns: list[str] = []
        self.logger = LOGGER

    def add_exclude_patterns(self, exclude_patterns: Iterable[str]) -> None:
        """Add patterns of names to leave out.

        Raises:
            ValueError: One is no regular expression.
        """
        added = list(exclude_patterns)
        for pattern in added:
            _compiled(pattern)
        self.exclude_patterns += added

    def from_disk(
        self, resource_list: ResourceList | None = None, paths: Sequence[str] | None = None
    ) -> ResourceList:
        """Return a list of the files below some paths; a file that cannot be read is logged.

        Args:
            resource_list: The list to add to; ``None`` for a new one.
            paths: The paths; ``None`` for the folders of the mapper.

        Raises:
            ValueError: There is no mapper, a digest is unknown, or a pattern is invalid.
            MapperError: A path is in none of the folders of the mapper.
        """
        if self.mapper is None:
            raise ValueError("Must specify path, resource_list and mapper")
        found = ResourceList() if resource_list is None else resource_list
        if found.md_at is None:
            found.md_at = "now"
        hashes = check_hashes(self.set_hashes)
        if paths is None:
            paths = [known.dst_path for known in self.mapper.mappings]
        for path in paths:
            self.logger.info("Scanning disk from %s", path)
            for file in self._files(path):
                resource = self._resource(self.mapper, file, hashes)
                if resource is not None:
                    found.add(resource)
        found.md_completed = "now"
        return found

    def _files(self, path: str) -> Iterator[str]:
        excluded = [_compiled(pattern) for pattern in self.exclude_patterns]

        def is_selected(name: str) -> bool:
            return not any(pattern.match(name) for pattern in excluded)

        if not os.path.isdir(path):
            yield from filter(is_selected, [path] if os.path.lexists(path) else [])
            return
        for folder, folders, files in os.walk(path):
            folders[:] = sorted(name for name in folders if name != _OWN and is_selected(name))
            yield from (os.path.join(folder, name) for name in filter(is_selected, files))

    def _resource(
        self, mapper: CompatMapper, file: str, hashes: frozenset[str]
    ) -> CompatResource | None:
        uri = mapper.dst_to_src(file)
        try:
            info = os.lstat(file)
            if not stat.S_ISREG(info.st_mode):
                self.logger.warning("Ignoring '%s': it is no regular file", file)
                return None
            made = CompatResource(uri, timestamp=info.st_mtime)
            made.path = file if self.set_path else None
            made.length = info.st_size if self.set_length else None
            for name in sorted(hashes):
                with open(file, "rb") as stream:
                    digest = hashlib.file_digest(stream, _HASHES[name]).hexdigest()
                setattr(made, _HASHES[name], digest)
        except OSError as error:
            self.logger.warning("Ignoring file '%s' (error: %s)", file, error)
            return None
        return made


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"Bad python regex in exclude pattern '{pattern}': {error}") from error
