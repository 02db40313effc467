"""A Source of files in memory, and what an honest server says of them."""

from abc import ABC, abstractmethod

from resourcesync.ports import FetchRequest
from tests.support.in_memory import ManualClock, MemoryDocuments, MemoryOriginals
from tests.support.worlds.network import BASE, Answer


class FileSource:
    """The files of a Source, and the documents that list them; who lists them says how."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.originals = MemoryOriginals(self.clock)
        self.documents = MemoryDocuments()

    def put(self, name: str, content: bytes | str) -> None:
        data = content.encode() if isinstance(content, str) else content
        self.originals.put(BASE + name, data)

    def remove(self, name: str) -> None:
        self.originals.remove(BASE + name)

    def contents(self) -> dict[str, bytes]:
        return self.originals.contents()

    def honest(self, uri: str) -> Answer:
        document = self.documents.open(uri.removeprefix(BASE))
        if document is not None:
            return Answer(body=document.read(), headers={"content-type": "application/xml"})
        original = self.originals.open(uri)
        return Answer(status=404) if original is None else Answer(body=original.read())

    def serve(self, request: FetchRequest) -> Answer | Exception:
        return self.honest(request.uri)


class PublishingSource(FileSource, ABC):
    @abstractmethod
    def publish(self) -> object:
        """List what changed."""

    def publish_file(self, name: str, content: bytes | str) -> None:
        self.put(name, content)
        self.publish()

    def publish_deletion(self, name: str) -> None:
        self.remove(name)
        self.publish()
