"""Sources: a published folder, or a catalogue that a program fills."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Unpack

import msgspec

from resourcesync.adapters.system import SystemClock
from resourcesync.app import document_stores
from resourcesync.app.keywords import publisher_settings
from resourcesync.app.publishing import catalogues
from resourcesync.app.publishing.inputs import PublishedInput
from resourcesync.app.serving import applications
from resourcesync.app.serving.applications import CurrentApplication
from resourcesync.model.entries import Change, Resource
from resourcesync.ports.accounts import Posted
from resourcesync.settings.schema import convert_argument
from resourcesync.source.publication_options import Published, PublishRequest
from resourcesync.source.round_trip import check_own_resource
from resourcesync.source.stored_plan import PublicationStep

if TYPE_CHECKING:
    from resourcesync.app.keyword_types import PublisherOptions


class Publisher:
    """A folder that is published: a Source.

    The documents are written so that readers find a consistent set at every moment, also when the
    program is killed. Call `publish` again whenever the folder changed.

    Args:
        folder: The folder.
        **options: The settings of a publication, remembered with the folder;
            ``help(resourcesync.PublisherOptions)`` explains each.

    Example:
        >>> publisher = Publisher("public", url="https://museum.example/")
        >>> publisher.publish().resources
        2
    """

    def __init__(
        self, folder: str | os.PathLike[str], **options: "Unpack[PublisherOptions]"
    ) -> None:
        self.folder = Path(folder)
        chosen = publisher_settings(options, "Publisher")
        self._input = PublishedInput(
            target=os.fspath(self.folder),
            out=_place(chosen.pop("out", None)),
            versions_in=_place(chosen.pop("versions_in", None)),
            chosen=chosen,
        )

    def __repr__(self) -> str:
        return f"Publisher({os.fspath(self.folder)!r})"

    def publish(
        self,
        *,
        step: Literal["due", "initialise", "update", "rebase"] = "due",
        dry_run: bool = False,
        allow_empty: bool = False,
    ) -> Published:
        """Publish the folder, or update what was published.

        Args:
            step: ``due`` does what is due; ``initialise`` starts over with a Resource List,
                ``update`` lists the changes, ``rebase`` also writes a new Resource List.
            dry_run: Scan and compare, write nothing.
            allow_empty: Publish a folder without files: everything is deleted then.

        Raises:
            ConfigurationError: There is no such folder, no address is known, an option cannot
                work, a foreign file is in the place of a document, or the folder is
                empty.
            StorageError: The folder cannot be read, or a document cannot be written.
            LockedError: Another run is publishing this folder.
        """
        request = PublishRequest(
            step=convert_argument("step", step, PublicationStep),
            dry_run=dry_run,
            allow_empty=allow_empty,
        )
        return self._input.publish(SystemClock(), request).report()

    def application(self) -> CurrentApplication:
        """Return an ASGI application that serves the folder and its documents.

        Mount it in Starlette, FastAPI or Django, at the address that the folder is published for.

        Raises:
            ConfigurationError: The folder was not published yet.
            DocumentError: Its Source Description cannot be read.
            StorageError: The same, because of the disk.
        """
        out = self._input.out
        tree = applications.find_tree(self.folder, out if isinstance(out, Path) else None)
        return tree.application(SystemClock())


def _place(given: object) -> Path | str | None:
    if not given:
        return None
    return str(given) if document_stores.is_store(str(given)) else Path(str(given))


class Catalogue:
    """The resources that a program reports, and their changes.

    A program posts each change of a resource; `publish` then writes the lists from what was
    posted, and reads no file. Several programs may post at a time, also during a publication.

    Args:
        file: The catalogue, an SQLite file; it is made with the first post.

    Example:
        >>> catalogue = Catalogue("catalogue.db")
        >>> jug = Resource("https://museum.example/jug", media_type="text/plain")
        >>> catalogue.fill([jug]).created
        1
        >>> catalogue.publish(url="https://museum.example/", out="lists").resources
        1
    """

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.file = Path(file)

    def __repr__(self) -> str:
        return f"Catalogue({os.fspath(self.file)!r})"

    def post(self, changes: Iterable[Change]) -> Posted:
        """Record changes of some resources, in order, all or nothing.

        The time of each change is given by the catalogue, and rises strictly. Posting a change
        twice does no harm: creating a known resource updates it, updating an unknown one creates
        it, and deleting an unknown one does nothing.

        Args:
            changes: The changes; ``time`` is ignored.

        Raises:
            ConfigurationError: A URI cannot be published, or the catalogue is that of a folder.
            StorageError: It could not be recorded; nothing was.
        """
        with catalogues.open_catalogue(self.file) as catalogue:
            posted = (_check_change(change) for change in changes)
            return catalogue.post(posted, SystemClock().now())

    def fill(
        self, resources: Iterable[Resource], *, is_all: bool = True, allow_empty: bool = False
    ) -> Posted:
        """Record the resources as they are, in any order, all or nothing.

        Args:
            resources: The resources, each once.
            is_all: True if known resources that are not among them are gone.
            allow_empty: True if all are gone when there is no resource; a program that failed
                gives none.

        Raises:
            ConfigurationError: As `post` says; or a resource is given twice; or all would be gone,
                for there is no resource (code ``many-gone``). Nothing was recorded.
            StorageError: It could not be recorded; nothing was.
        """
        now = SystemClock().now()
        with catalogues.open_catalogue(self.file) as catalogue:
            checked = map(check_own_resource, resources)
            return catalogue.fill(checked, now, is_all=is_all, allow_empty=allow_empty)

    def resources(self) -> Iterator[Resource]:
        """Yield the resources in URI order.

        Raises:
            ConfigurationError: There is no such catalogue.
            StorageError: It cannot be read.
        """
        return catalogues.read_resources(self.file)

    def changes(self, after: int = 0) -> Iterator[tuple[int, Change]]:
        """Yield ``(number, change)`` in order of time, those after number ``after``.

        Changes that no list has any more are removed; 0 begins with the oldest that is left. After
        a backup was restored, begin so: its numbers come again.

        Raises:
            ConfigurationError: There is no such catalogue.
            ChangesLostError: Not all after ``after`` are there: read `resources`.
            StorageError: It cannot be read.
        """
        after = convert_argument("after", after, Annotated[int, msgspec.Meta(ge=0)])
        return catalogues.read_changes(self.file, after)

    def publish(self, **options: "Unpack[PublisherOptions]") -> Published:
        """Write the lists, or update them from the catalogue.

        Args:
            **options: See `PublisherOptions`; ``url`` and ``out`` are needed the first time, and
                all are remembered with the catalogue.

        Raises:
            ConfigurationError: There is no such catalogue, ``url`` or ``out`` is not known, or an
                option cannot work.
            StorageError: It cannot be read, or a document cannot be written.
            LockedError: Another run is publishing it.
        """
        chosen = publisher_settings(options, "Catalogue.publish")
        source = PublishedInput(
            target=f"catalogue:{self.file}", out=_place(chosen.pop("out", None)), chosen=chosen
        )
        return source.publish(SystemClock(), PublishRequest()).report()


def _check_change(change: Change) -> Change:
    check_own_resource(change.resource)
    return change
