"""The channels of a published Source, and the hub that the server mounts beside it."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from resourcesync.app import hubs, machine
from resourcesync.app.hubs import OpenHub
from resourcesync.app.publishing import document_stores
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.catalogue.reader import read_note
from resourcesync.errors import ConfigurationError, quoted
from resourcesync.ports import Clock
from resourcesync.ports.documents import DocumentStore
from resourcesync.source import naming, notifications
from resourcesync.source.naming import SourceNaming
from resourcesync.source.notifications import Notified
from resourcesync.source.publication_options import read_settings
from resourcesync.source.publication_settings import (
    CATALOGUE,
    INPUT_NOTE,
    NOTE,
    PublicationSettings,
    decode_settings,
)
from resourcesync.websub.hub import HubRules
from resourcesync.websub.messages import link_field


class Channels(msgspec.Struct, frozen=True, kw_only=True):
    """The channels of a published Source."""

    catalogue: SourceCatalogue
    documents: DocumentStore
    settings: PublicationSettings
    folder: Path

    def notify(self, clock: Clock) -> Notified:
        """Notify its hubs of new publications; see ``notify``."""
        send = hubs.notice_sender(clock, self.folder)
        return notifications.notify(self.catalogue, self.documents, self.settings, clock, send)


@contextlib.contextmanager
def open_channels(source: Path, *, is_catalogue: bool = False) -> Iterator[Channels]:
    """Open the channels of a Source."""
    path, note = source / CATALOGUE, NOTE
    if is_catalogue:
        path, note = Path(str(source).partition(":")[2]), INPUT_NOTE
    if not path.is_file():
        raise ConfigurationError(
            f"{source} is not published",
            hint="publish it first: "
            f"resourcesync publish {quoted(source, 'DIR')} --url https://HOST/",
        )
    clock = machine.system_clock()
    with contextlib.closing(SourceCatalogue(path, clock)) as catalogue:
        settings = read_settings(catalogue, note)
        if not settings.hubs:
            raise ConfigurationError(
                f"{source} has no hub",
                hint="publish it with the address of a hub: "
                f"resourcesync publish {quoted(source, 'DIR')} --hub https://HOST/hub",
            )
        out = path.parent if is_catalogue else source
        yield Channels(
            catalogue=catalogue,
            documents=document_stores.documents_at(out, settings.out),
            settings=settings,
            folder=path.parent,
        )


HUB_STORE: Final = "hub.db"
"""Database beside the catalogue: subscriptions and pending deliveries."""


class OwnHub(msgspec.Struct, frozen=True, kw_only=True):
    """A hub, and its mount path."""

    path: str
    hub: OpenHub


def hubs_of(root: Path) -> tuple[str, ...]:
    """Return the hubs in the documents of a tree, or in those of another system's entries."""
    path = root / CATALOGUE
    text = read_note(path, NOTE)
    return decode_settings(read_note(path, INPUT_NOTE) if text is None else text).hubs


def open_own_hub(
    root: Path, base: Callable[[], str], clock: Clock, *, private: bool = False
) -> OwnHub:
    """Open the hub of a tree; publications of the tree sign their submissions from now on.

    It has the topics of the present address of the tree, and its path stays the same.
    """
    first = base()
    address = _own_address(root, first)
    if not address:
        raise ConfigurationError(
            f"the lists of {root} name no hub at this address",
            hint="publish it with the address of this hub: "
            f"resourcesync publish {quoted(root, 'DIR')} --hub {first}hub -o notify=true",
        )
    folder = (root / CATALOGUE).parent
    key = hubs.read_key(folder, makes=True)

    @lru_cache(maxsize=1)
    def rules_at(present: str) -> HubRules:
        names = SourceNaming(base_uri=present)
        return HubRules(
            address=_own_address(root, present) or address,
            topics=frozenset(map(names.uri, naming.CHANNELS.values())),
            key=key,
            plain_secrets=private,
        )

    hub = hubs.open_hub(folder / HUB_STORE, lambda: rules_at(base()), clock, private=private)
    return OwnHub(path="/" + address.removeprefix(first).strip("/"), hub=hub)


def _own_address(root: Path, base: str) -> str:
    return next((name for name in hubs_of(root) if _is_below(name, base)), "")


def _is_below(address: str, base: str) -> bool:
    return address.startswith(base) and len(address) > len(base) and "?" not in address


def channel_links(root: Path, base: str) -> Callable[[str], Sequence[str]]:
    """Return the function for the ``Link`` fields of topics: ``self`` and ``hub`` (WebSub §4)."""
    served, names = hubs_of(root), SourceNaming(base_uri=base)
    fields = {
        os.path.basename(name): (link_field(names.uri(name), served),)  # noqa: PTH119 - of a URI
        for name in naming.CHANNELS.values()
        if served
    }

    def links(path: str) -> Sequence[str]:
        folder, _, name = path.rpartition("/")
        return fields.get(name, ()) if folder.endswith("resourcesync") else ()

    return links
