"""Each check of the suite of copies finds copies that break its promise."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from resourcesync.adapters.mirror.copies import FileTreeCopies
from resourcesync.adapters.mirror.open_folders import OpenFolders
from resourcesync.adapters.mirror.staged_file import StagedFile
from resourcesync.errors import StorageError
from resourcesync.model.digests import Digest
from resourcesync.ports import CopyInstallation, CopyMove, CopyRemoval
from resourcesync.testing import CopiesSuite
from tests.support.breaking import checks_of, finds


class Trial(CopiesSuite):
    many = 5

    def __init__(self, root: Path) -> None:
        self.root = root

    def tamper(self, path: str, content: bytes) -> None:
        (self.root / path).write_bytes(content)

    def read_trashed(self, place: str) -> bytes:
        return (self.root / ".resourcesync/trash" / place).read_bytes()

    def read_quarantined(self, place: str) -> bytes:
        return (self.root / ".resourcesync/quarantine" / place).read_bytes()


class OneDigest(FileTreeCopies):
    def stage(self, algorithms: Sequence[str], of: str = "") -> StagedFile:
        return super().stage(algorithms[:1], of)


class NeverRestarts(FileTreeCopies):
    def stage(self, algorithms: Sequence[str], of: str = "") -> StagedFile:
        staged = super().stage(algorithms, of)
        staged.restart = lambda: None  # type: ignore[method-assign]  # that is the mistake
        return staged


class ListsAll(FileTreeCopies):
    def paths(self) -> Iterator[str]:
        yield from super().paths()
        yield from (f".resourcesync/tmp/{name}" for name in os.listdir(self._tmp))


class CopiesNothing(FileTreeCopies):
    def stage_copy(self, path: str, algorithms: Sequence[str]) -> StagedFile | None:
        return super().stage_copy(path, algorithms) or self.stage(algorithms)


class OtherSignature(FileTreeCopies):
    def install(self, batch: Sequence[CopyInstallation]) -> list[str | StorageError]:
        return [
            item if isinstance(item, StorageError) else f"{item}."
            for item in super().install(batch)
        ]


class KnowsNoneOfOurs(FileTreeCopies):
    def install(self, batch: Sequence[CopyInstallation]) -> list[str | StorageError]:
        return super().install([replace(installation, replaces=None) for installation in batch])


class Overwrites(FileTreeCopies):
    def install(self, batch: Sequence[CopyInstallation]) -> list[str | StorageError]:
        return super().install(
            [
                replace(
                    installation,
                    replaces=self.signature(installation.path) or installation.replaces,
                )
                for installation in batch
            ]
        )


class KnowsSignaturesOnly(FileTreeCopies):
    def install(self, batch: Sequence[CopyInstallation]) -> list[str | StorageError]:
        return super().install([replace(installation, content=None) for installation in batch])


class NewestFirst(FileTreeCopies):
    def quarantined(self, path: str) -> list[str]:
        return super().quarantined(path)[::-1]


class NeverEqual(FileTreeCopies):
    def _equal(self, folder: int, leaf: str, digests: Sequence[Digest]) -> bool:
        return False


class StopsAtOne(FileTreeCopies):
    def install(self, batch: Sequence[CopyInstallation]) -> list[str | StorageError]:
        found = super().install(batch)
        wrong = [number for number, item in enumerate(found) if isinstance(item, StorageError)]
        return found if not wrong else found[: wrong[0] + 1]


class AnyPlace(OpenFolders):
    def locate(self, path: str, *, create: bool) -> tuple[int, str]:
        return self.parent(path, create=create)


class LeadsAnywhere(FileTreeCopies):
    @contextmanager
    def _folders(self, *, at_once: bool = False) -> Iterator[OpenFolders]:
        with closing(AnyPlace(self._root, at_once=at_once)) as folders:
            yield folders


class LooksAnywhere(FileTreeCopies):
    """Sees what is beside the mirror."""

    def signature(self, path: str) -> str | None:
        return f"{os.stat(path)}" if path == ".." else super().signature(path)


class TellsNoReason(FileTreeCopies):
    def install(self, batch: Sequence[CopyInstallation]) -> list[str | StorageError]:
        found = super().install(batch)
        return [StorageError("no") if isinstance(item, StorageError) else item for item in found]


class DeletesForGood(FileTreeCopies):
    def remove(self, batch: Sequence[CopyRemoval], reason: str) -> list[str | StorageError]:
        found = super().remove(batch, reason)
        for item in found:
            if isinstance(item, str) and item:
                self.purge(item)
        return found


class TakesFromTheTrash(FileTreeCopies):
    def stage_trashed(self, place: str, algorithms: Sequence[str]) -> StagedFile | None:
        staged = super().stage_trashed(place, algorithms)
        self.purge(place)
        return staged


class RemovesAnything(FileTreeCopies):
    def remove(self, batch: Sequence[CopyRemoval], reason: str) -> list[str | StorageError]:
        now = [replace(removal, signature=self.signature(removal.path) or "") for removal in batch]
        return super().remove(now, reason)


class TrashesAnything(RemovesAnything):
    def remove(self, batch: Sequence[CopyRemoval], reason: str) -> list[str | StorageError]:
        return super().remove([replace(removal, is_altered=False) for removal in batch], reason)


class RemembersSignatures(FileTreeCopies):
    known: str | None = None

    def signature(self, path: str) -> str | None:
        self.known = self.known or super().signature(path)
        return self.known

    def install(self, batch: Sequence[CopyInstallation]) -> list[str | StorageError]:
        found = super().install(batch)
        self.signature(batch[0].path)
        return found


class CopiesOnMoving(FileTreeCopies):
    """Leaves a copy where it was."""

    def move(self, batch: Sequence[CopyMove]) -> list[str | StorageError]:
        found = super().move(batch)
        for copy_move in batch:
            staged = self.stage_copy(copy_move.to, ["sha-256"])
            if staged is not None:
                self.install([CopyInstallation(staged=staged, path=copy_move.path)])
        return found


class NewSignature(FileTreeCopies):
    def move(self, batch: Sequence[CopyMove]) -> list[str | StorageError]:
        found = super().move(batch)
        return [item if isinstance(item, StorageError) else f"{item}." for item in found]


class TakesWhatIsThere(FileTreeCopies):
    """Takes whatever is at the new path for the copy that was to be moved."""

    def move(self, batch: Sequence[CopyMove]) -> list[str | StorageError]:
        found = super().move(batch)
        return [
            self.signature(copy_move.to) or known
            for copy_move, known in zip(batch, found, strict=True)
        ]


class MovesOver(FileTreeCopies):
    def _clear_target(self, folder: int, leaf: str, path: str, ours: os.stat_result) -> None:
        """Overwrites what is there."""


class MakesNoRoom(FileTreeCopies):
    """Moves onto a folder by moving that away."""

    def move(self, batch: Sequence[CopyMove]) -> list[str | StorageError]:
        return super().move(
            [replace(copy_move, to=copy_move.to.replace("b/c/d", "e")) for copy_move in batch]
        )


class WantsAFile(FileTreeCopies):
    """Calls it an error that a folder is where a copy was."""

    def move(self, batch: Sequence[CopyMove]) -> list[str | StorageError]:
        for copy_move in batch:
            if any(path.startswith(f"{copy_move.path}/") for path in self.paths()):
                raise StorageError(f"{copy_move.path} is a folder")
        return super().move(batch)


class StopsMoving(FileTreeCopies):
    def move(self, batch: Sequence[CopyMove]) -> list[str | StorageError]:
        found: list[str | StorageError] = []
        for copy_move in batch:
            found += super().move([copy_move])
            if isinstance(found[-1], StorageError):
                found += [found[-1]] * (len(batch) - len(found))
                break
        return found


class KeepsFolders(FileTreeCopies):
    def _drop_empty_folders(self, paths: set[str]) -> None:
        """Leaves all folders there."""


BROKEN: list[tuple[str, type[FileTreeCopies]]] = [
    ("test_bytes_are_hashed_while_they_pass", OneDigest),
    ("test_a_copy_that_starts_again_forgets_its_bytes", NeverRestarts),
    ("test_discarded_bytes_leave_nothing", ListsAll),
    ("test_a_copy_is_copied_as_it_is", CopiesNothing),
    ("test_an_installed_copy_exists_with_its_signature", OtherSignature),
    ("test_our_own_copy_is_replaced_without_a_trace", KnowsNoneOfOurs),
    ("test_foreign_files_are_moved_to_the_quarantine", Overwrites),
    ("test_a_copy_with_our_bytes_is_ours_whatever_its_signature_is", KnowsSignaturesOnly),
    ("test_repeated_quarantine_entries_are_listed_newest_last", NewestFirst),
    ("test_foreign_files_with_equal_bytes_are_adopted", NeverEqual),
    ("test_one_failed_installation_does_not_stop_the_batch", StopsAtOne),
    ("test_a_path_outside_the_mirror_is_refused", LeadsAnywhere),
    ("test_a_path_outside_the_mirror_is_refused", LooksAnywhere),
    ("test_nothing_is_put_below_a_copy", TellsNoReason),
    ("test_a_removed_copy_is_in_the_trash", DeletesForGood),
    ("test_a_trashed_copy_can_be_staged", TakesFromTheTrash),
    ("test_a_locally_modified_copy_is_not_removed", RemovesAnything),
    ("test_a_removed_altered_file_goes_to_the_quarantine", TrashesAnything),
    ("test_a_copy_moves_with_its_bytes", CopiesOnMoving),
    ("test_a_copy_moves_with_its_bytes", NewSignature),
    ("test_moving_a_missing_copy_does_nothing", TakesWhatIsThere),
    ("test_a_copy_that_moved_may_have_left_its_name_to_a_folder", WantsAFile),
    ("test_a_file_at_the_new_path_goes_to_the_quarantine", MovesOver),
    ("test_an_edited_copy_moves_with_its_edits", TakesWhatIsThere),
    ("test_a_copy_is_never_moved_outside_the_mirror", LeadsAnywhere),
    ("test_one_failed_move_does_not_stop_the_batch", StopsMoving),
    ("test_folders_emptied_by_moving_are_removed", KeepsFolders),
    ("test_nothing_is_moved_onto_a_folder", MakesNoRoom),
    ("test_foreign_changes_are_detected", RemembersSignatures),
]


@contextmanager
def opened(kind: type[FileTreeCopies], root: Path) -> Iterator[FileTreeCopies]:
    for name in ("tmp", "trash", "quarantine"):
        (root / ".resourcesync" / name).mkdir(parents=True)
    above, below = (os.open(path, os.O_RDONLY) for path in (root, root / ".resourcesync"))
    with closing(kind(above, below)) as copies:
        yield copies
    os.close(below)
    os.close(above)


@pytest.mark.parametrize(("check", "kind"), BROKEN, ids=lambda item: getattr(item, "__name__", ""))
def test_copies_that_break_a_promise_are_found(
    check: str, kind: type[FileTreeCopies], tmp_path: Path
) -> None:
    with opened(kind, tmp_path / "mirror") as copies:
        assert finds(Trial(tmp_path / "mirror"), check, copies)


def test_each_check_of_copies_has_copies_that_fail_it() -> None:
    assert {check for check, _ in BROKEN} == checks_of(CopiesSuite)
