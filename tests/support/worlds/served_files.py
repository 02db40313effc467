"""Originals and documents in memory, and what an honest server says of them."""

from resourcesync.adapters.in_memory import MemoryDocuments
from resourcesync.ports import FetchRequest
from tests.support.in_memory import ManualClock, MemoryOriginals
from tests.support.worlds.network import BASE, Answer


class ServedFiles:
    """The files of a Source, and the documents that list them."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.originals = MemoryOriginals(clock)
        self.documents = MemoryDocuments()

    def put(self, name: str, content: bytes | str) -> None:
        """Write a file."""
        data = content.encode() if isinstance(content, str) else content
        self.originals.put(BASE + name, data)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self.originals.remove(BASE + name)

    def contents(self) -> dict[str, bytes]:
        """Return the files by URI, as a mirror in sync has them."""
        return self.originals.contents()

    def honest(self, uri: str) -> Answer:
        """Return what the server says of an address."""
        document = self.documents.open(uri.removeprefix(BASE))
        if document is not None:
            return Answer(body=document.read(), headers={"content-type": "application/xml"})
        original = self.originals.open(uri)
        return Answer(status=404) if original is None else Answer(body=original.read())

    def serve(self, request: FetchRequest) -> Answer | Exception:
        """Answer a request."""
        return self.honest(request.uri)
