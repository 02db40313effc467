"""The summary of one examination, for the rules that need several documents."""

from datetime import datetime

import msgspec
from msgspec.structs import asdict, replace

from resourcesync.model.digests import Digest
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import Capability, Dialect
from resourcesync.validator.marks import Marks
from resourcesync.validator.rule import RULES, RuleFinding


class DocumentPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a document: line and column from 1, its length, and its line to be shown."""

    line: int = 0
    column: int = 0
    length: int = 1
    excerpt: str = ""
    excerpt_column: int = 0


class ListedTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A document or package that a document lists.

    ``label`` is its ``capability`` as written, ``contents`` the target of that link of its entry.
    Only packages have a length and the digests that can be checked.
    """

    uri: str
    place: DocumentPlace
    label: str = ""
    capability: Capability | None = None
    at: datetime | None = None
    from_: datetime | None = None
    until: datetime | None = None
    contents: str = ""
    media_type: str = ""
    length: int | None = None
    digests: tuple[Digest, ...] = ()


class ListedResource(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that describes a resource, as far as it could be understood.

    Only the usable digests are here, in lower-case hex; what is text is as written.
    """

    uri: str
    document: str
    place: DocumentPlace
    change: str = ""
    length: int | None = None
    media_type: str = ""
    encoding: str = ""
    hashes: dict[str, str] = msgspec.field(default_factory=dict)
    lastmod: datetime | None = None
    path: str = ""


class DocumentSummary(msgspec.Struct, kw_only=True):
    """The summary of one document; complete once its end was reached.

    ``label`` is its ``capability`` as written, ``place`` that of the root's ``rs:md`` or of the
    root. Marks are 64 bits of each resource's address, and of each change (address, kind, time), in
    the order listed; a change without a time has -1 among ``change_times``, in microseconds since
    1970. Targets are the documents or packages that it lists, or those of a list that lists nothing
    but lists of its kind.
    """

    uri: str
    label: str = ""
    capability: Capability | None = None
    is_index: bool = False
    dialect: Dialect = Dialect.V1_1
    at: datetime | None = None
    completed: datetime | None = None
    from_: datetime | None = None
    until: datetime | None = None
    links: list[tuple[str, str]] = msgspec.field(default_factory=list)
    place: DocumentPlace = msgspec.field(default_factory=DocumentPlace)
    entries: int = 0
    size: int = 0
    complete: bool = False
    targets: list[ListedTarget] = msgspec.field(default_factory=list)
    resources: Marks = msgspec.field(default_factory=Marks)
    changes: Marks = msgspec.field(default_factory=Marks)
    change_times: Marks = msgspec.field(default_factory=Marks)

    def flush(self) -> None:
        """Put the marks away: the document was read to its end."""
        for marks in (self.resources, self.changes, self.change_times):
            marks.flush()

    def link(self, relation: str) -> str | None:
        """Return the target of the first root link of this relation, or ``None``."""
        return next((href for rel, href in self.links if relation in rel.lower().split()), None)

    @property
    def phrase(self) -> str:
        """Name of such a document for people, such as ``Change List Index``."""
        known = "sitemap" if self.capability is None else self.capability.phrase
        name = self.label if self.capability is None and self.label else known
        return f"{name} Index" if self.is_index else name

    def covers(self, time: int) -> bool:
        """True if a time, in microseconds since 1970, lies in this document's interval."""
        if time < 0 or self.from_ is None or time < to_microseconds(self.from_):
            return False
        return self.until is None or time <= to_microseconds(self.until)


def at_root(rule: str, message: str, document: DocumentSummary) -> RuleFinding:
    """Return a finding about a document as a whole."""
    return at_place(rule, message, document.uri, document.place)


def at_target(
    rule: str, message: str, document: DocumentSummary, target: ListedTarget
) -> RuleFinding:
    """Return a finding about one document that a document lists."""
    return at_place(rule, message, document.uri, target.place)


def at_listed(rule: str, message: str, listed: ListedResource) -> RuleFinding:
    """Return a finding about one resource that a document lists."""
    return at_place(rule, message, listed.document, listed.place)


def at_place(rule: str, message: str, uri: str, place: DocumentPlace) -> RuleFinding:
    """Return a finding at a place of a document."""
    where = asdict(replace(place, length=place.length if place.line else 0))
    return RuleFinding(rule=RULES[rule], uri=uri, message=message, **where)


def without_place(rule: str, message: str, uri: str) -> RuleFinding:
    """Return a finding about a resource, a package or a message as a whole."""
    return RuleFinding(rule=RULES[rule], uri=uri, message=message)
