"""The mirror's files under one root: installed, removed, set aside in quarantine (``Copies``).

All work is relative to open folder descriptors and never follows a symbolic link, so neither a
hostile list nor somebody who plants links in the mirror can direct a write out of it.

The order of an installation is: temporary file in ``.resourcesync/tmp`` (same file system),
write and hash, fsync, rename, fsync of the folders; only then may the state be committed. Each
step is needed: see ``docs/explanation/crash-order.md``.

A file that the mirror did not write is moved to the quarantine, with a note of its path.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Final

from resourcesync import own_files, ports
from resourcesync.adapters.mirror.open_folders import (
    FolderCopyInspector,
    OpenFolders,
    content_of,
    signature_of,
)
from resourcesync.adapters.mirror.own_folder import mirror_error
from resourcesync.adapters.mirror.staging import StagedFile, Staging
from resourcesync.adapters.mirror.syncing import FileSyncer
from resourcesync.errors import StorageError
from resourcesync.model.digests import Digest, agree, parse_digests
from resourcesync.model.own_names import OWN_FOLDER

_LEAF: Final = 100
NOTE: Final = ".note"
_ORIGINAL_PATH: Final = "was at: "
_MOST_NOTES: Final = 100_000
_MOST_BYTES: Final = 1 << 16


def move_to_quarantine(folder: int, leaf: str, path: str, quarantine: int) -> str:
    """Move a file to the quarantine, with a note of its path; return its name there."""
    place = f"{os.urandom(8).hex()}-{leaf[:_LEAF]}"
    note = own_files.open_file(f"{place}{NOTE}", quarantine, own_files.NEW)
    with os.fdopen(note, "w", encoding="utf-8") as stream:
        stream.write(f"{_ORIGINAL_PATH}{path}\nbecause: not known to be from the Source\n")
    os.rename(leaf, place, src_dir_fd=folder, dst_dir_fd=quarantine)
    own_files.sync_folder(quarantine)
    return place


def quarantined_from(quarantine: int, path: str) -> list[str]:
    """Return the names in the quarantine of files moved from a path, the newest last."""
    found: list[tuple[int, str]] = []
    with suppress(OSError), os.scandir(quarantine) as entries:
        for number, entry in enumerate(entries):
            if number >= _MOST_NOTES:
                break
            if entry.name.endswith(NOTE) and _names_path(quarantine, entry.name, path):
                moment = entry.stat(follow_symlinks=False).st_mtime_ns
                found.append((moment, entry.name.removesuffix(NOTE)))
    return [name for _, name in sorted(found)]


def _names_path(quarantine: int, note: str, path: str) -> bool:
    try:
        with os.fdopen(own_files.open_file(note, quarantine), "rb") as stream:
            text = stream.read(_MOST_BYTES)
    except OSError:
        return False
    return text.startswith(f"{_ORIGINAL_PATH}{path}\n".encode())


class FileTreeCopies:
    """The ``Copies`` of a mirror in a folder."""

    def __init__(self, root: int, own: int, monotonic: Callable[[], float] = lambda: 0.0) -> None:
        self._root = root
        self._tmp = own_files.open_below(own, ["tmp"])
        self._trash = own_files.open_below(own, ["trash"])
        self._quarantine = own_files.open_below(own, ["quarantine"])
        self._made_way: list[tuple[str, str]] = []
        self._syncer = FileSyncer(monotonic, self._tmp)
        staging = Staging(self._tmp)
        self.stage, self.scratch = staging.stage, staging.scratch
        self.clear_temporary = staging.clear

    def close(self) -> None:
        """Close the folders."""
        self._syncer.close()
        for folder in (self._tmp, self._trash, self._quarantine):
            os.close(folder)

    def stage_copy(self, path: str, algorithms: Sequence[str]) -> StagedFile | None:
        """Start a staged copy with the bytes of another copy; ``None`` if they cannot be read."""
        try:
            with self._folders() as folders:
                folder, leaf = folders.locate(path, create=False)
                file = own_files.open_file(leaf, folder)
        except OSError:
            return None
        except StorageError as error:
            if error.code == "path-in-the-way":
                return None
            raise
        return self._filled(file, algorithms)

    def _filled(self, file: int, algorithms: Sequence[str]) -> StagedFile | None:
        staged = self.stage(algorithms)
        try:
            staged.fill(file)
        except OSError:
            staged.discard()
            return None
        except StorageError:
            staged.discard()
            raise
        finally:
            os.close(file)
        return staged

    def stage_trashed(self, place: str, algorithms: Sequence[str]) -> StagedFile | None:
        """Start a staged copy with the bytes of one in the trash, and its time of modification."""
        try:
            file = own_files.open_file(own_files.one_name(place, own_files.IN_TRASH), self._trash)
            modified = os.fstat(file).st_mtime_ns
        except OSError:
            return None
        staged = self._filled(file, algorithms)
        if staged is not None:
            with suppress(OSError):
                os.utime(staged.name, ns=(modified, modified), dir_fd=self._tmp)
        return staged

    def install(self, batch: Sequence[ports.CopyInstallation]) -> list[str | StorageError]:
        """Put a batch in place durably; return for each its stat signature or its error."""
        with self._folders() as folders:
            synced = self._syncer.sync(batch)
            results = [
                self._place(folders, installation, result) if isinstance(result, str) else result
                for installation, result in zip(batch, synced, strict=True)
            ]
            folders.sync(self._syncer.sync_together)
        return results

    def _place(
        self, folders: OpenFolders, installation: ports.CopyInstallation, signature: str
    ) -> str | StorageError:
        staged: StagedFile = installation.staged  # type: ignore[assignment]  # of these very copies
        try:
            folder, leaf = folders.locate(installation.path, create=True)
            try:
                info = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                pass  # as most
            else:
                self._clear_path(folder, leaf, info, installation)
            os.rename(staged.name, leaf, src_dir_fd=self._tmp, dst_dir_fd=folder)
        except StorageError as error:
            staged.discard()
            return error
        except OSError as error:
            staged.discard()
            return mirror_error(error, f"putting {installation.path} in place")
        if staged.is_noted:
            staged.forget()
        return signature

    def _clear_path(
        self, folder: int, leaf: str, info: os.stat_result, installation: ports.CopyInstallation
    ) -> None:
        if stat.S_ISDIR(info.st_mode):
            raise blocked_path_error(installation.path)
        if own_files.is_regular(info):
            # Only the kernel writes this time, so it shows an edit that sets back the other one.
            is_touched = installation.content and info.st_ctime_ns > installation.since * 1_000
            if installation.replaces == signature_of(info) and not is_touched:
                return
            assert isinstance(installation.staged, StagedFile)
            length, digests = installation.staged.length, installation.staged.digests
            with suppress(StorageError, OSError):  # one that cannot be read may be anything
                if info.st_size == length and self._equal(folder, leaf, digests):
                    return
                if ports.has_content(self, installation.path, installation.content):
                    return
        place = move_to_quarantine(folder, leaf, installation.path, self._quarantine)
        self._made_way.append((installation.path, place))

    def newly_quarantined(self) -> list[tuple[str, str]]:
        """Return the files moved to the quarantine since the last call: paths and names."""
        found, self._made_way = self._made_way, []
        return found

    def _equal(self, folder: int, leaf: str, digests: Sequence[Digest]) -> bool:
        with own_files.opened(own_files.open_file(leaf, folder)) as file:
            _, found = content_of(file, [digest.algorithm for digest in digests])
        return agree(parse_digests(found), digests)

    def remove(self, batch: Sequence[ports.CopyRemoval], reason: str) -> list[str | StorageError]:
        """Move a batch to the trash durably; return the new place of each (empty: no file)."""
        del reason  # the state stores it; the file needs none
        with self._folders() as folders:
            results = [self._move_to_trash(folders, removal) for removal in batch]
            try:
                own_files.sync_folder(self._trash)
            except OSError as error:
                raise mirror_error(error, "making the trash durable") from error
            folders.sync()
        self._drop_empty_folders({removal.path for removal in batch})
        return results

    def _move_to_trash(
        self, folders: OpenFolders, removal: ports.CopyRemoval
    ) -> str | StorageError:
        try:
            folder, leaf = folders.locate(removal.path, create=False)
            info = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
            is_known = own_files.is_regular(info) and (
                signature_of(info) == removal.signature
                or ports.has_content(self, removal.path, removal.content)
            )
            if removal.is_altered and not is_known and own_files.is_regular(info):
                place = move_to_quarantine(folder, leaf, removal.path, self._quarantine)
                self._made_way.append((removal.path, place))
                folders.mark_changed(removal.path)
                return ""
            if not is_known:
                return StorageError(
                    f"{removal.path} was changed locally since it was fetched",
                    evidence=(("kept", "the changed file is untouched"),),
                    hint="move it away if you want to keep it, then try again",
                    code="local-change",
                )
            place = f"{os.urandom(8).hex()}-{leaf[:_LEAF]}"
            os.rename(leaf, place, src_dir_fd=folder, dst_dir_fd=self._trash)
            folders.mark_changed(removal.path)
        except FileNotFoundError:
            return ""
        except StorageError as error:
            return error
        except OSError as error:
            return mirror_error(error, f"moving {removal.path} to the trash")
        return place

    def move(self, batch: Sequence[ports.CopyMove]) -> list[str | StorageError]:
        """Move copies to other paths durably; return for each its signature or its error."""
        # Two sets of folders: opening one more never closes the other end of a move. The old folder
        # is synced only after the new ones: no power cut loses both names.
        with self._folders() as sources, self._folders(at_once=True) as targets:
            results = [self._move(sources, targets, move) for move in batch]
            targets.sync()
            try:
                for folder in {move.path.rpartition("/")[0] for move in batch}:
                    with suppress(FileNotFoundError, StorageError):
                        sources.locate(f"{folder}/-".lstrip("/"), create=False)
                        sources.mark_changed(f"{folder}/-".lstrip("/"))
            except OSError as error:
                raise mirror_error(error, "making a folder durable") from error
            sources.sync()
        self._drop_empty_folders({move.path for move in batch})
        return results

    def _move(
        self, sources: OpenFolders, targets: OpenFolders, move: ports.CopyMove
    ) -> str | StorageError:
        try:
            folder, leaf = sources.locate(move.path, create=False)
            info = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:  # it was moved before, or does not exist
            return move.signature
        except StorageError:
            return move.signature  # a link or a file replaced its folder: the same
        except OSError as error:
            return mirror_error(error, f"looking at {move.path}")
        if not own_files.is_regular(info):  # its name is something else by now, such as a folder
            return move.signature
        try:
            there, name = targets.locate(move.to, create=True)
            self._clear_target(there, name, move.to, info)
            os.rename(leaf, name, src_dir_fd=folder, dst_dir_fd=there)
        except StorageError as error:
            return error
        except OSError as error:
            return mirror_error(error, f"moving {move.path} to {move.to}")
        return move.signature

    def _clear_target(self, folder: int, leaf: str, path: str, ours: os.stat_result) -> None:
        """Move what does not belong at a path to the quarantine; remove an empty folder."""
        try:
            info = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        if stat.S_ISDIR(info.st_mode):
            try:
                os.rmdir(leaf, dir_fd=folder)
            except OSError as error:
                raise blocked_path_error(path) from error
            return
        if os.path.samestat(info, ours):  # without case, the old name may be this one too
            return
        self._made_way.append((path, move_to_quarantine(folder, leaf, path, self._quarantine)))

    def _drop_empty_folders(self, paths: set[str]) -> None:
        folders = {path.rpartition("/")[0] for path in paths if ports.is_copy_path(path)} - {""}
        for folder in sorted(folders, key=len, reverse=True):
            with suppress(OSError, StorageError), self._folders() as held:
                name = folder
                while name:
                    parent, leaf = held.locate(name, create=False)
                    os.rmdir(leaf, dir_fd=parent)
                    name = name.rpartition("/")[0]

    def purge(self, place: str) -> None:
        """Delete one file of the trash; it is no error if it is gone."""
        try:
            os.unlink(own_files.one_name(place, own_files.IN_TRASH), dir_fd=self._trash)
        except FileNotFoundError:
            return
        except OSError as error:
            raise mirror_error(error, "emptying the trash") from error

    def trashed(self) -> Iterator[str]:
        """Yield the names in the trash."""
        try:
            with os.scandir(self._trash) as entries:
                yield from (entry.name for entry in entries)
        except OSError as error:
            raise mirror_error(error, "reading the trash") from error

    def _folders(self, *, at_once: bool = False) -> "closing[OpenFolders]":
        return closing(OpenFolders(self._root, at_once=at_once))

    def inspect(self) -> "closing[FolderCopyInspector]":
        """Inspect many files; folders are opened once while the block runs."""
        return closing(FolderCopyInspector(self._root))

    def signature(self, path: str) -> str | None:
        """Return the stat signature of the copy at ``path``, or ``None`` when there is none."""
        with self.inspect() as look:
            return look.signature(path)

    def digest(self, path: str, algorithms: Sequence[str]) -> tuple[int, tuple[Digest, ...]] | None:
        """Read a copy; return its length and digests, or ``None`` when there is none."""
        with self.inspect() as look:
            return look.digest(path, algorithms)

    def digest_all(
        self, wanted: Sequence[tuple[str, Sequence[str]]]
    ) -> Iterator[ports.CopyContent | StorageError | None]:
        """Read copies; yield the content of each, its error, or ``None`` when there is none."""
        with self.inspect() as look:
            yield from look.digest_all(wanted)

    def quarantined(self, path: str) -> list[str]:
        """Return the names in the quarantine of files moved from ``path``, newest last."""
        return quarantined_from(self._quarantine, path)

    def paths(self) -> Iterator[str]:
        """Yield the path of every file in the mirror, in no order, its own folder left out."""
        waiting = [""]
        while waiting:
            prefix = waiting.pop()
            try:
                with self._listing(prefix) as entries:
                    for entry in entries:
                        name = f"{prefix}{entry.name}"
                        if entry.is_dir(follow_symlinks=False):
                            if name != OWN_FOLDER:
                                waiting.append(f"{name}/")
                        else:
                            yield name
            except OSError as error:
                raise mirror_error(error, f"listing {prefix or 'the mirror'}") from error

    @contextmanager
    def _listing(self, prefix: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        with self._folders() as folders:
            folder, _ = folders.parent(prefix, create=False)
            with os.scandir(folder) as entries:
                yield entries


def blocked_path_error(path: str) -> StorageError:
    """Return the error for a copy whose path is occupied by something other than a file."""
    return StorageError(
        f"a folder is in the way of a copy: {path}",
        evidence=(("kept", "the folder is untouched"),),
        hint="move it away, then try again",
        code="path-in-the-way",
    )
