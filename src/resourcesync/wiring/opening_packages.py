"""A package is opened, its manifest judged, and its members held against the manifest."""

import hashlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from resourcesync.documents.packages.reading import Member as PackedMember
from resourcesync.documents.packages.reading import PackageReader, open_package
from resourcesync.errors import DocumentError, PackageError, PackedMemberError, VerificationError
from resourcesync.model.resources import Change
from resourcesync.model.vocabulary import Capability
from resourcesync.validator.examining import validate_document
from resourcesync.validator.findings import Finding, by_place
from resourcesync.validator.packages import MANIFEST, Member, judge_package
from resourcesync.validator.rule import Profile
from resourcesync.validator.rules import RULES
from resourcesync.validator.summaries import DocumentSummary, ListedResource
from resourcesync.wiring.sampling import Unreached

ENDINGS: Final = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")
_MANIFEST_FAULTS: Final = frozenset({"manifest-missing", "manifest-duplicate"})


def is_package_name(target: str) -> bool:
    """Whether a file or an address is named as packages are."""
    return target.partition("?")[0].lower().endswith(ENDINGS)


class PackageJudge:
    """Judges one package.

    Args:
        uri: Its address or file.
        profile: By which text its manifest is judged.
        dump: Which kind of dump lists it, when that is known.

    Attributes:
        manifest: What was read of its manifest; ``None`` before, or when there is none.
        members: How many members were read.
    """

    def __init__(self, uri: str, profile: Profile, dump: Capability | None = None) -> None:
        self._uri = uri
        self._profile = profile
        self._dump = dump
        self.manifest: DocumentSummary | None = None
        self.members = 0

    def judge(self, file: BinaryIO) -> Iterator[Finding | Unreached]:
        """Yield what is wrong with the package in a seekable file."""
        try:
            reader = open_package(file, uri=self._uri)
        except PackageError as error:
            if error.code in _MANIFEST_FAULTS:
                yield Finding(rule=RULES["RM01"], uri=self._uri, message=error.message)
            else:
                yield Unreached(uri=self._uri, error=error)
            return
        try:
            yield from self._judge_opened(reader)
        except (DocumentError, PackageError) as error:
            yield Unreached(uri=self._uri, error=error)

    def _judge_opened(self, reader: PackageReader) -> Iterator[Finding]:
        listed: list[ListedResource] = []
        examination = validate_document(
            reader.manifest_chunks(),
            uri=f"{self._uri}#/{MANIFEST}",
            profile=self._profile,
            on_resource=listed.append,
        )
        yield from by_place(examination)
        self.manifest = examination.summary
        found = [Member(name=MANIFEST, length=examination.summary.size)]
        yield from self._members(reader, {it.path: it for it in listed}, found)
        found += [Member(name=name, length=0) for name in reader.unlisted]
        yield from judge_package(self._uri, found, examination.summary, listed, dump=self._dump)

    def _members(
        self, reader: PackageReader, listed: dict[str, ListedResource], found: list[Member]
    ) -> Iterator[Finding]:
        for member in reader.members():
            entry_told = member.entry
            resource = entry_told.resource if isinstance(entry_told, Change) else entry_told
            entry = listed.get(resource.path)
            if member.is_deletion or entry is None:
                continue
            try:
                found.append(_measured(member, entry))
            except PackedMemberError as error:
                if error.code != "member-missing":
                    yield _told(entry, f"{entry.path}: {error.message}")
                    found.append(_as_listed(entry))
            except VerificationError as error:
                said = dict(error.evidence)
                message = (
                    f"{entry.path} has {said.get('got', '')} instead of {said.get('list', '')}"
                )
                yield _told(entry, message)
                found.append(_as_listed(entry))
            self.members += 1


def _measured(member: PackedMember, entry: ListedResource) -> Member:
    digests = {
        name: hashlib.new(name.replace("-", ""), usedforsecurity=False) for name in entry.hashes
    }
    length = 0
    for chunk in member.chunks():
        length += len(chunk)
        for digest in digests.values():
            digest.update(chunk)
    hashes = {name: digest.hexdigest() for name, digest in digests.items()}
    return Member(name=entry.path.lstrip("/"), length=length, hashes=hashes)


def _as_listed(entry: ListedResource) -> Member:
    """Return a member that was judged already: it is there, and no more is said of it."""
    return Member(name=entry.path.lstrip("/"), length=entry.length or 0)


def _told(entry: ListedResource, message: str) -> Finding:
    place = entry.place
    return Finding(
        rule=RULES["RM07"],
        uri=entry.document,
        message=message,
        line=place.line,
        column=place.column,
        length=place.length,
    )
