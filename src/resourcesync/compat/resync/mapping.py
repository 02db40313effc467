"""Mappings under the names of resync: between addresses of a Source and local paths."""

import logging
import os.path
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from resourcesync.compat.resync.errors import MapperError
from resourcesync.ports.copies import is_copy_path

_PAIR: Final = 2
_ODD: Final = re.compile(r"[^\w\-.]")
LOGGER: Final = logging.getLogger("resync.mapper")


class Place(NamedTuple):
    """A place below the folder of a mapping.

    Attributes:
        folder: The folder.
        path: The path below it, relative, with ``/``.
    """

    folder: str
    path: str


class Map:
    """``resync.mapper.Map``: the address of a folder of the Source, and the local folder.

    Args:
        src_uri: The address.
        dst_path: The folder.
    """

    def __init__(self, src_uri: str, dst_path: str) -> None:
        self.src_uri = src_uri.rstrip("/")
        self.dst_path = dst_path.rstrip("/") or dst_path[:1]

    def src_to_dst(self, src_uri: str) -> str | None:
        """Return the path of an address; ``None`` if it is not below this one."""
        rest = _below(src_uri, self.src_uri)
        return None if rest is None else f"{self.dst_path.rstrip('/')}/{rest}"

    def dst_to_src(self, dst_file: str) -> str | None:
        """Return the address of a path; ``None`` if it is not below the folder."""
        rest = _below(dst_file, self.dst_path)
        return None if rest is None else f"{self.src_uri}/{rest}"

    def unsafe(self) -> bool:
        """Return whether the Source is local, and the folder is in it or the reverse."""
        if urlsplit(self.src_uri).scheme:
            return False
        source, target = os.path.realpath(self.src_uri), os.path.realpath(self.dst_path)
        return os.path.commonpath((source, target)) in (source, target)

    def __repr__(self) -> str:
        return f"Map( {self.src_uri} -> {self.dst_path} )"


def _below(name: str, folder: str) -> str | None:
    """Return what follows a folder and a slash in a name; ``None`` if it is not below."""
    base = folder.rstrip("/")
    if name in (folder, base):
        return ""
    return name[len(base) + 1 :] if name.startswith(f"{base}/") else None


class CompatMapper:
    """``resync.mapper.Mapper``: the maps of a Source, the first that fits counts.

    Args:
        mappings: ``[uri, path]``; or any number of ``uri=path``; or ``[uri]``.
        use_default_path: True to allow ``[uri]``, whose folder is named after the address.

    Raises:
        MapperError: They are invalid.
    """

    def __init__(
        self, mappings: Sequence[str] | None = None, use_default_path: bool = False
    ) -> None:
        self.logger = LOGGER
        self.mappings: list[Map] = []
        if mappings:
            self.parse(mappings, use_default_path)

    def __len__(self) -> int:
        return len(self.mappings)

    def parse(self, mappings: Sequence[str], use_default_path: bool = False) -> None:
        """Add maps, as described for the class.

        Raises:
            MapperError: They are invalid.
        """
        has_pairs = any("=" in mapping for mapping in mappings)
        if use_default_path and len(mappings) == 1 and not has_pairs:
            path = self.path_from_uri(mappings[0])
            self.logger.warning("Using URI mapping: %s -> %s", mappings[0], path)
            self.mappings.append(Map(mappings[0], path))
        elif len(mappings) == _PAIR and not has_pairs:
            self.mappings.append(Map(*mappings))
        else:
            for mapping in mappings:
                self._add(mapping)

    def _add(self, mapping: str) -> None:
        uri, _, path = mapping.partition("=")
        if not uri or not path or "=" in path:
            raise MapperError(f"Bad mapping argument ({mapping}), got {mapping.split('=')}")
        added = Map(uri, path)
        for known in self.mappings:
            if known.src_uri == added.src_uri or known.dst_path == added.dst_path:
                raise MapperError(f"{added!r} has the same side as {known!r}")
        self.mappings.append(added)

    def default_src_uri(self) -> str:
        """Return the address of the first map.

        Raises:
            MapperError: There is no map.
        """
        if not self.mappings:
            raise MapperError("Can't get default source URI from empty mapping")
        return self.mappings[0].src_uri

    def unsafe(self) -> bool:
        """Return whether one of the maps writes into its own Source."""
        return any(known.unsafe() for known in self.mappings)

    def dst_to_src(self, dst_file: str) -> str:
        """Return the address of a local path.

        Raises:
            MapperError: It is in none of the folders.
        """
        for known in self.mappings:
            uri = known.dst_to_src(dst_file)
            if uri is not None:
                return uri
        raise MapperError(f"Unable to translate destination path ({dst_file}) into a source URI.")

    def src_to_dst(self, src_uri: str) -> str:
        """Return the local path of an address.

        Raises:
            MapperError: It is below none of the addresses, or its path would not be safe: with
                ``..``, an empty part, or our own folder.
        """
        for known in self.mappings:
            path = known.src_to_dst(src_uri)
            if path is not None:
                rest = path[len(known.dst_path.rstrip("/")) + 1 :]
                if rest and not is_copy_path(rest.removesuffix("/")):
                    raise MapperError(
                        f"The path of {src_uri} is not safe below {known.dst_path}.",
                        evidence=(("uri", src_uri),),
                    )
                return path
        raise MapperError(f"Unable to translate source URI ({src_uri}) into a destination path.")

    def place_of(self, filename: str) -> Place:
        """Return the folder of a map that a file is in, and its path there.

        Raises:
            MapperError: It is in none of the folders, or its path is not safe.
        """
        for folder, rest in self._places(filename):
            if is_copy_path(rest):
                return Place(folder, rest)
        raise MapperError(f"{filename} is not a file below the folders of the mappings.")

    def _places(self, filename: str) -> Iterator[tuple[str, str]]:
        for known in self.mappings:
            rest = _below(filename, known.dst_path)
            if rest:
                yield known.dst_path, rest

    def path_from_uri(self, uri: str) -> str:
        """Return a name of a folder for an address; a local path stays."""
        parts = urlsplit(uri)
        if not parts.netloc:
            return uri
        name = re.sub("_+", "_", _ODD.sub("_", f"{parts.netloc}/{parts.path}"))
        return name.rstrip("_.").lstrip("_.")

    def __repr__(self) -> str:
        lines = [f"Mapper with {len(self)} maps:", *map(repr, self.mappings)]
        return "\n".join([*lines, ""])
