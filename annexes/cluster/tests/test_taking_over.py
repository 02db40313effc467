"""What a worker staged is taken over by the coordinator's sink, and nothing else is."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from resourcesync.adapters.mirror.staging import Staging, open_staging
from resourcesync.adapters.mirror.syncing import FileSyncer
from resourcesync.errors import StorageError
from resourcesync.model.digests import Digest
from resourcesync.ports import StagedCopy
from resourcesync_cluster.worker_fetching import FolderStagingArea

BODY = bytes(range(256)) * 300
DIGESTS = (Digest("sha-256", "ab" * 32),)


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Staging]:
    (tmp_path / "tmp").mkdir()
    with open_staging(tmp_path / "tmp") as staging:
        yield staging


def hand_over(folder: Path, *bodies: bytes) -> list[str | StorageError]:
    with open_staging(folder) as staging, closing(FileSyncer(lambda: 0.0)) as syncer:
        area = FolderStagingArea(staging, syncer)
        copies: list[tuple[StagedCopy, dict[str, str]]] = []
        for body in bodies:
            copy = area.stage(["sha-256"])
            copy.write(body)
            copy.seal()
            copies.append((copy, {}))
        return area.hand_over(copies)


@pytest.mark.parametrize("body", [b"", b"few", BODY], ids=["empty", "small", "large"])
def test_a_sink_has_the_bytes_of_the_worker(
    coordinator: Staging, tmp_path: Path, body: bytes
) -> None:
    (place,) = hand_over(tmp_path / "tmp", body)
    sink = coordinator.stage(["sha-256"])
    sink.write(b"something else")
    assert isinstance(place, str)

    sink.take(place, len(body), DIGESTS)

    assert sink.seal() == (len(body), DIGESTS)
    with sink.open_sealed() as stream:
        assert stream.read() == body
    sink.complete(1_000_000, start=False)
    assert sink.close_durable(sync=True).startswith(f"{len(body)}:1000000000:")
    assert (tmp_path / "tmp" / sink.name).read_bytes() == body


def test_a_sink_that_is_discarded_removes_what_it_took(
    coordinator: Staging, tmp_path: Path
) -> None:
    (place,) = hand_over(tmp_path / "tmp", BODY)
    assert isinstance(place, str)
    sink = coordinator.stage(["sha-256"])
    sink.take(place, len(BODY), DIGESTS)

    sink.discard()

    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize("place", ["gone", "../outside", "link", "..", "short"])
def test_what_no_worker_staged_is_refused(coordinator: Staging, tmp_path: Path, place: str) -> None:
    (tmp_path / "outside").write_bytes(BODY)
    (tmp_path / "tmp" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "tmp" / "short").write_bytes(BODY[1:])
    sink = coordinator.stage(["sha-256"])

    with pytest.raises(StorageError, match="not in the mirror's folder"):
        sink.take(place, len(BODY), DIGESTS)

    sink.discard()
    assert (tmp_path / "outside").read_bytes() == BODY


def test_no_two_workers_use_the_same_name(coordinator: Staging, tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    places = [hand_over(folder, b"one", b"two") for _ in range(20)]

    assert len({place for pair in places for place in pair}) == len(os.listdir(folder)) == 40


def test_what_a_worker_cannot_write_is_an_error_of_its_copy(tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    with open_staging(folder) as staging, closing(FileSyncer(lambda: 0.0)) as syncer:
        area = FolderStagingArea(staging, syncer)
        lost, well = area.stage(["sha-256"]), area.stage(["sha-256"])
        for copy in (lost, well):
            copy.write(b"few")
            copy.seal()
        (folder / lost.name).mkdir()

        places = area.hand_over([(lost, {}), (well, {})])

    assert isinstance(places[0], StorageError)
    assert places[1] == well.name
