"""Other systems (accounts): their options, and their publication by way of a catalogue."""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.app import plugins
from resourcesync.app.fetchers import open_fetcher
from resourcesync.app.publishing import catalogues, trees
from resourcesync.app.publishing.mending import mending
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.errors import ConfigurationError, damaged_note_error
from resourcesync.ports import CancelToken, Clock
from resourcesync.ports.accounts import AccountOptions, Posted, ResourceAccount
from resourcesync.settings import environment
from resourcesync.settings.mirror import Network
from resourcesync.source.account_follower import VALUES_NOTE, AccountFollower
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from resourcesync.source.publication_settings import CATALOGUE, INPUT_NOTE, decode_settings
from resourcesync.source.stored_plan import PublicationStep

_URL_NOTE: Final = "account.url"
_INITIAL_VALUES_NOTE: Final = "account.first-values"
_MAX_BYTES: Final = 64 * 1024
# Text after a user's colon is not a port; a password may contain an unescaped slash.
_DATABASES: Final = frozenset({"postgresql", "postgres"})
_SECRET: Final = re.compile(r"pass|secret|token|api_?key|credential", re.IGNORECASE)
_USER: Final = re.compile(r"[^/?#]*//[^/?#@\[]*:(?![0-9]*(?:[/?#,]|$)).*@", re.DOTALL)
_PARAMETER: Final = re.compile(r"(?:^|[?&\s:])(?:ssl)?password\s*=", re.IGNORECASE)
_PAUSE_SHARE: Final = 4
"""Announced changes wait so many times as long as the last publication took."""
_SHORTEST_PAUSE: Final = 1.0


class FollowedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """The settings for following an account; ``read_again`` is in seconds."""

    address: str
    values: Mapping[str, str]
    """The settings of its adapter, with ``env:NAME`` and ``file:PATH``."""
    out: Path
    """The folder for the catalogue, and for the documents, if no store is named."""
    store: str = ""
    read_again: float | None = None
    network: Network = msgspec.field(default_factory=Network)


def publish_account(
    followed: FollowedAccount, chosen: Mapping[str, object], *, clock: Clock, asked: PublishRequest
) -> PublicationResult:
    """Update our catalogue from another system, and publish it."""
    with _open_follower(followed, chosen, clock, asked) as follower:
        return follower.publish(follower.synchronize(), asked)


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
        counts = follower.synchronize(most=every)
        while True:
            began = clock.monotonic()
            done = follower.publish(counts, asked)
            seconds = clock.monotonic() - began
            yield replace(done, seconds=seconds)
            asked = replace(asked, step=PublicationStep.DUE)
            counts = _follow(follower, clock, every, max(seconds * _PAUSE_SHARE, _SHORTEST_PAUSE))


def _follow(follower: AccountFollower, clock: Clock, every: float, soonest: float) -> Posted:
    """Record changes until the next publication; return what was recorded."""
    began = clock.monotonic()
    counts = follower.follow(every)
    is_woken = follower.is_prompt and clock.monotonic() < began + every
    until = began + (min(soonest, every) if is_woken else every)
    clock.sleep(max(0.0, until - clock.monotonic()))
    return follower.follow_rest(counts, every) if is_woken else counts


@contextmanager
def _open_follower(
    followed: FollowedAccount, chosen: Mapping[str, object], clock: Clock, asked: PublishRequest
) -> Iterator[AccountFollower]:
    check_account_address(followed.address)
    catalogues.refuse_dry_run(asked, "another system is recorded while it is read")
    path = followed.out / CATALOGUE
    with mending(path, clock, asked), ExitStack() as stack:
        catalogue = stack.enter_context(catalogues.open_catalogue(path)) if path.is_file() else None
        known_url, known_values = ("", {}) if catalogue is None else read_values(catalogue)
        url = _address_of(followed, str(chosen.get("url") or known_url))
        followed = replace(followed, values=followed.values or known_values)
        options = AccountOptions(
            address=followed.address,
            base_uri=url if url.endswith("/") else f"{url}/",
            values={key: _resolve_value(key, text) for key, text in followed.values.items()},
            memory=str(path.parent / "account"),
            out=str(followed.out),
            clock=clock,
            fetcher=partial(open_fetcher, network=followed.network, cancel=CancelToken(clock)),
            allow_empty=asked.allow_empty,
        )
        opened = plugins.open_plugin(plugins.ACCOUNTS, options.address.partition(":")[0], options)
        account: ResourceAccount = stack.enter_context(opened)
        if catalogue is None:
            catalogue = stack.enter_context(catalogues.open_catalogue(path))
        if not known_url:  # stored even if the first run fails
            values = encode_values(followed.values)
            catalogue.write_notes({_URL_NOTE: url, _INITIAL_VALUES_NOTE: values})
        out, chosen = followed.store or followed.out, {**chosen, "url": url}
        yield AccountFollower(
            options,
            account,
            catalogue,
            lambda request: catalogues.publish(path, out, chosen, clock=clock, asked=request),
            values=encode_values(followed.values),
            read_again=followed.read_again,
        )


def _address_of(followed: FollowedAccount, url: str) -> str:
    if not url:
        raise trees.unknown_address_error(followed.address, followed.out)
    trees.check_address(url)
    return url


def check_account_address(address: str) -> None:
    """Refuse an address with a secret in it, before anything is reported or stored of it."""
    if _USER.match(address) or _PARAMETER.search(address):
        scheme = address.partition(":")[0]
        hint = (
            "give the user and the password as options: --with user=NAME --with password=env:NAME,"
            " or --auth NAME (over http)"
        )
        if scheme in _DATABASES:  # libpq has the user in its address
            hint = (
                f"write {scheme}://HOST/DATABASE?user=NAME, and the password as an option:"
                " --with password=env:NAME"
            )
        raise ConfigurationError(
            f"{scheme}: an address must not contain a secret: it is shown and stored", hint=hint
        )


def _resolve_value(key: str, value: str) -> str:
    kind, colon, place = value.partition(":")
    if not colon or kind not in {"env", "file"}:
        return value
    found = environment.variable(place) if kind == "env" else _read_value_file(key, place)
    if not found:
        raise ConfigurationError(f"{key}={value}: it is not set or empty")
    return found


def _read_value_file(key: str, place: str) -> str:
    try:
        with Path(place).expanduser().open("rb") as stream:
            return stream.read(_MAX_BYTES).decode().strip()
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"{key}=file:{place} cannot be read: {reason}") from None


def encode_values(values: Mapping[str, str]) -> str:
    """Return values as text to store: a secret only by its place."""
    stored = {
        key: value
        for key, value in values.items()
        if not _SECRET.search(key) or value.startswith(("env:", "file:"))
    }
    return msgspec.json.encode(stored, order="sorted").decode()


def read_values(catalogue: SourceCatalogue) -> tuple[str, dict[str, str]]:
    """Return a catalogue's stored values: the Source's address, empty for none, and its options."""
    text = catalogue.note(VALUES_NOTE) or catalogue.note(_INITIAL_VALUES_NOTE) or "{}"
    try:
        values = msgspec.json.decode(text, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise damaged_note_error("options", error) from error
    url = decode_settings(catalogue.note(INPUT_NOTE)).url
    return url or catalogue.note(_URL_NOTE) or "", values
