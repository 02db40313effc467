"""Dumps of a tree whose lists are being published."""

from typing import Final

import msgspec

from resourcesync.documents.packages.planning import PackageSize
from resourcesync.errors import ConfigurationError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import Dialect
from resourcesync.ports.originals import ResourceContents
from resourcesync.ports.second_process import SecondProcess
from resourcesync.source.dumps.dump_publisher import DumpOutcome, DumpPublisher
from resourcesync.source.foreign_documents import refuse_foreign_dumps
from resourcesync.source.naming import SourceNaming
from resourcesync.source.open_source import OpenSource

_MOST_ENTRIES: Final = 10_000
"""Most files of one package: a change of one file must not repack all small files."""
_SECOND: Final = 1_000_000
_DIALECTS: Final = frozenset({Dialect.V1_1, Dialect.V1_0})


class DumpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the dumps.

    ``may_fork``: a copy of this process may pack some of the packages. A program that embeds the
    library has reasons not to be copied.
    """

    resources: bool = True
    changes: bool = False
    may_fork: bool = False


def dump(
    asked: DumpRequest,
    source: OpenSource,
    contents: ResourceContents,
    second: SecondProcess | None = None,
) -> DumpOutcome:
    """Pack everything that is not packed yet; a second process packs every other package."""
    settings, clock = source.settings, source.clock
    if settings.dialect not in _DIALECTS:
        raise ConfigurationError(
            f"dumps are written in version 1.1, and the lists here in {settings.dialect}",
            hint="leave the dumps out, or publish in version 1.1: -o dialect=1.1",
        )
    refuse_foreign_dumps(source.catalogue, source.documents)
    oldest = 0
    if settings.keep:
        oldest = to_microseconds(clock.now()) - int(settings.keep * _SECOND)
    return DumpPublisher(
        source.catalogue,
        source.documents,
        contents,
        names=SourceNaming(base_uri=settings.url),
        clock=clock,
        size=PackageSize(
            max_bytes=settings.max_package or PackageSize().max_bytes,
            max_entries=min(_MOST_ENTRIES, settings.max_entries),
        ),
        limits=settings,
        archive=int(settings.archive * _SECOND),
        second=second,
    ).publish(resources=asked.resources, changes=asked.changes, oldest=oldest)
