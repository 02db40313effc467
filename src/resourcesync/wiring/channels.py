"""The channels of a Source that is published: opened from where it is."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from resourcesync.adapters.catalogue import FileCatalogue
from resourcesync.errors import ConfigurationError
from resourcesync.ports import CatalogueStore, Clock, DocumentStore
from resourcesync.source import naming
from resourcesync.source.naming import SourceNaming
from resourcesync.wiring import catalogues, documents, machine, notifying, publishing
from resourcesync.wiring.notifying import Notified
from resourcesync.wiring.publish_settings import Settings

_PUBLISH_COMMAND: Final = "resourcesync publish DIR --hub https://HOST/hub"


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """The channels of a Source that is published.

    Attributes:
        catalogue: Its catalogue.
        documents: Its documents.
        settings: How it is published.
        folder: Where its key is.
    """

    catalogue: CatalogueStore
    documents: DocumentStore
    settings: Settings
    folder: Path

    def notify(self, clock: Clock) -> Notified:
        """Tell its hubs what was published since; see ``notify``."""
        return notifying.notify(
            self.catalogue, self.documents, self.settings, clock, folder=self.folder
        )

    def last_notification(self) -> tuple[str, bytes]:
        """Return the topic of its changes, and what can be read there.

        Raises:
            ConfigurationError: There is nothing yet.
        """
        stream = self.documents.open(naming.CHANGE_NOTIFICATION)
        if stream is None:
            raise ConfigurationError("this Source has no channel yet", hint=_PUBLISH_COMMAND)
        with contextlib.closing(stream):
            body = stream.read()
        return SourceNaming(base_uri=self.settings.url).uri(naming.CHANGE_NOTIFICATION), body


@contextlib.contextmanager
def open_channels(source: Path, *, is_catalogue: bool = False) -> Iterator[Channels]:
    """Open the channels of a Source.

    Args:
        source: A tree, or what ``publish`` calls a catalogue.
        is_catalogue: Which.

    Raises:
        ConfigurationError: It is not published, or has no hub.
        LockedError: Another run is publishing it.
        StorageError: It cannot be read.
    """
    path, note = source / publishing.CATALOGUE, publishing.NOTE
    if is_catalogue:
        path, note = Path(str(source).partition(":")[2]), catalogues.SETTINGS_NOTE
    if not path.is_file():
        raise ConfigurationError(
            f"{source} is not published", hint=f"resourcesync publish {source} --url URL"
        )
    clock = machine.system_clock()
    with contextlib.closing(FileCatalogue(path, clock)) as catalogue:
        settings = publishing.read_settings(catalogue, note)
        if not settings.hubs:
            raise ConfigurationError(f"{source} has no hub", hint=_PUBLISH_COMMAND)
        out = path.parent if is_catalogue else source
        yield Channels(
            catalogue=catalogue,
            documents=documents.documents_at(out, settings.out),
            settings=settings,
            folder=path.parent,
        )
