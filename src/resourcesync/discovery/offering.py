"""What a Capability List that is known offers now (§9)."""

from dataclasses import replace

from resourcesync.discovery.discover import SourceLists, from_capability_list
from resourcesync.documents.reader import Document
from resourcesync.errors import UnexpectedDocumentError
from resourcesync.model.vocabulary import Capability


def offered_by(capability_list: Document, known: SourceLists) -> SourceLists:
    """Return where a Capability List that is known says that the lists are now.

    Args:
        capability_list: The Capability List, just opened.
        known: What was found before. A list that was the entry itself is kept where nothing is
            said of it.

    Raises:
        DocumentError: It cannot be used, or is no Capability List, or offers nothing.
    """
    header = capability_list.header
    if header.capability is not Capability.CAPABILITY_LIST or header.is_index:
        raise UnexpectedDocumentError(f"a {header.phrase}", uri=capability_list.uri)

    def entry(uri: str | None) -> str | None:
        return uri if uri == known.entry else None

    bare = replace(
        known,
        resource_list=entry(known.resource_list),
        change_list=entry(known.change_list),
        resource_dump=entry(known.resource_dump),
        change_dump=entry(known.change_dump),
    )
    return from_capability_list(capability_list, bare)
