"""A store in a folder that keeps every promise of the port, and can be told to break them."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote

from resourcesync.errors import LockedError
from resourcesync.ports.storing import Content, Stored


class ShelfStore:
    """Bytes in files whose names are their keys; a version's name is their first line.

    Args:
        folder: Where.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _file(self, key: str) -> Path:
        return self.folder / f"k{quote(key, safe='')}"

    def put(self, key: str, content: Content, replaces: str | None) -> str | None:
        there = self.look(key)
        if (None if there is None else there.version) != replaces:
            return None
        version = secrets.token_hex(8)
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f"t{version}"
        with temporary.open("wb") as out:
            out.write(f"{version}\n".encode())
            shutil.copyfileobj(content.stream, out)
        assert temporary.stat().st_size == content.length + len(version) + 1
        temporary.replace(self._file(key))
        return version

    def look(self, key: str) -> Stored | None:
        try:
            with self._file(key).open("rb") as file:
                first = file.readline()
                return Stored(first.decode().strip(), os.fstat(file.fileno()).st_size - len(first))
        except FileNotFoundError:
            return None

    def open(self, key: str) -> BinaryIO | None:
        if self.look(key) is None:
            return None
        return BytesIO(self._file(key).read_bytes().partition(b"\n")[2])

    def move(self, key: str, to: str, version: str) -> bool:
        there = self.look(key)
        if there is None or there.version != version:
            return False
        self._file(key).rename(self._file(to))
        return True

    def remove(self, key: str) -> None:
        self._file(key).unlink(missing_ok=True)

    def keys(self, prefix: str) -> Iterator[str]:
        names = sorted(path.name for path in self.folder.glob("k*"))
        return (key for name in names if (key := unquote(name[1:])).startswith(prefix))

    @contextmanager
    def hold(self, who: str) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        lease = self.folder / "lease"
        try:
            with lease.open("x") as file:
                file.write(who)
        except FileExistsError:
            raise LockedError(f"{lease.read_text()} holds the store") from None
        try:
            yield
        finally:
            lease.unlink()

    # --- what tests look at and spoil ---

    def contents(self) -> dict[str, bytes]:
        """Return all copies by key."""
        found = {key: self.open(key) for key in self.keys("")}
        return {
            key: stream.read()
            for key, stream in found.items()
            if stream is not None and not key.startswith(".resourcesync/")
        }

    def spoil(self, key: str, body: bytes, *, openly: bool = True) -> None:
        """Replace bytes behind the mirror's back; not ``openly``: as rot does, in its version."""
        there = self.look(key)
        self.folder.mkdir(parents=True, exist_ok=True)
        version = secrets.token_hex(8) if openly or there is None else there.version
        self._file(key).write_bytes(f"{version}\n".encode() + body)


def open_shelf(address: str) -> ShelfStore:
    """Open the store at ``shelf:FOLDER``."""
    return ShelfStore(Path(address.partition(":")[2]))
