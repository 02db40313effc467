"""Dumps of a tree whose lists are being published."""

from typing import Final

import msgspec

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.documents.packages.planning import PackageSize
from resourcesync.errors import ConfigurationError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import Dialect
from resourcesync.ports import Clock
from resourcesync.ports.documents import DocumentStore
from resourcesync.ports.originals import ResourceContents
from resourcesync.ports.second_process import SecondProcess
from resourcesync.source.dumps.dump_publisher import DumpOutcome, DumpPublisher
from resourcesync.source.foreign_documents import refuse_foreign_dumps
from resourcesync.source.naming import SourceNaming
from resourcesync.source.paging import PageLimits

DEFAULT_PACKAGE: Final = PackageSize().max_bytes
_MOST_ENTRIES: Final = 10_000
"""Most files of one package: a change of one file must not repack all small files."""
_SECOND: Final = 1_000_000
_DIALECTS: Final = frozenset({Dialect.V1_1, Dialect.V1_0})


class DumpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the dumps.

    Attributes:
        resources: The resources, all of them.
        changes: The changes since the last time.
        may_fork: True if a copy of this process may pack some of the packages. A program that
            embeds the library has reasons not to be copied.
    """

    resources: bool = True
    changes: bool = False
    may_fork: bool = False


class DumpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the dumps.

    Attributes:
        url: The URI of the resources' root.
        max_package: The most bytes of content in one package.
        keep: Greatest age of packages, in seconds; 0 is any age.
        archive: Seconds that superseded dumps stay in archives; 0 is not at all.
        limits: The most that one document holds.
        dialect: The version that is written.
        second: Packs every other package; ``None`` for one after the other.
    """

    url: str
    max_package: int
    keep: float
    archive: float
    limits: PageLimits
    dialect: Dialect
    second: SecondProcess | None = None


def dump(
    asked: DumpRequest,
    packing: DumpOptions,
    catalogue: SourceCatalogue,
    documents: DocumentStore,
    contents: ResourceContents,
    clock: Clock,
) -> DumpOutcome:
    """Pack everything that is not packed yet."""
    if packing.dialect not in _DIALECTS:
        raise ConfigurationError(
            f"dumps are written in version 1.1, and the lists here in {packing.dialect}",
            hint="leave the dumps out, or publish in version 1.1: -o dialect=1.1",
        )
    refuse_foreign_dumps(catalogue, documents)
    oldest = 0
    if packing.keep:
        oldest = to_microseconds(clock.now()) - int(packing.keep * _SECOND)
    return DumpPublisher(
        catalogue,
        documents,
        contents,
        names=SourceNaming(base_uri=packing.url),
        clock=clock,
        size=PackageSize(
            max_bytes=packing.max_package,
            max_entries=min(_MOST_ENTRIES, packing.limits.max_entries),
        ),
        limits=packing.limits,
        archive=int(packing.archive * _SECOND),
        second=packing.second,
    ).publish(resources=asked.resources, changes=asked.changes, oldest=oldest)
