"""Construction of a hub (its application, store and deliveries), and of what notifies hubs."""

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from random import SystemRandom
from typing import Final

import msgspec

from resourcesync.adapters.http import CurlFetcher, FetchSettings
from resourcesync.errors import StorageError
from resourcesync.own_files import NEW, open_path, read_file
from resourcesync.ports import Clock
from resourcesync.push_state.stores import FileHub
from resourcesync.server.metrics import Metric
from resourcesync.server.websub import HubApplication, HubWorker
from resourcesync.source.notifications import NoticeSender
from resourcesync.websub import publisher
from resourcesync.websub.delivery import OUTCOMES, Deliveries
from resourcesync.websub.hub import Hub, HubRules
from resourcesync.websub.publisher import Notice, NoticeOutcome

_TIMEOUT: Final = 10.0
_CONNECT: Final = 5.0
_VERIFICATIONS: Final = 16
_TOKEN_BYTES: Final = 32
KEY_FILE: Final = "push.key"
"""Key beside the catalogue that signs submissions to the hub of the same tree."""
_KEY_BYTES: Final = 32
_LONGEST_KEY: Final = 4096


def open_messenger(
    clock: Clock,
    *,
    jobs: int = 16,
    per_host: int = 8,
    private: bool = False,
    trusted: frozenset[str] = frozenset(),
) -> CurlFetcher:
    """Return the messenger of a hub: each message is tried once, within ten seconds."""
    settings = FetchSettings(
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


def notice_sender(clock: Clock, folder: Path) -> NoticeSender:
    """Return what sends the notices of a Source to its hubs."""

    def send(notices: Sequence[Notice]) -> Sequence[NoticeOutcome]:
        key = read_key(folder)
        # The operator chose the hub, so it may be on this machine.
        with closing(open_messenger(clock, private=True)) as messenger:
            return publisher.send_notices(messenger, notices, key)

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
    """Put a whole key in place at once; the first of two keys stays."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    descriptor = open_path(draft, NEW)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_urlsafe(_KEY_BYTES).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()


def new_token() -> str:
    """Return an unguessable text of 256 bits."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


class OpenHub(msgspec.Struct, frozen=True, kw_only=True):
    """A hub that is ready to be mounted."""

    application: HubApplication
    deliveries: Deliveries
    store: FileHub

    def figures(self) -> Iterator[Metric]:
        """Yield the number of subscriptions, and the outcomes of deliveries and requests."""
        subscribed = float(self.store.count_subscriptions())
        yield Metric(
            name="resourcesync_subscriptions",
            kind="gauge",
            help_text="Subscriptions to the channels of this Source.",
            values=(((), subscribed),),
        )
        yield Metric(
            name="resourcesync_notifications_total",
            kind="counter",
            help_text="Deliveries and subscription requests since the start, by outcome.",
            values=tuple(
                (
                    (("direction", "out"), ("outcome", outcome)),
                    float(self.deliveries.counts[outcome]),
                )
                for outcome in OUTCOMES
            ),
        )


def open_hub(
    path: Path,
    rules: Callable[[], HubRules],
    clock: Clock,
    *,
    private: bool = False,
) -> OpenHub:
    """Open a hub."""
    store = FileHub(path)
    deliveries = Deliveries(store, clock, rules, chance=SystemRandom().random, challenge=new_token)
    limits = rules()
    jobs = limits.at_once + limits.at_once // 2 + _VERIFICATIONS
    messenger = open_messenger(clock, jobs=jobs, per_host=limits.per_host, private=private)
    worker = HubWorker(deliveries, messenger)
    hub = Hub(store, clock, rules, wake=worker.wake)

    def end() -> None:
        messenger.close()
        store.close()

    return OpenHub(application=HubApplication(hub, worker, end), deliveries=deliveries, store=store)
