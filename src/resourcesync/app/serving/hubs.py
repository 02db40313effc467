"""The hubs of a published Source: the one that its server mounts, and the notices to all."""

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from random import SystemRandom
from typing import Final, NamedTuple

from resourcesync.adapters.http import CurlFetcher, FetchSettings
from resourcesync.adapters.http.settings import ProxyRules
from resourcesync.app import document_stores
from resourcesync.app.fetchers import proxy_rules
from resourcesync.app.serving.published_tree import any_settings
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import ConfigurationError, StorageError, quoted
from resourcesync.own_files import NEW, open_path, read_file
from resourcesync.ports import Clock
from resourcesync.push_state.stores import FileHub
from resourcesync.server.websub import HubApplication
from resourcesync.settings import environment
from resourcesync.settings.mirror import Network
from resourcesync.source import naming, notifications, publication_settings
from resourcesync.source.naming import SourceNaming
from resourcesync.source.publisher import OpenSource
from resourcesync.websub.delivery import Deliveries
from resourcesync.websub.hub import HubRules
from resourcesync.websub.messages import link_field
from resourcesync.websub.notices import Notice, NoticeOutcome, send_notices

_TIMEOUT: Final = 10.0
_CONNECT: Final = 5.0
_VERIFICATIONS: Final = 16
_TOKEN_BYTES: Final = 32
KEY_FILE: Final = "push.key"
"""Key beside the catalogue that signs submissions to the hub of the same tree."""
_LONGEST_KEY: Final = 4096


class MessageRoute(NamedTuple):
    """The authorities that messages trust, those of the environment if ``None``, and proxies."""

    ca_file: str | None = None
    proxies: ProxyRules = ProxyRules()


DIRECT: Final = MessageRoute()


def open_messenger(
    clock: Clock,
    *,
    jobs: int = 16,
    per_host: int = 8,
    private: bool = False,
    trusted: frozenset[str] = frozenset(),
    route: MessageRoute = DIRECT,
) -> CurlFetcher:
    """Return the messenger of a hub: each message is tried once, within ten seconds."""
    settings = FetchSettings(
        ca_file=environment.ca_file() if route.ca_file is None else route.ca_file,
        proxies=route.proxies,
        jobs=jobs,
        per_host=per_host,
        first_window=per_host,
        timeout=_TIMEOUT,
        deadline=_TIMEOUT,
        connect_timeout=_CONNECT,
        retries=0,
        max_wait=_CONNECT,
        robots="ignore",
        allow_private="always" if private else "auto",
        trusted_origins=trusted,
    )
    return CurlFetcher(settings, clock, SystemRandom())


def notice_sender(clock: Clock, folder: Path) -> notifications.NoticeSender:
    """Return what sends the notices of a Source to its hubs."""

    def send(notices: Sequence[Notice]) -> Sequence[NoticeOutcome]:
        key = read_key(folder)
        # The operator chose the hub, so it may be on this machine.
        route = MessageRoute(proxies=proxy_rules(Network()))
        with closing(open_messenger(clock, private=True, route=route)) as messenger:
            return send_notices(messenger, notices, key)

    return send


def read_key(folder: Path, *, makes: bool = False) -> bytes:
    """Return the key of a tree's own hub; empty when there is none."""
    path = folder / KEY_FILE
    try:
        if makes and not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            _make_key(path)
        return read_file(path, _LONGEST_KEY).strip()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error


def _make_key(path: Path) -> None:
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    descriptor = open_path(draft, NEW)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(new_token().encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()


def new_token() -> str:
    """Return an unguessable text of 256 bits."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def open_hub(
    path: Path, rules: Callable[[], HubRules], clock: Clock, *, private: bool = False
) -> HubApplication:
    """Open a hub that is ready to be mounted."""
    store = FileHub(path)
    deliveries = Deliveries(store, clock, rules, chance=SystemRandom().random, challenge=new_token)
    limits = rules()
    jobs = limits.at_once + limits.at_once // 2 + _VERIFICATIONS
    messenger = open_messenger(clock, jobs=jobs, per_host=limits.per_host, private=private)
    return HubApplication(store, clock, rules, deliveries, messenger, messenger.close)


def notify_published(catalogue: Path, root: Path, clock: Clock) -> notifications.Notified:
    """Notify the hubs of a Source of new publications; its places are relative to ``root``."""
    if not catalogue.is_file():
        raise ConfigurationError(
            f"{root} is not published",
            hint="publish it first: "
            f"resourcesync publish {quoted(root, 'DIR')} --url https://HOST/",
        )
    settings = any_settings(catalogue)
    if not settings.hubs:
        raise ConfigurationError(
            f"{root} has no hub",
            hint="publish it with the address of a hub: "
            f"resourcesync publish {quoted(root, 'DIR')} --hub https://HOST/hub",
        )
    documents = document_stores.documents_at(root, settings.out)
    with closing(SourceCatalogue(catalogue, clock)) as opened:
        source = OpenSource(catalogue=opened, documents=documents, settings=settings, clock=clock)
        return notifications.notify(source, notice_sender(clock, catalogue.parent))


HUB_STORE: Final = "hub.db"
"""Database beside the catalogue: subscriptions and pending deliveries."""


def names_at(settings: publication_settings.PublicationSettings, base: str) -> SourceNaming:
    """Return the addresses of a tree that is served at this one."""
    return settings.names if settings.site else SourceNaming(base_uri=base)


def open_own_hub(
    root: Path, base: Callable[[], str], clock: Clock, *, private: bool = False
) -> HubApplication:
    """Open the hub of a tree; publications of the tree sign their submissions from now on."""
    first = base()
    address = _own_address(root, first)
    if not address:
        raise ConfigurationError(
            f"the lists of {root} name no hub at this address",
            hint="publish it with the address of this hub: "
            f"resourcesync publish {quoted(root, 'DIR')} --hub {first}hub -o notify=true",
        )
    folder = (root / publication_settings.CATALOGUE).parent
    key = read_key(folder, makes=True)

    @lru_cache(maxsize=1)
    def rules_at(present: str) -> HubRules:
        names = names_at(any_settings(root / publication_settings.CATALOGUE), present)
        return HubRules(
            address=_own_address(root, present) or address,
            topics=frozenset(map(names.uri, naming.CHANNELS.values())),
            key=key,
            plain_secrets=private,
        )

    hub = open_hub(folder / HUB_STORE, lambda: rules_at(base()), clock, private=private)
    hub.path = "/" + address.removeprefix(first).strip("/")
    return hub


def _own_address(root: Path, base: str) -> str:
    below = (
        name
        for name in any_settings(root / publication_settings.CATALOGUE).hubs
        if name.startswith(base) and "?" not in name
    )
    return next((name for name in below if len(name) > len(base)), "")


def channel_links(served: Sequence[str], names: SourceNaming) -> Callable[[str], Sequence[str]]:
    """Return the function for the ``Link`` fields of topics: ``self`` and ``hub`` (WebSub §4)."""
    fields = {
        os.path.basename(name): (link_field(names.uri(name), served),)  # noqa: PTH119 - of a URI
        for name in naming.CHANNELS.values()
        if served
    }

    def links(path: str) -> Sequence[str]:
        folder, _, name = path.rpartition("/")
        return fields.get(name, ()) if folder.endswith("resourcesync") else ()

    return links
