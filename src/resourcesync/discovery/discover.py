"""Find a Source's lists from any address of it (§6.3)."""

from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urljoin

from resourcesync.discovery.documents import FetchedDocument
from resourcesync.discovery.search import Documents, Search, fetch, use_first
from resourcesync.documents.reading import Document
from resourcesync.errors import ConfigurationError, DocumentError, NotAListError, SourceError
from resourcesync.model.capabilities import CapabilityEntry, Part
from resourcesync.model.vocabulary import Capability, Dialect, Relation

_MAX_SETS: Final = 1_000
_MAX_HOPS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """What discovery found.

    Attributes:
        entry: The document that answered first, after redirects.
        dialect: How that document is written.
        description: The Source Description, if there is one.
        capability_list: The Capability List of the set, if there is one.
        resource_list: The Resource List, its index, or a plain sitemap; ``None`` if there is none.
        change_list: The Change List or its index; ``None`` if there is none.
        is_sitemap: Whether ``resource_list`` is a plain sitemap: it promises less.
        resource_dump: The Resource Dump or its index; ``None`` if there is none.
        change_dump: The Change Dump or its index; ``None`` if there is none.
    """

    entry: str
    dialect: Dialect
    description: str | None = None
    capability_list: str | None = None
    resource_list: str | None = None
    change_list: str | None = None
    is_sitemap: bool = False
    resource_dump: str | None = None
    change_dump: str | None = None


def discover(documents: Documents, address: str) -> Discovered:
    """Return the lists of the Source at ``address``; `Search.find` says where they are looked for.

    Args:
        documents: Gets documents.
        address: Any absolute http or https URI of the Source.

    Raises:
        SourceNotFoundError: Nothing usable was found; the evidence lists what was tried.
        SourceUnavailableError: The Source does not answer now.
        SourceRefusedError: It refuses to answer.
        ConfigurationError: The address is no http or https URI, or offers several sets.
    """
    return _Interpreter(documents).find(address)


def discover_locally(documents: Documents, path: str) -> Discovered:
    """Return the lists that a local document leads to, as `discover` does for an address.

    Raises:
        SourceError: A document is not there.
        DocumentError: A document cannot be used.
        StorageError: A document cannot be read.
        ConfigurationError: It offers several sets.
    """
    return _Interpreter(documents).find_locally(path)


class _Interpreter:
    """Goes from the first document to the lists, up and down."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._search = Search(documents)

    def find(self, address: str) -> Discovered:
        return self._search.find(address, self._begin)

    def find_locally(self, path: str) -> Discovered:
        return use_first(self._documents, path, self._begin, self._search)

    def _begin(self, document: Document, fetched: FetchedDocument) -> Discovered:
        return self._interpret(document, fetched, hops=0)

    def _interpret(self, document: Document, fetched: FetchedDocument, *, hops: int) -> Discovered:
        found = Discovered(entry=fetched.final_uri, dialect=document.dialect)
        uri = fetched.uri
        match document.header.capability:
            case None:
                return replace(found, resource_list=uri, is_sitemap=True)
            case Capability.DESCRIPTION:
                return self._from_description(document, replace(found, description=uri), hops)
            case Capability.CAPABILITY_LIST:
                return _from_capability_list(document, replace(found, capability_list=uri))
            case Capability.RESOURCE_LIST:
                found = replace(found, resource_list=self._head(document, uri))
            case Capability.CHANGE_LIST:
                found = replace(found, change_list=self._head(document, uri))
            case other:
                return self._beside(document, found, other.phrase)
        return self._climb(document, found)

    def _beside(self, document: Document, found: Discovered, phrase: str) -> Discovered:
        """Climb from a dump, manifest, archive or notification to the lists of its set."""
        climbed = self._climb(document, found)
        if climbed.resource_list is None and climbed.change_list is None:
            raise NotAListError(f"this {phrase} leads to no list", uri=document.uri)
        return climbed

    def _head(self, document: Document, uri: str) -> str:
        index = document.header.link(Relation.INDEX)
        return uri if index is None else urljoin(document.uri, index)

    def _climb(self, document: Document, found: Discovered) -> Discovered:
        """From a list up to its Capability List, which knows the other lists (§6.2)."""
        up = document.header.link(Relation.UP)
        if up is None:
            return found
        try:
            with fetch(self._documents, urljoin(document.uri, up)) as fetched:
                above = fetched.open()
                if above.header.capability is not Capability.CAPABILITY_LIST:
                    return found
                whole = _from_capability_list(above, replace(found, capability_list=fetched.uri))
        except (SourceError, DocumentError) as error:
            self._search.note(up, error)
            return found
        return whole

    def _from_description(self, document: Document, found: Discovered, hops: int) -> Discovered:
        sets = [urljoin(document.uri, entry) for entry in _targets(document)]
        if not sets:
            raise NotAListError("this Source Description lists nothing", uri=document.uri)
        if document.header.is_index and hops < _MAX_HOPS:
            inner = [self._follow(uri, hops + 1) for uri in sets]
            sets = [one.capability_list for one in inner if one.capability_list is not None]
        if len(set(sets)) != 1:
            raise ConfigurationError(
                f"this Source offers {len(set(sets))} sets of resources",
                evidence=tuple(("set", uri) for uri in dict.fromkeys(sets)),
                hint="give the address of one of these Capability Lists instead",
                code="several-sets",
            )
        inner_found = self._follow(sets[0], hops + 1)
        return replace(inner_found, entry=found.entry, description=found.description)

    def _follow(self, uri: str, hops: int) -> Discovered:
        if hops > _MAX_HOPS:
            raise NotAListError("descriptions that point to descriptions, too deep", uri=uri)
        with fetch(self._documents, uri) as fetched:
            return self._interpret(fetched.open(), fetched, hops=hops)


def _targets(document: Document) -> list[str]:
    targets: list[str] = []
    for entry in document.entries():
        if isinstance(entry, CapabilityEntry | Part):
            targets.append(entry.uri)
        if len(targets) >= _MAX_SETS:
            break
    return targets


def _from_capability_list(document: Document, found: Discovered) -> Discovered:
    lists: dict[Capability, str] = {}
    for entry in document.entries():
        if isinstance(entry, CapabilityEntry) and entry.capability is not None:
            lists.setdefault(entry.capability, urljoin(document.uri, entry.uri))
    resource_list = lists.get(Capability.RESOURCE_LIST, found.resource_list)
    change_list = lists.get(Capability.CHANGE_LIST, found.change_list)
    resource_dump = lists.get(Capability.RESOURCE_DUMP, found.resource_dump)
    change_dump = lists.get(Capability.CHANGE_DUMP, found.change_dump)
    if not (resource_list or change_list or resource_dump or change_dump):
        raise NotAListError(
            "this Capability List offers neither a list nor a dump of resources or changes",
            uri=document.uri,
        )
    up = document.header.link(Relation.UP)
    return replace(
        found,
        description=found.description or (urljoin(document.uri, up) if up else None),
        resource_list=resource_list,
        change_list=change_list,
        resource_dump=resource_dump,
        change_dump=change_dump,
    )
