"""A catalogue that a program of its own keeps: a Source without a folder."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from resourcesync.api.publisher import Published, publication_summary
from resourcesync.api.settings import PublisherOptions, publisher_settings
from resourcesync.model.resources import Change, Resource
from resourcesync.ports.catalogue import Posted
from resourcesync.wiring import catalogues, machine
from resourcesync.wiring.publishing import PublishRequest


class Catalogue:
    """What a program tells of its resources, and what became of them.

    Whoever changes a resource posts the change; `publish` then writes the lists from what was
    posted, and looks at no file. Several programs may post at a time, also while it is published.

    Args:
        file: The catalogue, an SQLite file; it is made with the first post.
    """

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.file = Path(file)

    def __repr__(self) -> str:
        return f"Catalogue({os.fspath(self.file)!r})"

    def post(self, changes: Iterable[Change]) -> Posted:
        """Record what became of some resources, in order, all or nothing.

        The time of each change is given by the catalogue, and rises strictly. What is told twice
        does no harm: a creation of what is known is an update, an update of what is not known a
        creation, and a deletion of what is not known nothing.

        Args:
            changes: The changes; ``time`` is not looked at.

        Raises:
            ConfigurationError: A URI cannot be published, or it is the catalogue of a folder.
            StorageError: It could not be recorded; nothing was.
        """
        with catalogues.open_catalogue(self.file) as catalogue:
            told = (_check_change(change) for change in changes)
            return catalogue.post(told, machine.system_clock().now())

    def fill(self, resources: Iterable[Resource], *, is_all: bool = True) -> Posted:
        """Record the resources as they are, in any order, all or nothing.

        Args:
            resources: The resources, each once.
            is_all: Whether known resources that are not among them are gone.

        Raises:
            ConfigurationError: As `post` says.
            StorageError: It could not be recorded, or a resource is told twice; nothing was.
        """
        now = machine.system_clock().now()
        with catalogues.open_catalogue(self.file) as catalogue:
            return catalogue.fill(map(catalogues.check_resource, resources), now, is_all=is_all)

    def resources(self) -> Iterator[Resource]:
        """Yield the resources in URI order.

        Raises:
            ConfigurationError: There is no such catalogue.
            StorageError: It cannot be read.
        """
        return catalogues.read_resources(self.file)

    def changes(self, after: int = 0) -> Iterator[tuple[int, Change]]:
        """Yield ``(number, change)`` in order of time, those after number ``after``.

        Changes that no list has any more are forgotten; 0 begins with the oldest that is there.

        Raises:
            ConfigurationError: There is no such catalogue.
            DiscontinuityError: Some of those after ``after`` are forgotten: read `resources`.
            StorageError: It cannot be read.
        """
        return catalogues.read_changes(self.file, after)

    def publish(self, **options: Unpack[PublisherOptions]) -> Published:
        """Write the lists, or bring them in step with the catalogue.

        Args:
            **options: See `PublisherOptions`; ``url`` and ``out`` are needed the first time, and
                all are remembered with the catalogue.

        Raises:
            ConfigurationError: There is no such catalogue, ``url`` or ``out`` is not known, or an
                option cannot work.
            StorageError: It cannot be read, or a document cannot be written; of these,
                LockedError: another run is publishing it.
        """
        chosen = publisher_settings(options)
        out = Path(str(chosen.pop("out"))) if "out" in chosen else None
        done = catalogues.publish(
            self.file, out, chosen, clock=machine.system_clock(), asked=PublishRequest()
        )
        made = done.publication
        return replace(
            publication_summary(done),
            created=made.created,
            updated=made.updated,
            deleted=made.deleted,
        )


def _check_change(change: Change) -> Change:
    catalogues.check_resource(change.resource)
    return change
