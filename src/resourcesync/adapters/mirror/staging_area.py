"""Staging area of a mirror in a folder: the files of workers."""

from collections.abc import Mapping, Sequence
from typing import cast

from resourcesync.adapters.mirror.staged_file import StagedFile
from resourcesync.adapters.mirror.staging import FileSyncer, Staging
from resourcesync.errors import StorageError
from resourcesync.ports import CopyInstallation, StagedCopy


class FolderStagingArea:
    """The ``StagingArea`` in the folder of temporary files of a mirror.

    The names of files have a random part for each worker, so none writes a file of another.
    """

    def __init__(self, staging: Staging, syncer: FileSyncer) -> None:
        self._staging = staging
        self._syncer = syncer

    def stage(self, algorithms: Sequence[str]) -> StagedFile:
        """Start a staged file."""
        return self._staging.stage(algorithms)

    def hand_over(
        self, batch: Sequence[tuple[StagedCopy, Mapping[str, str]]]
    ) -> list[str | StorageError]:
        """Make files durable; return the name of each, or its error."""
        staged = [cast("StagedFile", copy) for copy, _ in batch]
        synced = self._syncer.sync([CopyInstallation(file, "") for file in staged])
        return [
            file.name if isinstance(result, str) else result
            for file, result in zip(staged, synced, strict=True)
        ]
