"""What a simulated Source packs: bytes that are made when they are read, packages in files."""

import copy
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final

from resourcesync.adapters.in_memory import MemoryDocuments
from resourcesync.errors import StorageError
from resourcesync.model.links import Link
from resourcesync.model.resources import Resource
from resourcesync.simulator.origin import SimulatedOrigin

PACKAGE: Final = ".zip"
"""How the names of packages end."""


class SimulatedContents:
    """The bytes of the resources, and of all that they ever were (``Contents``).

    So a Change Dump holds every version, as it does where versions are kept until they are packed.

    Args:
        origin: Has the resources.
    """

    def __init__(self, origin: SimulatedOrigin) -> None:
        self._origin = origin

    def contains(self, resource: Resource) -> bool:
        """Whether there ever was such a version."""
        return self._body(resource) is not None

    def open(self, resource: Resource) -> BinaryIO | None:
        """Open the bytes of a version; those that are there now when there never was such a one."""
        body = self._body(resource)
        name = resource.uri.removeprefix(self._origin.base)
        if body is None and (version := self._origin.versions.get(name)) is not None:
            body = self._origin.body(name, version)
        return None if body is None else BytesIO(body)

    def open_patch(self, patch: Link) -> BinaryIO | None:
        """Return ``None``: there are no patches."""
        del patch
        none: BinaryIO | None = None
        return none

    def measure(self, uri: str) -> Resource | None:
        """Return what is at a URI now; ``None`` when there is nothing any more."""
        return self._origin.resource(uri.removeprefix(self._origin.base))

    def _body(self, resource: Resource) -> bytes | None:
        sha256 = next(it.value for it in resource.digests if it.algorithm == "sha-256")
        name = resource.uri.removeprefix(self._origin.base)
        return self._origin.body_of(name, resource.length or 0, sha256)


class PackedDocuments(MemoryDocuments):
    """A ``DocumentStore`` in memory, but for packages: together they hold what the resources do.

    Args:
        folder: For packages; removed by whoever made it.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._packages: dict[str, _PackedFile] = {}
        self.fault_hook: Callable[[str], None] = lambda _name: None
        """Called with its name before and after a document is written or removed; may raise."""

    def clone(self) -> "PackedDocuments":
        """Return what there is now, for a Source that is set back to it."""
        other = copy.copy(self)
        other._documents = dict(self._documents)  # noqa: SLF001 - its own
        other._packages = dict(self._packages)  # noqa: SLF001 - its own
        return other

    def write(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None = None
    ) -> int:
        """Put a whole document in place, if ``check`` lets it pass; return its bytes.

        Raises:
            StorageError: There is no room for a package.
        """
        self.fault_hook(name)
        if not name.endswith(PACKAGE):
            length = super().write(name, chunks, check)
        else:
            length = self._pack(name, chunks, check)
        self.fault_hook(name)
        return length

    def _pack(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None
    ) -> int:
        self.writes += 1
        try:
            package = _PackedFile(self._folder, self.writes)
            with package.path.open("wb") as file:
                file.writelines(chunks)
            if check is not None:
                with package.path.open("rb") as stream:
                    check(stream)
            length = package.path.stat().st_size
        except OSError as error:
            raise StorageError(f"cannot write packages: {error.strerror}") from error
        self._packages[name] = package
        return length

    def open(self, name: str) -> BinaryIO | None:
        """Open a document for reading, or return ``None`` when there is none."""
        package = self._packages.get(name)
        return super().open(name) if package is None else package.path.open("rb")

    def signature(self, name: str) -> str | None:
        """Return what changes whenever the document is written; ``None`` when there is none."""
        package = self._packages.get(name)
        return super().signature(name) if package is None else str(package.number)

    def names(self) -> Iterator[str]:
        """Yield the names of the documents that exist."""
        return iter(sorted((*super().names(), *self._packages)))

    def delete(self, name: str) -> None:
        """Remove a document; it is no error when there is none."""
        self.fault_hook(name)
        super().delete(name)
        self._packages.pop(name, None)
        self.fault_hook(name)


class _PackedFile:
    """A file that goes when nobody knows it any more.

    Args:
        folder: Where it is to be.
        number: Which one it is.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        handle, path = tempfile.mkstemp(dir=folder)
        os.close(handle)
        self.path = Path(path)
        weakref.finalize(self, self.path.unlink, missing_ok=True)
