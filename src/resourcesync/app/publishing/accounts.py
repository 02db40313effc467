"""Publication of other systems (accounts) by way of a catalogue, and posting to them.

Entries that cannot be published are counted and left out.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.app.document_access import open_fetcher
from resourcesync.app.publishing import catalogues, trees
from resourcesync.app.publishing.account_access import (
    check_account_address,
    encode_values,
    initial_notes,
    open_account,
    read_values,
    resolve_values,
)
from resourcesync.app.publishing.mending import mending
from resourcesync.errors import ConfigurationError, quoted
from resourcesync.ports import Clock
from resourcesync.ports.accounts import AccountOptions, Posted
from resourcesync.ports.cancellation import CancelToken
from resourcesync.settings.network import Network
from resourcesync.settings.publication import CATALOGUE
from resourcesync.source.account_follower import AccountFollower, FollowSettings
from resourcesync.source.plan import PublicationStep
from resourcesync.source.publication_options import PublicationResult, PublishRequest

_PAUSE_SHARE: Final = 4
"""Announced changes wait so many times as long as the last publication took."""
_SHORTEST_PAUSE: Final = 1.0


class FollowedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """The settings for following an account.

    Attributes:
        address: Address of the other system.
        values: Values for its adapter: ``KEY=VALUE``, with ``env:NAME`` and ``file:PATH``.
        out: The folder for the documents; the catalogue is there too.
        store: The address of the store that the documents go to instead; empty for none.
        read_again: Seconds between two full reads of all resources, whatever changes came
            meanwhile; ``None`` is the usual time.
        network: Settings for requests over http.
    """

    address: str
    values: Mapping[str, str]
    out: Path
    store: str = ""
    read_again: float | None = None
    network: Network = msgspec.field(default_factory=Network)


def publish_account(
    followed: FollowedAccount, chosen: Mapping[str, object], *, clock: Clock, asked: PublishRequest
) -> PublicationResult:
    """Update our catalogue from another system, and publish it."""
    with _open_follower(followed, chosen, clock, asked) as follower:
        return follower.publish(follower.synchronize(allow_empty=asked.allow_empty), asked)


def publish_continuously(
    followed: FollowedAccount,
    chosen: Mapping[str, object],
    *,
    clock: Clock,
    asked: PublishRequest,
    every: float,
) -> Iterator[PublicationResult]:
    """Publish, follow the changes, and publish them, again and again.

    This never ends by itself. What changes all the time is published while changes still
    come. Changes that the other system announces are published at once, unless
    the last publication has just ended.
    """
    with _open_follower(followed, chosen, clock, asked) as follower:
        counts = follower.synchronize(allow_empty=asked.allow_empty, most=every)
        while True:
            began = clock.monotonic()
            done = follower.publish(counts, asked)
            seconds = clock.monotonic() - began
            yield replace(done, seconds=seconds)
            asked = replace(asked, step=PublicationStep.DUE)
            soonest = max(seconds * _PAUSE_SHARE, _SHORTEST_PAUSE)
            counts = _follow(follower, clock, every, soonest, asked)


def _follow(
    follower: AccountFollower,
    clock: Clock,
    every: float,
    soonest: float,
    asked: PublishRequest,
) -> Posted:
    """Record changes until the next publication; return what was recorded."""
    began = clock.monotonic()
    counts = follower.follow(every, allow_empty=asked.allow_empty)
    is_woken = follower.is_prompt and clock.monotonic() < began + every
    until = began + (min(soonest, every) if is_woken else every)
    clock.sleep(max(0.0, until - clock.monotonic()))
    if not is_woken:
        return counts
    return follower.follow_rest(counts, every, allow_empty=asked.allow_empty)


def _check_url(url: str, followed: FollowedAccount) -> None:
    if not url:
        raise ConfigurationError(
            "the address of the resources is not known yet",
            hint="publish it with its address on the Web: "
            f"resourcesync publish {quoted(followed.address, 'DIR')} --url https://HOST/"
            f" --out {quoted(followed.out, 'FOLDER')}",
        )
    trees.check_address(url)


@contextmanager
def _open_follower(
    followed: FollowedAccount, chosen: Mapping[str, object], clock: Clock, asked: PublishRequest
) -> Iterator[AccountFollower]:
    check_account_address(followed.address)
    if asked.dry_run:
        raise ConfigurationError("another system is recorded while it is read: there is no dry run")
    path = followed.out / CATALOGUE
    with mending(path, clock, asked), ExitStack() as stack:
        catalogue = stack.enter_context(catalogues.open_catalogue(path)) if path.is_file() else None
        known_url, known_values = ("", {}) if catalogue is None else read_values(catalogue)
        url = str(chosen.get("url") or known_url)
        _check_url(url, followed)
        followed = replace(followed, values=followed.values or known_values)
        options = AccountOptions(
            address=followed.address,
            base_uri=url if url.endswith("/") else f"{url}/",
            values=resolve_values(followed.values),
            memory=str(path.parent / "account"),
            out=str(followed.out),
            clock=clock,
            fetcher=partial(open_fetcher, network=followed.network, cancel=CancelToken(clock)),
            allow_empty=asked.allow_empty,
        )
        account = stack.enter_context(open_account(options))
        if catalogue is None:
            catalogue = stack.enter_context(catalogues.open_catalogue(path))
        if not known_url:  # stored even if the first run fails
            catalogue.write_notes(initial_notes(url, followed.values))
        settings = FollowSettings(
            address=followed.address,
            base_uri=options.base_uri,
            values=encode_values(followed.values),
            read_again=followed.read_again,
        )
        out, chosen = followed.store or followed.out, {**chosen, "url": url}

        def publish(request: PublishRequest) -> PublicationResult:
            return catalogues.publish(path, out, chosen, clock=clock, asked=request)

        yield AccountFollower(settings, account, catalogue, publish, clock)
