"""The plain twin of a Resource List; documents that do not read back; disks that are full."""

from collections.abc import Callable, Iterable
from typing import BinaryIO

import pytest

from resourcesync.errors import DiskFullError, StorageError
from resourcesync.source import naming
from resourcesync.source.paging import PageLimits
from resourcesync.source.publication_settings import ChangeLists, Policy
from resourcesync.source.stored_plan import PublicationStep
from tests.support.in_memory import MemoryDocuments
from tests.support.sources.publishing import Reader, Source, content_of, view


class Corrupting(MemoryDocuments):
    """A disk that stores something else than it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.name, self.old, self.new = "", b"", b""

    def write(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None = None
    ) -> int:
        if name == self.name:
            chunks = [b"".join(chunks).replace(self.old, self.new)]
        return super().write(name, chunks, check)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (naming.CHANGE_LIST, b"created", b"updated"),
        (naming.CHANGE_LIST, b"data/c", b"data/x"),
        (naming.CHANGE_LIST, b"data/b", b"data/y"),  # copied from the list before
        (naming.CHANGE_LIST, b"</urlset>", b""),
        (naming.CHANGE_LIST, b'length="2"', b'length="3"'),
        (naming.CHANGE_LIST, b" from=", b" until="),
        (
            naming.CHANGE_LIST,
            b'capability="changelist" from="20',
            b'capability="changelist" from="19',
        ),
        (naming.RESOURCE_LIST, b' at="20', b' at="19'),
        (naming.CAPABILITY_LIST, b'rel="up"', b'rel="index"'),
        (naming.RESOURCE_LIST, b"sha-256:", b"sha-256:0"),
        (naming.RESOURCE_LIST, b"<url>", b"<url><loc/>"),
        (naming.CAPABILITY_LIST, b"resourcelist.xml", b"resourcelost.xml"),
    ],
)
def test_what_does_not_read_back_replaces_nothing(name: str, old: bytes, new: bytes) -> None:
    documents = Corrupting()
    source = Source(documents=documents)
    source.put("a")
    source.publish()
    source.put("b")
    source.publish()
    source.put("c")
    before, held = source.contents(), view(source)
    documents.name, documents.old, documents.new = name, old, new
    if name == naming.CAPABILITY_LIST:
        source.policy = Policy(change_lists=ChangeLists.ARCHIVE)

    with pytest.raises(StorageError) as caught:
        source.publish(step=PublicationStep.REBASE)

    assert caught.value.code == "read-back"
    assert ("kept", "what was published before") in caught.value.evidence
    assert content_of(documents, name) == before[name]
    Reader(documents).view().current()
    assert held != source.truth()
    documents.name = ""
    source.publish_only()
    assert view(source) == source.truth()


class Untold(MemoryDocuments):
    """Files whose times were put back: nothing but their bytes tells of an alteration."""

    def signature(self, name: str) -> str | None:
        return None if super().signature(name) is None else "as ever"


@pytest.mark.parametrize("documents", [MemoryDocuments, Untold], ids=["seen", "without a trace"])
def test_a_list_that_was_altered_is_never_copied(documents: type[MemoryDocuments]) -> None:
    source = Source(documents=documents())
    source.put("a")
    source.publish()
    source.put("b")
    source.publish()
    altered = content_of(source.documents, naming.CHANGE_LIST).replace(b"data/b", b"data/x")
    source.documents.write(naming.CHANGE_LIST, [altered])
    source.put("c")

    source.publish()

    assert view(source) == source.truth()


@pytest.mark.parametrize("shape", list(ChangeLists))
def test_a_disk_that_is_full_in_the_middle_of_a_rotation_leaves_what_was_there(
    shape: ChangeLists,
) -> None:
    class Full(MemoryDocuments):
        room = 1_000

        def write(
            self,
            name: str,
            chunks: Iterable[bytes],
            check: Callable[[BinaryIO], None] | None = None,
        ) -> int:
            self.room -= 1
            if self.room < 0:
                raise DiskFullError("no space left")
            return super().write(name, chunks, check)

    for room in range(8):
        documents = Full()
        source = Source(
            limits=PageLimits(max_entries=2),
            documents=documents,
            policy=Policy(
                change_lists=shape, rotate=3_600, rebase_every=3_600, archive=86_400, sitemap=True
            ),
        )
        source.put("a", "b", "c")
        source.publish()
        source.put("d")
        source.publish()
        source.clock.advance(hours=2)
        source.put("e", "f", "g")
        documents.room = room
        try:
            source.publish()
        except DiskFullError:
            Reader(documents).view().current()
        documents.room = 1_000
        source.publish()
        assert view(source) == source.truth()
