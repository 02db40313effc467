"""Publication of a tree that is open: scan, dumps, lists and notices; and a dry run of it."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.ports import Clock
from resourcesync.ports.documents import DocumentStore
from resourcesync.ports.originals import Omission, Originals, ResourceContents
from resourcesync.settings.publication import NOTE, PublicationSettings
from resourcesync.source import naming
from resourcesync.source.clock_guard import check_clock
from resourcesync.source.naming import CHANNELS, SourceNaming
from resourcesync.source.plan import read_plan
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from resourcesync.source.publisher import ListPublisher, Publication
from resourcesync.source.scan import scan
from resourcesync.source.versions.version_retention import TreeVersions

if TYPE_CHECKING:
    from resourcesync.source.dumps.dump_publication import DumpOptions, DumpRequest
    from resourcesync.source.dumps.dump_publisher import DumpOutcome
    from resourcesync.source.notifications import NoticeSender, Notified

REREAD_NOTE: Final = "publish.reread"
"""Note of the files that were read again, though they looked unchanged."""
_SHOWN_OMISSIONS: Final = 20


class OpenTree(msgspec.Struct, frozen=True, kw_only=True):
    """A tree that is open, and everything that its publication needs.

    Attributes:
        settings: The settings in force.
        documents: The place of its documents.
        contents: Opens the bytes of resources.
        versions: Retains former versions.
        publisher: Writes the lists.
        reread: The files that are read again this time, though they look unchanged, as a note.
        dump_options: Returns the options of dumps.
        write_robots: Writes ``robots.txt`` with the address of a sitemap.
        sender: Returns what sends notices to hubs.
    """

    settings: PublicationSettings
    catalogue: SourceCatalogue
    documents: DocumentStore
    originals: Originals
    contents: AbstractContextManager[ResourceContents]
    versions: TreeVersions
    publisher: ListPublisher
    reread: str
    dump_options: "Callable[[DumpRequest], DumpOptions]"
    write_robots: Callable[[str], None]
    sender: "Callable[[], NoticeSender]"


class TreePublication:
    """The publication of a tree that is open."""

    def __init__(self, tree: OpenTree, clock: Clock) -> None:
        self._tree = tree
        self._clock = clock

    def publish(self, asked: PublishRequest, *, anew: bool) -> PublicationResult:
        """Scan the tree; unless in a dry run, write the changes."""
        tree, now = self._tree, self._clock.now()
        step = check_clock(tree.catalogue, now, asked.step)
        found = scan(
            tree.originals,
            tree.catalogue,
            now,
            anew=anew,
            allow_empty=asked.allow_empty,
            settle=tree.versions.flush,
        )
        done, dumped, notified = Publication(), None, None
        if not asked.dry_run:
            note = msgspec.json.encode(tree.settings).decode()
            tree.catalogue.write_notes({NOTE: note, REREAD_NOTE: tree.reread})
            try:
                dumped = self._dump(asked.dumps)
            finally:  # the lists are published even if something could not be packed
                done = tree.publisher.publish(step, anew=anew, now=now)
            tree.versions.conclude(packed=asked.dumps is not None and asked.dumps.changes)
            notified = self._notify()
        omissions = (*tree.originals.omissions(), *self._among_documents())
        return PublicationResult(
            settings=tree.settings,
            scan=replace(found, omitted=len(omissions)),
            publication=done,
            omissions=tuple(islice(filter(_is_reported, omissions), _SHOWN_OMISSIONS)),
            omitted_for=Counter(omission.reason for omission in omissions),
            dry_run=asked.dry_run,
            dumped=dumped,
            retained=tree.versions.counts,
            notified=notified,
        )

    def _among_documents(self) -> Iterator[Omission]:
        """Yield the files of the tree that are not published because documents are beside them."""
        if self._tree.settings.out == ".":
            for name in self._tree.documents.names():
                if not naming.is_document(name):
                    yield Omission(name=name, reason="it is in a folder of the documents")

    def _dump(self, asked: "DumpRequest | None") -> "DumpOutcome | None":
        if asked is None:
            return None
        from resourcesync.source.dumps import dump_publication  # noqa: PLC0415 - rarely needed

        tree = self._tree
        plan = read_plan(tree.catalogue)
        packing = tree.dump_options(asked)
        if plan is not None and plan.base_uri != SourceNaming(base_uri=tree.settings.url).base_uri:
            # Lists that start over do not continue older dumps.
            tree.publisher.publish()
        with tree.contents as bytes_of:
            return dump_publication.dump(
                asked, packing, tree.catalogue, tree.documents, bytes_of, self._clock
            )

    def _notify(self) -> "Notified | None":
        """Notify robots and hubs of the publication."""
        tree, settings = self._tree, self._tree.settings
        if settings.robots:
            tree.write_robots(tree.publisher.sitemap_uri)
        if not settings.hubs:
            for name in CHANNELS.values():  # no document names them any more
                if tree.documents.signature(name) is not None:
                    tree.documents.delete(name)
            return None
        from resourcesync.source import notifications  # noqa: PLC0415 - few have hubs

        return notifications.notify_after(
            tree.catalogue, tree.documents, settings, self._clock, tree.sender()
        )


def _is_reported(omission: Omission) -> bool:
    """True if an omission is reported: hidden files are not."""
    name = omission.name.rstrip("/").rpartition("/")[2]
    is_hidden = name.startswith(".") and name not in {".", ".."}
    return not is_hidden and not name.endswith("~")
