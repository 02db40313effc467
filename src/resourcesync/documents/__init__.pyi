from resourcesync.documents.checked_writer import write as write
from resourcesync.documents.expat import Limits as Limits
from resourcesync.documents.expat import Tolerated as Tolerated
from resourcesync.documents.reader import Document as Document
from resourcesync.documents.reader import read as read
from resourcesync.model.digests import Digest as Digest
from resourcesync.model.digests import format_digests as format_digests
from resourcesync.model.digests import parse_digests as parse_digests
from resourcesync.model.entries import CapabilityEntry as CapabilityEntry
from resourcesync.model.entries import Change as Change
from resourcesync.model.entries import DocumentChange as DocumentChange
from resourcesync.model.entries import Entry as Entry
from resourcesync.model.entries import Header as Header
from resourcesync.model.entries import Link as Link
from resourcesync.model.entries import Package as Package
from resourcesync.model.entries import Part as Part
from resourcesync.model.entries import RefusedEntry as RefusedEntry
from resourcesync.model.entries import Resource as Resource
from resourcesync.model.timestamps import format_w3c as format_time
from resourcesync.model.timestamps import parse_w3c as parse_time
from resourcesync.model.vocabulary import Capability as Capability
from resourcesync.model.vocabulary import ChangeKind as ChangeKind
from resourcesync.model.vocabulary import Dialect as Dialect
from resourcesync.model.vocabulary import Relation as Relation

__all__ = [
    "Capability",
    "CapabilityEntry",
    "Change",
    "ChangeKind",
    "Dialect",
    "Digest",
    "Document",
    "DocumentChange",
    "Entry",
    "Header",
    "Limits",
    "Link",
    "Package",
    "Part",
    "RefusedEntry",
    "Relation",
    "Resource",
    "Tolerated",
    "format_digests",
    "format_time",
    "parse_digests",
    "parse_time",
    "read",
    "write",
]
