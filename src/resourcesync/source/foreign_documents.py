"""Guard against overwriting files of somebody else in the places of documents."""

from collections.abc import Mapping
from typing import BinaryIO, Final

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.documents import reader
from resourcesync.errors import ConfigurationError, DocumentError
from resourcesync.model.entries import CapabilityEntry
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.ports.documents import DocumentStore
from resourcesync.source import naming
from resourcesync.source.description import ABOUT_START
from resourcesync.source.document_writer import DocumentWriter
from resourcesync.source.dump_record import read_dumps
from resourcesync.source.naming import SourceNaming
from resourcesync.source.stored_plan import DocumentRecord, PublicationRecord, PublicationStep

_ABOVE: Final = {
    naming.RESOURCE_LIST: (Capability.RESOURCE_LIST, naming.CAPABILITY_LIST),
    naming.CHANGE_LIST: (Capability.CHANGE_LIST, naming.CAPABILITY_LIST),
    naming.CAPABILITY_LIST: (Capability.CAPABILITY_LIST, naming.DESCRIPTION),
    naming.DESCRIPTION: (Capability.DESCRIPTION, naming.CAPABILITY_LIST),
}
"""The capability of each head, and the document that it leads to: the one above, if it has one."""
_DUMPS: Final = {
    naming.RESOURCE_DUMP: (Capability.RESOURCE_DUMP, naming.CAPABILITY_LIST),
    naming.CHANGE_DUMP: (Capability.CHANGE_DUMP, naming.CAPABILITY_LIST),
}


def refuse_foreign(
    documents: DocumentStore,
    names: SourceNaming,
    written: Mapping[str, DocumentRecord],
    step: PublicationStep,
) -> None:
    """Refuse to begin to publish where documents are that this catalogue did not write.

    To begin anew (``PublicationStep.INITIALISE``) takes the place of a Source of the same address,
    whose documents are recognised by their links, and of nothing else.
    """
    own = DocumentWriter(documents, names, written)
    for name in (*_ABOVE, naming.ABOUT):
        if name == naming.DESCRIPTION and names.site_uri:
            continue  # other sets share it
        if own.confirm_unharmed(name):
            continue
        leads_to = _read_ours(documents, name)
        if leads_to is not None and step is not PublicationStep.INITIALISE:
            raise _conflict(
                name,
                "this catalogue did not write it",
                "restore the catalogue of these documents, write elsewhere, or begin anew: "
                "--out DIR, or --initialise",
            )
        if leads_to and leads_to != names.uri(_ABOVE[name][1]):
            raise _conflict(
                name,
                "is of a Source with another address",
                "remove the documents of that Source first, or write elsewhere: --out DIR",
                ("leads to", leads_to),
            )


def refuse_foreign_dumps(catalogue: SourceCatalogue, documents: DocumentStore) -> None:
    """Refuse to dump where a file of somebody else would be replaced."""
    ours = read_dumps(catalogue).documents
    for name in _DUMPS:
        if name not in ours:
            _read_ours(documents, name)


def refuse_foreign_sitemap(documents: DocumentStore, record: PublicationRecord | None) -> None:
    """Refuse to write a plain sitemap where a file of somebody else would be replaced."""
    ours = set() if record is None else {*record.documents, *record.orphans}
    for name in documents.names():
        if naming.is_sitemap(name) and name not in ours and not _is_plain_sitemap(documents, name):
            raise _conflict(name)


def _is_plain_sitemap(documents: DocumentStore, name: str) -> bool:
    stream = documents.open(name)
    if stream is None:
        return True
    with stream:
        try:
            return reader.read(stream, uri=name).header.capability is None
        except DocumentError:
            return False


def _conflict(
    name: str,
    why: str = "was not written by resourcesync",
    hint: str = "move the file, or write the documents elsewhere: --out DIR",
    *evidence: tuple[str, str],
) -> ConfigurationError:
    return ConfigurationError(
        f"{name} already exists, and {why}",
        evidence=(*evidence, ("kept", "nothing was changed")),
        hint=hint,
    )


def _read_ours(documents: DocumentStore, name: str) -> str | None:
    stream = documents.open(name)
    if stream is None:
        return None
    with stream:
        if name == naming.ABOUT:
            is_ours, leads_to = stream.read(len(ABOUT_START)) == ABOUT_START, ""
        else:
            above = (_ABOVE | _DUMPS)[name][1]
            leads_to = _leads_to(stream, name)
            is_ours = leads_to.endswith("/" + above.removeprefix(naming.FOLDER))
    if not is_ours:
        raise _conflict(name)
    return leads_to


def _leads_to(stream: BinaryIO, name: str) -> str:
    try:
        document = reader.read(stream, uri=name)
        if name != naming.DESCRIPTION:
            is_it = document.header.capability is (_ABOVE | _DUMPS)[name][0]
            return (document.header.link(Relation.UP) or "") if is_it else ""
        match list(document.entries()):
            case [CapabilityEntry(uri=uri)]:
                return uri
            case _:
                return ""
    except DocumentError:
        return ""
