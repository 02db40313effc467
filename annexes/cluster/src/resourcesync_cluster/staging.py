"""Where workers stage bytes: beside a mirror in a folder, or in its store (ADR 0080)."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from resourcesync.adapters.mirror.staged_file import StagedFile
from resourcesync.adapters.mirror.staging import FileSyncer, Staging
from resourcesync.errors import StorageError
from resourcesync.ports import CopyInstallation, StagedCopy, modified_at
from resourcesync.ports.stores import ObjectContent, StagingStore, guard_store, in_flight


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


class StoreStagingArea:
    """The ``StagingArea`` in a store: bytes are staged on a local disk until they are sealed."""

    def __init__(
        self, store: StagingStore, stage: Callable[[Sequence[str], str], StagedCopy]
    ) -> None:
        self._store = store
        self._stage = stage

    def stage(self, algorithms: Sequence[str]) -> StagedCopy:
        """Start a staged copy."""
        return self._stage(algorithms, "")

    def hand_over(
        self, batch: Sequence[tuple[StagedCopy, Mapping[str, str]]]
    ) -> list[str | StorageError]:
        """Store bytes under temporary keys; return the key of each, or its error."""
        workers = min(in_flight(self._store), len(batch))
        if not workers:
            return []
        with ThreadPoolExecutor(workers, "store") as pool:
            return list(pool.map(self._put, batch))

    def _put(self, item: tuple[StagedCopy, Mapping[str, str]]) -> str | StorageError:
        staged, headers = item
        length, digests = staged.seal()
        try:
            with staged.open_sealed() as stream, guard_store("staging a copy there"):
                stream.seek(0)
                lastmod = modified_at(headers)
                return self._store.stage(ObjectContent(stream, length, digests, lastmod))
        except StorageError as error:
            return error
        finally:
            staged.discard()
