"""Guard against overwriting files of somebody else in the places of documents."""

from typing import Final

from resourcesync.documents import reader
from resourcesync.documents.iiif.change_discovery import STREAM_START
from resourcesync.errors import ConfigurationError, DocumentError, Remedy
from resourcesync.model.capabilities import CapabilityEntry
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.ports.catalogue import CatalogueStore, DocumentStore
from resourcesync.source import description, naming
from resourcesync.source.dump_record import read_dumps
from resourcesync.source.plan import PublicationRecord

_ABOVE: Final = {
    naming.RESOURCE_LIST: (Capability.RESOURCE_LIST, naming.CAPABILITY_LIST),
    naming.CHANGE_LIST: (Capability.CHANGE_LIST, naming.CAPABILITY_LIST),
    naming.CAPABILITY_LIST: (Capability.CAPABILITY_LIST, naming.DESCRIPTION),
}
"""The capability of each head, and that of the document above it."""
_DUMPS: Final = {
    naming.RESOURCE_DUMP: (Capability.RESOURCE_DUMP, naming.CAPABILITY_LIST),
    naming.CHANGE_DUMP: (Capability.CHANGE_DUMP, naming.CAPABILITY_LIST),
}


def refuse_foreign(documents: DocumentStore) -> None:
    """Refuse to publish where a file of somebody else would be replaced.

    For a first publication. Our own documents are recognised by their links, so that publication
    can start again after the catalogue was lost.

    Raises:
        ConfigurationError: A head already exists and was not written by this package.
        StorageError: What is there cannot be read.
    """
    for name in (*_ABOVE, naming.DESCRIPTION, naming.ABOUT):
        is_free = _is_free_for_about if name == naming.ABOUT else _is_free
        if not is_free(documents, name):
            raise _conflict_error(name)


def refuse_foreign_dumps(catalogue: CatalogueStore, documents: DocumentStore) -> None:
    """Refuse to dump where a file of somebody else would be replaced.

    Raises:
        ConfigurationError: A dump already exists and was not written by this package.
        StorageError: What is there cannot be read.
    """
    ours = read_dumps(catalogue).documents
    for name in _DUMPS:
        if name not in ours and not _is_free(documents, name):
            raise _conflict_error(name)


def refuse_foreign_sitemap(documents: DocumentStore, record: PublicationRecord | None) -> None:
    """Refuse to write a plain sitemap where a file of somebody else would be replaced.

    Args:
        documents: The store of the documents.
        record: The record of the last publication.

    Raises:
        ConfigurationError: The file with its name, or that of a part, is not a sitemap.
        StorageError: The existing file cannot be read.
    """
    ours = set() if record is None else {*record.documents, *record.orphans}
    for name in documents.names():
        if naming.is_sitemap(name) and name not in ours and not _is_plain_sitemap(documents, name):
            raise _conflict_error(name)


def refuse_foreign_activities(documents: DocumentStore, record: PublicationRecord | None) -> None:
    """Refuse to write a stream of activities where a file of somebody else would be replaced.

    Args:
        documents: The store of the documents.
        record: The record of the last publication.

    Raises:
        ConfigurationError: The file with its name is none of ours.
        StorageError: The existing file cannot be read.
    """
    name = naming.ACTIVITIES
    stream = None if record is not None and name in record.documents else documents.open(name)
    if stream is None:
        return
    with stream:
        is_ours = stream.read(len(STREAM_START)) == STREAM_START
    if not is_ours:
        raise _conflict_error(name)


def _is_plain_sitemap(documents: DocumentStore, name: str) -> bool:
    stream = documents.open(name)
    if stream is None:
        return True
    with stream:
        try:
            return reader.read_stream(stream, uri=name).header.capability is None
        except DocumentError:
            return False


def _conflict_error(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"{name} already exists, and was not written by resourcesync",
        evidence=(("kept", "nothing was changed"),),
        hint="move the file, or write the documents elsewhere",
        remedy=Remedy("write-elsewhere"),
    )


def _is_free(documents: DocumentStore, name: str) -> bool:
    """True if there is no such document, or it is one of ours."""
    stream = documents.open(name)
    if stream is None:
        return True
    with stream:
        try:
            document = reader.read_stream(stream, uri=name)
            if name == naming.DESCRIPTION:
                return _leads_to_ours(list(document.entries()))
        except DocumentError:
            return False
    capability, above = (_ABOVE | _DUMPS)[name]
    up = document.header.link(Relation.UP) or ""
    return document.header.capability is capability and up.endswith(_tail(above))


def _is_free_for_about(documents: DocumentStore, name: str) -> bool:
    stream = documents.open(name)
    if stream is None:
        return True
    with stream:
        return stream.read(len(description.ABOUT_START)) == description.ABOUT_START


def _leads_to_ours(entries: list[object]) -> bool:
    match entries:
        case [CapabilityEntry(uri=uri)]:
            return uri.endswith(_tail(naming.CAPABILITY_LIST))
        case _:
            return False


def _tail(name: str) -> str:
    return "/" + name.removeprefix(naming.FOLDER)
