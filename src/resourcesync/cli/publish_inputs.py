"""The inputs of ``publish`` other than folders: buckets, catalogues, JSON, mirrors, systems."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.output import CommandOutcome
from resourcesync.cli.signals import acknowledge_stop
from resourcesync.errors import ConfigurationError, ResourceSyncError

if TYPE_CHECKING:
    from resourcesync.app.publishing.accounts import FollowedAccount
    from resourcesync.ports import Clock
    from resourcesync.settings.network import Network
    from resourcesync.source.publication_options import PublicationResult, PublishRequest


_SYSTEM_ONLY: Final = ("auth", "proxy", "proxy_auth", "ca_file")


def is_originals_address(target: str) -> bool:
    """True if the target is the address of an object store."""
    if "://" not in target:
        return False
    from resourcesync.app.publishing import originals  # noqa: PLC0415 - help stays quick

    return originals.is_originals_address(target)


def publish_originals(
    target: str, chosen: dict[str, object], asked: "PublishRequest", values: Mapping[str, Any]
) -> "tuple[PublicationResult, Path, float]":
    """Publish the objects of a store once."""
    from resourcesync.app import machine  # noqa: PLC0415
    from resourcesync.app.publishing import document_stores, originals, trees  # noqa: PLC0415

    if values["watch"]:
        raise ConfigurationError("--watch is only for folders and other systems", hint="use cron")
    for name in _SYSTEM_ONLY:
        if values[name]:
            raise ConfigurationError(f"--{name} is only for other systems, not for {target}")
    root = _originals_root(target, values)
    if values["out"] is not None:
        chosen["out"] = document_stores.out_setting(root, values["out"])
    chosen["originals"] = target.rstrip("/")
    if values["with"]:
        chosen["originals_with"] = originals.values_of(dict(values["with"]))
    clock = machine.system_clock()
    started = clock.monotonic()
    with _created_folder(root):
        done = trees.publish_tree(root, chosen, clock=clock, asked=asked)
    return done, root, clock.monotonic() - started


@contextmanager
def _created_folder(folder: Path) -> Iterator[None]:
    """Create a folder for the block; remove it if it is empty at the end, as after a dry run."""
    existed = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot create {folder}: {error.strerror}") from error
    try:
        yield
    finally:
        if not existed:
            with suppress(OSError):
                folder.rmdir()


def _originals_root(target: str, values: Mapping[str, Any]) -> Path:
    """Return the folder of the catalogue: ``--state``, or the folder of the documents."""
    state, out = values["state"], values["out"]
    if state is not None:
        return Path(state)
    if isinstance(out, Path):
        return out
    raise ConfigurationError(
        f"{target} needs a folder for its catalogue",
        hint="--out DIR puts it beside the documents; for documents in a store, add --state DIR",
    )


CATALOGUE: Final = "catalogue:"
"""Prefix of the name of a catalogue."""
LINES: Final = "ndjson:"
MIRROR: Final = "mirror:"
SYSTEM_OPTIONS: Final = ("with", "auth", "proxy", "proxy_auth", "ca_file")
"""Options that are only for other systems, by the names of their values."""
_FILE_WRITING_SCHEME: Final = "oai:"
"""Prefix of systems whose adapter writes files into the folder of the documents."""
RETRY_SECONDS: Final = 2.0
"""Seconds before the first retry after a failure; each further pause is twice as long."""
_MAX_RETRY_SECONDS: Final = 300.0

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]+):(//)?")

OnPublished = Callable[["PublicationResult"], None]
OnFailed = Callable[[ResourceSyncError, float], None]


def is_external(tree: str) -> bool:
    """True if the target is a catalogue, JSON, a mirror or another system, and not a folder."""
    return bool(external_name(tree))


def check_address(tree: str) -> None:
    """Refuse the address of another system with a secret in it, before it is shown or logged."""
    if ":" in tree and not tree.startswith((CATALOGUE, LINES)):
        from resourcesync.app.publishing import account_access, accounts  # noqa: PLC0415 - quick

        if accounts.is_account_address(tree):
            account_access.check_account_address(tree)


def external_name(tree: str) -> str:
    """Return the name of an external input; ``mirror:PATH`` for a mirror, empty for folders."""
    if tree.startswith((CATALOGUE, LINES)):
        return tree
    if ":" in tree:
        from resourcesync.app.publishing import accounts  # noqa: PLC0415 - help stays quick

        if accounts.is_account_address(tree):
            return tree
    if not os.path.lexists(f"{tree}/.resourcesync/state.db"):
        return ""
    from resourcesync.app.publishing.published_tree import is_aggregated  # noqa: PLC0415 - the same

    folder = Path(tree)
    return f"{MIRROR}{folder.absolute()}" if is_aggregated(folder) else ""


def default_out(tree: str) -> Path | None:
    """Return the default folder of the documents; ``None`` if ``--out`` is required."""
    name = external_name(tree)
    if not name.startswith(MIRROR):
        return None
    from resourcesync.app.publishing.mirror_account import folder_of  # noqa: PLC0415 - help stays quick
    from resourcesync.app.publishing.published_tree import PUBLICATION  # noqa: PLC0415 - the same

    return folder_of(name) / PUBLICATION


def check_folder(target: str, values: Mapping[str, Any]) -> None:
    """Refuse a file, and options that are for other systems."""
    for name in SYSTEM_OPTIONS:
        if values[name]:
            raise ConfigurationError(f"--{name} is only for other systems, not for {target}")
    if target.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"{target} is an address, not a folder",
            hint=f"resourcesync publish DIR --url {target}",
        )
    scheme = _SCHEME.match(target)
    if scheme is not None and not os.path.lexists(target):
        from resourcesync.app import plugins  # noqa: PLC0415 - rarely

        plugins.find(plugins.ORIGINALS if scheme[2] else plugins.ACCOUNTS, scheme[1])
    try:
        if Path(target).is_file():
            raise ConfigurationError(f"{target} is a file", hint="name the folder to publish")
    except (OSError, ValueError):
        raise ConfigurationError(f"{target[:200]!r} is not a folder") from None


class ExternalInput(msgspec.Struct, frozen=True, kw_only=True):
    """An external input of ``publish``.

    Attributes:
        name: ``catalogue:FILE``, ``ndjson:FILE``, or the address of another system or a mirror.
        settings: The settings that were given.
        request: The options of this run.
        values: The options of ``publish``.
        network: Returns the network settings for another system.
    """

    name: str
    settings: dict[str, object]
    request: "PublishRequest"
    values: Mapping[str, Any]
    network: "Callable[[], Network]"

    def publish(self) -> "tuple[PublicationResult, Path, float]":
        """Publish once."""
        from resourcesync.app import machine  # noqa: PLC0415 - help stays quick

        clock = machine.system_clock()
        started = clock.monotonic()
        done, root = self._publish(clock)
        return done, root, clock.monotonic() - started

    def follow(self, on_published: OnPublished, on_failed: OnFailed) -> CommandOutcome:
        """Follow another system until a signal; a signal is the normal end.

        A failure after the first publication is reported and retried: the service is unattended.
        """
        if self.name.startswith((CATALOGUE, LINES)):
            raise ConfigurationError(
                "--watch is only for folders and other systems", hint="publish after each post"
            )
        from resourcesync.app import machine  # noqa: PLC0415 - help stays quick

        try:
            self._follow(machine.system_clock(), on_published, on_failed)
        except KeyboardInterrupt as stop:
            acknowledge_stop(stop)
        return CommandOutcome(closing=(TextLine("no longer watched", "Stopped", QUIET),))

    def _publish(self, clock: "Clock") -> "tuple[PublicationResult, Path]":
        from resourcesync.app.publishing import accounts, catalogues  # noqa: PLC0415 - help stays quick

        if self.name.startswith(CATALOGUE):
            self._check_plain()
            path, out = Path(self.name.removeprefix(CATALOGUE)), self.values["out"]
            done = catalogues.publish(path, out, self.settings, clock=clock, asked=self.request)
            return done, path.parent
        if self.name.startswith(LINES):
            self._check_plain()
            out, lines = self._out(), self.name.removeprefix(LINES)
            done = catalogues.publish_lines(
                lines, out, self.settings, clock=clock, asked=self.request
            )
            return done, out / ".resourcesync"
        followed = self._followed()
        done = accounts.publish_account(followed, self.settings, clock=clock, asked=self.request)
        return done, followed.out / ".resourcesync"

    def _follow(self, clock: "Clock", on_published: OnPublished, on_failed: OnFailed) -> None:
        from resourcesync.app.publishing import accounts  # noqa: PLC0415 - help stays quick
        from resourcesync.source.plan import PublicationStep  # noqa: PLC0415 - help stays quick

        followed, asked = self._followed(), self.request
        every, failures, is_first = self.values["every"], 0, True
        while True:
            try:
                for done in accounts.publish_continuously(
                    followed, self.settings, clock=clock, asked=asked, every=every
                ):
                    on_published(done)
                    asked, is_first, failures = replace(asked, step=PublicationStep.DUE), False, 0
            except ResourceSyncError as error:
                if is_first:
                    raise
                pause = min(RETRY_SECONDS * 2.0 ** min(failures, 16), _MAX_RETRY_SECONDS)
                failures += 1
                on_failed(error, pause)
                clock.sleep(pause)

    def _followed(self) -> "FollowedAccount":
        from resourcesync.app.publishing.accounts import FollowedAccount  # noqa: PLC0415 - help stays quick

        if self.values["hash"]:
            raise ConfigurationError(
                "--hash is only for folders: another system has its own digests"
            )
        (out, store), values = self._places(), dict(self.values["with"])
        if self.name.startswith(MIRROR) and "hops" not in values:
            from resourcesync.app.publishing import mirror_account  # noqa: PLC0415 - help stays quick

            values["hops"] = mirror_account.hop_mode(out, self.settings)
        return FollowedAccount(
            address=self.name,
            values=values,
            out=out,
            store=store,
            read_again=self.values["rescan"],
            network=self.network(),
        )

    def _check_plain(self) -> None:
        for name in SYSTEM_OPTIONS:
            if self.values[name]:
                raise ConfigurationError(f"--{name} is only for other systems, not for {self.name}")

    def _places(self) -> tuple[Path, str]:
        """Return the folder of the catalogue, and the store for the documents, if any."""
        store, state = self.values["out"], self.values["state"]
        if not isinstance(store, str):
            return self._out(), ""
        if state is None:
            raise ConfigurationError(
                f"{self.name} needs --state: the folder for its catalogue",
                hint=f"with --out {store}, add: --state DIR",
            )
        if self.name.startswith(_FILE_WRITING_SCHEME):
            raise ConfigurationError(
                f"{self.name} writes files beside its documents: --out must be a folder",
                hint="use --out DIR and copy it: lists before the documents that link to them",
            )
        return Path(state), store

    def _out(self) -> Path:
        out: Path | str | None = self.values["out"] or default_out(self.name)
        if out is None:
            raise ConfigurationError(f"{self.name} needs --out: the folder for the documents")
        if not isinstance(out, Path):
            raise ConfigurationError(
                f"the documents of {self.name} go to a folder, not to {out}",
                hint="publish into a folder and copy it: lists before documents that link to them",
            )
        return out
