"""A published folder: a Source."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Unpack

from resourcesync.api.settings import PublisherOptions, publisher_settings
from resourcesync.errors import ConfigurationError
from resourcesync.source.document_writer import WrittenDocument
from resourcesync.source.plan import PublicationStep
from resourcesync.source.scan import LeftFile
from resourcesync.wiring import documents, machine, publishing, serving


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What publishing found and did.

    Attributes:
        url: The address that the folder is published for.
        files: Files that are published.
        bytes: Their bytes.
        created: New resources.
        updated: Resources with new bytes.
        deleted: Resources that are gone.
        written: The documents that were written, in this order; none when nothing changed, and
            none in a dry run.
        first: Whether nothing had been published from this folder before.
        left: Files that could not be read, or changed while they were read, the first 100: they
            are published as before.
        omitted: Files that are there and cannot be published.
        dry_run: Whether nothing was written on purpose.
    """

    url: str
    files: int
    bytes: int
    created: int
    updated: int
    deleted: int
    written: tuple[WrittenDocument, ...]
    first: bool
    left: tuple[LeftFile, ...]
    omitted: int
    dry_run: bool


def publication_summary(done: publishing.PublicationResult) -> Published:
    """Return what publishing found and did, as programs are told of it."""
    found, made = done.scan, done.publication
    return Published(
        url=done.settings.url,
        files=found.files,
        bytes=found.bytes,
        created=found.created,
        updated=found.updated,
        deleted=found.deleted,
        written=made.written,
        first=made.first,
        left=found.left,
        omitted=found.omitted,
        dry_run=done.dry_run,
    )


class Publisher:
    """A folder that is published: a Source.

    The documents are written so that readers find a consistent set at every moment, also when the
    program is killed. Call `publish` again whenever the folder changed.

    Args:
        folder: The folder.
        **options: See `PublisherOptions`; remembered with the folder.
    """

    def __init__(self, folder: str | os.PathLike[str], **options: Unpack[PublisherOptions]) -> None:
        self.folder = Path(folder)
        self._chosen = publisher_settings(options)
        out = str(self._chosen.get("out", ""))
        self._out = Path(out) if out and not documents.is_store(out) else None
        if out:
            self._chosen["out"] = documents.out_setting(self.folder, out)
        if self._chosen.get("versions_in"):
            place = Path(str(self._chosen["versions_in"]))
            self._chosen["versions_in"] = documents.out_setting(self.folder, place)

    def __repr__(self) -> str:
        return f"Publisher({os.fspath(self.folder)!r})"

    def publish(
        self,
        *,
        step: Literal["due", "initialise", "update", "rebase"] = "due",
        dry_run: bool = False,
        allow_empty: bool = False,
    ) -> Published:
        """Publish the folder, or bring what was published in step with it.

        Args:
            step: ``due`` does what is due; ``initialise`` starts over with a Resource List,
                ``update`` lists the changes, ``rebase`` also writes a new Resource List.
            dry_run: Look and compare, write nothing.
            allow_empty: Publish a folder without files: everything is deleted then.

        Raises:
            ConfigurationError: There is no such folder, no address is known, an option cannot
                work, a file that is not ours stands where a document is to go, or the folder is
                empty.
            StorageError: The folder cannot be read, or a document cannot be written; of these,
                LockedError: another run is publishing this folder.
        """
        if step not in list(PublicationStep):
            raise ConfigurationError(
                f"step={step!r} is unknown", hint=f"one of {', '.join(PublicationStep)}"
            )
        asked = publishing.PublishRequest(
            step=PublicationStep(step), dry_run=dry_run, allow_empty=allow_empty
        )
        done = publishing.publish_tree(
            self.folder, self._chosen, clock=machine.system_clock(), asked=asked
        )
        return publication_summary(done)

    def application(self) -> serving.Application:
        """Return an ASGI application that serves the folder and its documents.

        Mount it in Starlette, FastAPI or Django, at the address that the folder is published for.

        Raises:
            ConfigurationError: The folder was not published yet.
            DocumentError: Its Source Description cannot be read.
            StorageError: The same, because of the disk.
        """
        return serving.find_tree(self.folder, self._out).application(machine.system_clock())
