"""Push for a Destination: subscriptions of many mirrors, their callbacks, and the hints."""

import fcntl
import logging
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random, SystemRandom
from typing import Final, Self, final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.adapters.http import CurlFetcher, FetchSettings
from resourcesync.app import mirror_home
from resourcesync.app.fetchers import fetch_settings, origin_of
from resourcesync.app.serving.hubs import DIRECT, MessageRoute, new_token, open_messenger
from resourcesync.destination.sync_state import SyncState
from resourcesync.discovery.document_fetcher import DocumentFetcher
from resourcesync.errors import ConfigurationError, LockedError, ResourceSyncError, StorageError
from resourcesync.own_files import LOCK, open_path
from resourcesync.ports import Clock, FetchRequest, Outcomes
from resourcesync.push_state.rows import ChannelSubscription
from resourcesync.push_state.stores import FileFollowers
from resourcesync.server.dashboard.views import PushStatus
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.server.websub import CallbackApplication
from resourcesync.settings.mirror import Network
from resourcesync.websub.channels import FoundChannels, find_channels
from resourcesync.websub.subscriber import Subscriber
from resourcesync.websub.subscription_status import SubscriptionReport

_LOG: Final = logging.getLogger(__name__)

_HINT_EVERY: Final = 0.2
_DISCOVERY_INTERVAL: Final = 86_400.0
_PAUSE: Final = 5.0


@contextmanager
def open_followers(path: Path) -> Iterator[FileFollowers]:
    """Open the file with the subscriptions of one configuration, for one running service alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive_lock(path.with_suffix(".lock")), closing(FileFollowers(path)) as store:
        yield store


@contextmanager
def _exclusive_lock(path: Path) -> Iterator[None]:
    try:
        lock = open_path(path, LOCK)
    except OSError as error:
        raise StorageError(f"cannot open {path}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise LockedError(
            "another `watch` is running with this configuration",
            evidence=(("got", str(path)),),
            hint="end it, or use another folder of state: --state DIR",
        ) from error
    except OSError:  # without locks everything else still works
        _LOG.warning("cannot lock %s", path)
    try:
        yield
    finally:
        os.close(lock)


@final
class PushSubscriptions:
    """Subscribes mirrors to the channels of their Sources, for as long as the block runs."""

    def __init__(
        self,
        *,
        callback: str,
        listen: tuple[str, int],
        state: Path,
        on_hint: Callable[[str], None],
        clock: Clock,
    ) -> None:
        origin_of(callback)
        if "?" in callback or "#" in callback:
            raise ConfigurationError(
                f"{callback[:200]!r} cannot be a callback",
                hint="write https://HOST/push/, without ? and #",
            )
        self._clock = clock
        self._bell = threading.Event()
        self._held = ExitStack()
        self._store = self._held.enter_context(open_followers(state))
        self._messenger = _HubMessenger(clock)
        self._subscriber = Subscriber(
            self._store,
            self._messenger,
            clock,
            callback_base=callback,
            on_hint=on_hint,
            token=new_token,
            chance=SystemRandom().random,
            wake=self._bell.set,
            hint_every=_HINT_EVERY,
        )
        application = _PrefixApplication(
            urlsplit(callback).path, CallbackApplication(self._subscriber)
        )
        self._server = ServerThread(application, host=listen[0], port=listen[1])
        self._is_over = False
        self._thread = threading.Thread(target=self._tick, name="resourcesync-push", daemon=True)
        self._looked: dict[str, float] = {}
        self._waiting: deque[tuple[str, Path, Network]] = deque()
        self._wanted: frozenset[str] = frozenset()

    @property
    def counts(self) -> dict[str, int]:
        """Number of messages, by outcome."""
        return dict(self._subscriber.counts)

    @property
    def version(self) -> int:
        """Counter that grows when ``standings`` may have changed."""
        return self._subscriber.ledger.version

    def standings(self) -> list[SubscriptionReport]:
        """Return the state of all subscriptions."""
        return self._subscriber.reports()

    def statuses(self) -> dict[str, PushStatus]:
        """Return the push status of each mirror."""
        found: dict[str, list[SubscriptionReport]] = {name: [] for name in self._wanted}
        for standing in self.standings():
            found.setdefault(standing.mirror, []).append(standing)
        return {
            name: PushStatus(subscriptions=tuple(theirs), is_known=name in self._looked)
            for name, theirs in found.items()
        }

    def __enter__(self) -> Self:
        self._server.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over = True
        self._bell.set()
        self._thread.join()
        self._server.__exit__(*exception)
        self._held.close()

    def retain(self, networks: Mapping[str, tuple[str, Network]]) -> None:
        """End the subscriptions of all other mirrors."""
        self._wanted = frozenset(networks)
        self._messenger.use(
            {name: fetch_settings(network, source) for name, (source, network) in networks.items()}
        )
        for name in self._looked.keys() - networks.keys():
            self._looked.pop(name, None)  # so that a mirror that returns is looked up again
        for name in {
            subscription.name for subscription in self._store.subscriptions()
        } - networks.keys():
            self._subscriber.leave(name)
        self._bell.set()

    def follow_soon(self, name: str, folder: Path, network: Network) -> None:
        """Follow a mirror that exists, on the thread of the subscriptions."""
        self._waiting.append((name, folder, network))
        self._bell.set()

    def follow(self, name: str, folder: Path, network: Network) -> None:
        """Subscribe a mirror to its Source's channels; they are looked up once a day.

        After an incomplete answer they are looked up again after the next pull. Nothing is looked
        up before the first one.
        """
        now = self._clock.monotonic()
        last = self._looked.get(name)
        if last is not None and now - last < _DISCOVERY_INTERVAL:
            return
        found = [self._channels(path, network) for path in mirror_home.pulled_mirrors(folder)]
        if not found:
            return
        is_all = all(channels.is_complete for channels in found)
        if is_all:
            self._looked[name] = now
        channels = [channel for channels in found for channel in channels.channels]
        self._subscriber.follow(name, channels, is_all=is_all)
        self._bell.set()

    def _channels(self, folder: Path, network: Network) -> FoundChannels:
        with mirror_home.open_state(folder) as state:
            memory = SyncState(state)
            found, identity = memory.discovered, memory.identity
        if found is None or identity is None:
            return FoundChannels([], is_complete=False)  # its first pull goes on, or failed
        addresses = [name for name in (found.capability_list, found.description) if name]
        settings = fetch_settings(network, identity.source)
        dice = Random()  # noqa: S311 - jitter
        with closing(CurlFetcher(settings, self._clock, dice)) as fetcher:
            return find_channels(DocumentFetcher(fetcher, tempfile.TemporaryFile), addresses)

    def _tick(self) -> None:
        while not self._is_over:
            try:
                while self._waiting and not self._is_over:
                    self.follow(*self._waiting.popleft())
                pause = self._subscriber.tick()
            except ResourceSyncError as error:  # such as a full disk; polling goes on in any case
                _LOG.warning("push: %s", error)
                pause = _PAUSE
            except Exception:  # noqa: BLE001 - a fault of ours must not end all renewals
                _LOG.exception("push")
                pause = _PAUSE
            self._bell.wait(pause)
            self._bell.clear()


@final
class _HubMessenger:
    """Sends messages to hubs as the mirrors that they are for send requests; none stays open."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.use({})

    def use(self, settings: Mapping[str, FetchSettings]) -> None:
        found = settings.items()
        self._routes = {name: MessageRoute(one.ca_file, one.proxies) for name, one in found}
        self._trusted = frozenset[str]().union(*(one.trusted_origins for _, one in found))

    def fetch(self, requests: Mapping[FetchRequest, ChannelSubscription]) -> Outcomes:
        """Send messages, those with the same route together; on one thread."""
        left = {it: self._routes.get(of.name, DIRECT) for it, of in requests.items()}
        while left:
            route = next(iter(left.values()))
            sender = open_messenger(self._clock, trusted=self._trusted, route=route)
            with closing(sender):
                yield from sender.fetch([it for it in left if left[it] == route])
            left = {it: of for it, of in left.items() if of != route}


@final
class _PrefixApplication:
    """Answers below the path of the callbacks, and at the root: proxies may remove the path."""

    def __init__(self, path: str, application: ASGIApp) -> None:
        self._path = path.rstrip("/")
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path", "").startswith(f"{self._path}/"):
            scope = {**scope, "root_path": self._path}
        await self._application(scope, receive, send)
