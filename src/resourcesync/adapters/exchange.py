"""Files that a coordinator and its workers hand each other through a mirror's store."""

import hashlib
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from resourcesync.errors import ResourceSyncError, StorageError
from resourcesync.model.digests import Digest
from resourcesync.ports.stores import ObjectContent, Store

_BLOCK: Final = 1 << 20
_TRIES: Final = 5


class StoredExchange:
    """An ``Exchange`` in a store.

    Args:
        store: It.
        prefix: What its keys begin with, with ``/`` at the end.
        folder: Where what is received goes; made when it is not there.
    """

    def __init__(self, store: Store, prefix: str, folder: Path) -> None:
        self._store = store
        self._prefix = prefix
        self._folder = folder

    def send(self, name: str, file: str) -> None:
        """Make a file of this machine durable for all, under a name.

        Raises:
            StorageError: It is not there; nothing of it.
        """
        key = f"{self._prefix}{name}"
        with _guard_exchange(f"putting {key} there"), Path(file).open("rb") as stream:
            digest = Digest("sha-256", hashlib.file_digest(stream, "sha256").hexdigest())
            length = stream.tell()
            for _ in range(_TRIES):  # another worker may do the same unit: either's is good
                stream.seek(0)
                there = self._store.stat(key)
                over = None if there is None else there.version
                if self._store.put(key, ObjectContent(stream, length, (digest,)), over) is not None:
                    return
        raise StorageError(f"{key} is written again and again by others", code="store")

    def receive(self, name: str) -> str | None:
        """Return a file of this machine with what is there under a name; ``None`` when nothing is.

        Raises:
            StorageError: It cannot be had.
        """
        place = self._folder / name.replace("/", "-")
        key = f"{self._prefix}{name}"
        with _guard_exchange(f"reading {key}"):
            stream = self._store.open(key)
            if stream is None:
                return None
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = place.with_name(f".{place.name}-{secrets.token_hex(4)}")
            try:
                with stream, temporary.open("xb") as out:
                    shutil.copyfileobj(stream, out, _BLOCK)
                temporary.replace(place)
            finally:
                temporary.unlink(missing_ok=True)
        return str(place)

    def names(self, prefix: str) -> Iterator[str]:
        """Yield the names that begin so, in no order."""
        with _guard_exchange("listing what is there"):
            for key in self._store.keys(f"{self._prefix}{prefix}"):
                yield key.removeprefix(self._prefix)

    def remove(self, name: str) -> None:
        """Remove what is there under a name; it is no error when nothing is."""
        with _guard_exchange("removing what is not needed any more"):
            self._store.remove(f"{self._prefix}{name}")


@contextmanager
def _guard_exchange(doing: str) -> Iterator[None]:
    """Make one error of whatever the store raises."""
    try:
        yield
    except ResourceSyncError:
        raise
    except Exception as error:
        raise StorageError(
            f"the store failed while {doing}: {type(error).__name__}: {error}"[:1_000],
            evidence=(("kept", "all copies"),),
            hint="see that the store can be reached, then run the same command",
            code="store",
        ) from error
