"""The file of an export: written under a temporary name, renamed when it is complete."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from resourcesync.errors import ConfigurationError, Remedy, storage_error

_EXISTS: Final = frozenset({errno.EEXIST, errno.ENOTEMPTY})


class NewExport:
    """A new file or folder, under a temporary name until it is complete.

    The temporary name is ``.NAME.RANDOM.part``, beside the final one.

    Args:
        out: The final name.

    Raises:
        ConfigurationError: Something of that name already exists.
    """

    def __init__(self, out: Path) -> None:
        if not out.name:
            raise ConfigurationError(f"{out} is not a valid export path")
        if os.path.lexists(out):
            raise _exists_error(out)
        self._out = out
        self._part = out.with_name(f".{out.name[:100]}.{secrets.token_hex(4)}.part")
        self._folder = out.parent  # the deepest one that exists
        self.size = 0

    def write(self, path: str, content: Iterable[bytes]) -> None:
        """Write one file; an empty path is the export itself, which is then one file.

        Raises:
            ConfigurationError: The path leads out of the export.
            StorageError: It cannot be written.
        """
        if path and not {"", ".", ".."}.isdisjoint(path.split("/")):
            raise ConfigurationError(
                f"the exporter names a file {path[:200]!r}, which leads out of the export",
                evidence=(("kept", "nothing was written"),),
                hint="fix the plug-in",
                code="bad-plugin",
            )
        target = self._part / path if path else self._part
        with _guard_write(f"writing {self._out}"):
            if target.parent != self._folder and path:
                target.parent.mkdir(parents=True, exist_ok=True)
                self._folder = target.parent
            with target.open("xb") as stream:
                for piece in content:
                    stream.write(piece)
                    self.size += len(piece)
                stream.flush()
                if not path:
                    os.fsync(stream.fileno())

    def finish(self) -> None:
        """Make it durable and rename it to its final name.

        Raises:
            ConfigurationError: The name exists by now.
            StorageError: It cannot be done.
        """
        with _guard_write(f"writing {self._out}"):
            if self._part.is_dir():
                os.sync()  # once for all files: syncing each takes many times as long
                self._name_folder()
            else:
                self._name_file()
            _sync_folder(self._out.parent)

    def _name_folder(self) -> None:
        try:
            self._out.mkdir()  # reserve the name: rename alone would replace an empty folder
            self._part.rename(self._out)
        except OSError as error:
            if error.errno in _EXISTS:
                raise _exists_error(self._out) from None
            raise

    def _name_file(self) -> None:
        try:
            os.link(self._part, self._out)  # unlike a rename, it replaces nothing
        except FileExistsError:
            raise _exists_error(self._out) from None
        except OSError:  # a file system without links
            if os.path.lexists(self._out):
                raise _exists_error(self._out) from None
            self._part.rename(self._out)
            return
        self._part.unlink()

    def discard(self) -> None:
        """Remove what was written; may be called twice."""
        if self._part.is_dir():
            shutil.rmtree(self._part, ignore_errors=True)
        else:
            self._part.unlink(missing_ok=True)


def _exists_error(out: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{out} already exists",
        evidence=(("kept", "it is untouched"),),
        hint="name another place",
        remedy=Remedy("write-elsewhere"),
    )


@contextmanager
def _guard_write(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing, kept="nothing was written") from error


def _sync_folder(folder: Path) -> None:
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(held)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(held)
