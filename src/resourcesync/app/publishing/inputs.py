"""Inputs of a publication: a folder, a catalogue, lines, a mirror, a bucket, another system.

A folder can be watched, and published after each change, when a step is due, and every few hours.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import force_setattr, replace

from resourcesync.app import document_stores, plugins, source_status
from resourcesync.app.publishing import originals, trees
from resourcesync.errors import ConfigurationError, LockedError, ResourceSyncError, StorageError
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.ports import Clock
from resourcesync.settings.mirror import Network
from resourcesync.source.naming import is_sitemap
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from resourcesync.source.publication_settings import (
    CATALOGUE,
    CATALOGUE_SCHEME,
    LINES_SCHEME,
    MIRROR_SCHEME,
)
from resourcesync.source.stored_plan import PublicationStep

if TYPE_CHECKING:
    from resourcesync.adapters.folder_watcher import FolderWatcher
    from resourcesync.app.publishing.accounts import FollowedAccount

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]+):(//)?")
FILE_WRITING_SCHEME: Final = "oai:"
"""Prefix of systems whose adapter writes files into the folder of the documents."""
RETRY_SECONDS: Final = 2.0
"""Seconds before the first retry after a failure; each further pause is twice as long."""
_MAX_RETRY_SECONDS: Final = 300.0

OnPublished = Callable[[PublicationResult], None]
OnFailed = Callable[[ResourceSyncError, float], None]


class InputKind(Enum):
    """A kind of what is published."""

    FOLDER = "folder"
    ORIGINALS = "object store"
    CATALOGUE = "catalogue"
    LINES = "lines of JSON"
    MIRROR = "mirror"
    SYSTEM = "other system"


def kind_of(target: str) -> InputKind:
    """Return the kind of a folder, or of the address of another input."""
    if target.startswith(CATALOGUE_SCHEME):
        return InputKind.CATALOGUE
    if target.startswith(LINES_SCHEME):
        return InputKind.LINES
    if ":" in target:
        if originals.is_originals_address(target):
            return InputKind.ORIGINALS
        if plugins.is_account_address(target):
            return InputKind.SYSTEM
    if not os.path.lexists(f"{target}/{OWN_FOLDER}/state.db"):
        return InputKind.FOLDER
    from resourcesync.app.serving.published_tree import is_aggregated  # noqa: PLC0415 - rarely

    return InputKind.MIRROR if is_aggregated(Path(target)) else InputKind.FOLDER


def default_out(target: str) -> Path | None:
    """Return the default folder of the documents of an input; ``None``: it must be named."""
    folder = Path(target)
    if target.startswith(MIRROR_SCHEME):
        from resourcesync.app.publishing import aggregator  # noqa: PLC0415 - rarely

        folder = aggregator.folder_of(target)
    elif kind_of(target) is not InputKind.MIRROR:
        return None
    from resourcesync.app.serving.published_tree import PUBLICATION  # noqa: PLC0415 - rarely

    return folder.absolute() / PUBLICATION


_FOLLOWED: Final = frozenset({InputKind.MIRROR, InputKind.SYSTEM})


class PublishedPlaces(NamedTuple):
    """The catalogue of an input, and the folder that places in its settings are relative to."""

    catalogue: Path
    root: Path


def places_of(target: str, out: Path | str | None, state: Path | None) -> PublishedPlaces:
    """Return the places of an input; neither may exist yet."""
    kind = kind_of(target)
    if kind is InputKind.FOLDER:
        return PublishedPlaces((state or Path(target)) / CATALOGUE, Path(target))
    if kind is InputKind.CATALOGUE:
        catalogue = Path(target.removeprefix(CATALOGUE_SCHEME))
        return PublishedPlaces(catalogue, catalogue.parent)
    takes_state = kind is InputKind.ORIGINALS or (isinstance(out, str) and kind in _FOLLOWED)
    home = state if state and takes_state else out or default_out(target)
    if not isinstance(home, Path):
        lacking = "--state" if takes_state and home else "--out"
        raise ConfigurationError(f"{target} needs {lacking}: a folder for its catalogue")
    catalogue = home / CATALOGUE
    return PublishedPlaces(catalogue, home if kind is InputKind.ORIGINALS else catalogue.parent)


class PublishedInput(msgspec.Struct, frozen=True, kw_only=True):
    """What is published, with the settings that were given; the others are as the last time."""

    target: str
    chosen: Mapping[str, object] = {}
    out: Path | str | None = None
    versions_in: Path | str | None = None
    state: Path | None = None
    """The folder for the catalogue, if it is not at its usual place."""
    values: Mapping[str, str] = {}
    read_again: float | None = None
    """Seconds between two full readings of all resources."""
    network: Callable[[], Network] = Network

    def __post_init__(self) -> None:
        """Note where the folder of the site is now: the settings have it from their catalogue."""
        if site := self.chosen.get("site"):
            force_setattr(self, "chosen", {**self.chosen, "site": os.path.abspath(str(site))})  # noqa: PTH100 - a Path keeps what is left of ".."

    @property
    def usual_interval(self) -> float:
        """Seconds between two publications of another system that is watched."""
        return 3_600.0 if self.target.startswith(FILE_WRITING_SCHEME) else 60.0

    @property
    def places(self) -> PublishedPlaces:
        """Its catalogue, and the folder that places in its settings are relative to."""
        return places_of(self.target, self.out, self.state)

    def publish(self, clock: Clock, asked: PublishRequest) -> PublicationResult:
        """Publish, or update what was published."""
        began = clock.monotonic()
        try:
            done = self._publish(clock, asked)
        except BaseException as error:
            self._record(error, clock, asked)
            raise
        done = replace(done, seconds=clock.monotonic() - began)
        self._record(done, clock, asked)
        return done

    def _record(
        self, ended: PublicationResult | BaseException, clock: Clock, asked: PublishRequest
    ) -> None:
        if not (asked.dry_run or isinstance(ended, LockedError)):
            with suppress(ConfigurationError):  # there is no place for it
                source_status.record_run(self.places.catalogue, ended, clock.now())

    def _publish(self, clock: Clock, asked: PublishRequest) -> PublicationResult:
        kind = kind_of(self.target)
        if kind is InputKind.FOLDER:
            return trees.publish_tree(
                self._root, self._tree_settings(), clock=clock, asked=asked, state=self.state
            )
        if asked.dumps is not None:
            raise ConfigurationError(f"--dumps is only for folders; {self.target} is not a folder")
        if kind is InputKind.ORIGINALS:
            return self._publish_originals(clock, asked)
        from resourcesync.app.publishing import accounts, catalogues  # noqa: PLC0415 - as needed

        if kind is InputKind.CATALOGUE:
            path = Path(self.target.removeprefix(CATALOGUE_SCHEME))
            return catalogues.publish(path, self.out, self.chosen, clock=clock, asked=asked)
        if kind is InputKind.LINES:
            lines = self.target.removeprefix(LINES_SCHEME)
            return catalogues.publish_lines(
                lines, self.places.root.parent, self.chosen, clock=clock, asked=asked
            )
        return accounts.publish_account(self._followed(), self.chosen, clock=clock, asked=asked)

    def watch(
        self,
        clock: Clock,
        asked: PublishRequest,
        every: float,
        on_begin: Callable[[], None],
        on_published: OnPublished,
        on_failed: OnFailed,
    ) -> None:
        """Publish again and again; this never ends by itself.

        A failure after the first publication is reported and retried: the service is unattended.
        """
        kind = kind_of(self.target)

        def published(done: PublicationResult) -> None:
            self._record(done, clock, asked)
            on_published(done)

        def failed(error: ResourceSyncError, pause: float) -> None:
            self._record(error, clock, asked)
            on_failed(error, pause)

        if kind in {InputKind.CATALOGUE, InputKind.LINES, InputKind.ORIGINALS}:
            hint = "use cron" if kind is InputKind.ORIGINALS else "publish after each post"
            raise ConfigurationError("--watch is only for folders and other systems", hint=hint)
        if kind is not InputKind.FOLDER:
            on_begin()
            self._follow(clock, asked, every, published, failed)
            return
        pace = WatchIntervals()
        if self.read_again is not None:
            pace = replace(pace, rescan=self.read_again)
        loop = PublishLoop(self._root, clock, pace, published, failed, self.state)
        with loop.watcher() as watcher:
            on_begin()
            loop.run(watcher.wait, self._tree_settings(), asked)

    def _follow(
        self,
        clock: Clock,
        asked: PublishRequest,
        every: float,
        on_published: OnPublished,
        on_failed: OnFailed,
    ) -> None:
        from resourcesync.app.publishing import accounts  # noqa: PLC0415 - as needed

        followed, failures, is_first = self._followed(), 0, True
        while True:
            try:
                for done in accounts.publish_continuously(
                    followed, self.chosen, clock=clock, asked=asked, every=every
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

    @property
    def _root(self) -> Path:
        target = self.target
        if target.startswith(("http://", "https://")):
            raise ConfigurationError(
                f"{target} is an address, not a folder",
                hint=f"resourcesync publish DIR --url {target}",
            )
        scheme = _SCHEME.match(target)
        if scheme is not None and not os.path.lexists(target):
            plugins.find(plugins.ORIGINALS if scheme[2] else plugins.ACCOUNTS, scheme[1])
        try:
            if Path(target).is_file():
                raise ConfigurationError(f"{target} is a file", hint="name the folder to publish")
        except (OSError, ValueError):
            raise ConfigurationError(f"{target[:200]!r} is not a folder") from None
        return Path(target)

    def _tree_settings(self) -> dict[str, object]:
        places = {"out": self.out, "versions_in": self.versions_in}
        return {
            **self.chosen,
            **{
                name: document_stores.out_setting(Path(self.target), place)
                for name, place in places.items()
                if place is not None
            },
        }

    def _publish_originals(self, clock: Clock, asked: PublishRequest) -> PublicationResult:
        root = self.places.root
        chosen = {**self.chosen, "originals": self.target.rstrip("/")}
        if self.out is not None:
            chosen["out"] = document_stores.out_setting(root, self.out)
        if self.values:
            chosen["originals_with"] = tuple(sorted(self.values.items()))
        with _created_folder(root):
            return trees.publish_tree(root, chosen, clock=clock, asked=asked)

    def _followed(self) -> "FollowedAccount":
        from resourcesync.app.publishing import accounts  # noqa: PLC0415 - as needed

        if "hashes" in self.chosen:
            raise ConfigurationError(
                "`hash` is only for folders: another system has its own digests"
            )
        values, address = dict(self.values), self.target
        out, store = self.places.root.parent, self.out if isinstance(self.out, str) else ""
        if store and address.startswith(FILE_WRITING_SCHEME):
            raise ConfigurationError(
                f"{address} writes files beside its documents: --out must be a folder",
                hint="use --out DIR and copy it: lists before the documents that link to them",
            )
        if kind_of(address) is InputKind.MIRROR:
            address = f"{MIRROR_SCHEME}{Path(address).absolute()}"
        if address.startswith(MIRROR_SCHEME) and "hops" not in values:
            from resourcesync.app.publishing import aggregator  # noqa: PLC0415 - rarely

            values["hops"] = aggregator.hop_mode(out, self.chosen)
        return accounts.FollowedAccount(
            address=address,
            values=values,
            out=out,
            store=store,
            read_again=self.read_again,
            network=self.network(),
        )


@contextmanager
def _created_folder(folder: Path) -> Iterator[None]:
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


class WatchIntervals(msgspec.Struct, frozen=True, kw_only=True):
    """The intervals between scans, in seconds."""

    rescan: float = 4 * 3_600
    quiet: float = 5
    """To a second scan: files in a new folder may have come before the folder was watched."""
    share: float = 4
    """Seconds to pause, from ``least`` to ``most``, for each second that a run took."""
    least: float = 1
    most: float = 60
    retry: float = 2
    """After a failed run; each further failure doubles it, up to ``most``."""


class PublishLoop:
    """Publishes a tree at once, and again after each change or when a step is due.

    A hint leads to a scan of the whole tree. A failure after the first run is retried.
    """

    def __init__(
        self,
        root: Path,
        clock: Clock,
        pace: WatchIntervals,
        on_published: OnPublished,
        on_failed: OnFailed,
        state: Path | None = None,
    ) -> None:
        self._root, self._state = root, state
        self._top = os.path.join(os.path.realpath(root), "")  # noqa: PTH118 - a prefix of texts
        self._clock = clock
        self._pace = pace
        self._on_published = on_published
        self._on_failed = on_failed
        self._ours: tuple[str, ...] = ("resourcesync",)
        self._rest = 0.0
        self._next = 0.0

    def watcher(self) -> "FolderWatcher":
        """Watch the tree, except hidden files and our own documents."""
        from resourcesync.adapters.folder_watcher import FolderWatcher  # noqa: PLC0415 - rarely

        return FolderWatcher(Path(self._top), self.is_ours)

    def run(
        self, wait: Callable[[float], bool], chosen: Mapping[str, object], asked: PublishRequest
    ) -> None:
        """Publish, wait for a hint of `watcher` or some seconds, and so on; this never ends."""
        self._publish(chosen, asked)
        failures, catalogue = 0, (self._state or self._root) / CATALOGUE
        while True:
            self._wait(wait)
            try:
                if not catalogue.exists():
                    text = f"there is no catalogue {catalogue}"
                    raise StorageError(text, hint="mount its disk, or restore it")
                self._publish({}, replace(asked, step=PublicationStep.DUE))
            except ResourceSyncError as error:
                pause = min(self._pace.retry * 2.0 ** min(failures, 16), self._pace.most)
                failures += 1
                self._rest, self._next = pause, 0.0
                self._on_failed(error, pause)
            else:
                failures = 0

    def is_ours(self, path: str) -> bool:
        """True if a file of the tree is hidden, or is one of our own documents."""
        name = path.removeprefix(self._top)
        return (
            name.startswith((".", *(f"{our}/" for our in self._ours)))
            or "/." in name
            or name in self._ours
            or is_sitemap(name)
        )

    def _publish(self, chosen: Mapping[str, object], asked: PublishRequest) -> None:
        began = self._clock.monotonic()
        done = trees.publish_tree(
            self._root, chosen, clock=self._clock, asked=asked, state=self._state
        )
        ended = self._clock.monotonic()
        remaining = max((ended - began) * self._pace.share, self._pace.least)
        self._rest = min(remaining, self._pace.most)
        self._next = ended + self._poll_seconds(done)
        outs = map(os.path.normpath, (done.settings.out, *done.settings.earlier))
        self._ours = tuple("resourcesync" if out == "." else out for out in outs)
        self._on_published(replace(done, seconds=ended - began))

    def _wait(self, wait: Callable[[float], bool]) -> None:
        self._clock.sleep(self._rest)
        self._rest = 0.0
        while (left := self._next - self._clock.monotonic()) > 0:
            if wait(left):
                return

    def _poll_seconds(self, done: PublicationResult) -> float:
        if done.scan.changing or done.publication.written:
            return self._pace.quiet
        if done.notified is not None and (done.notified.problems or done.notified.error):
            return self._pace.most
        ages = (done.settings.rotate, done.settings.rebase_every)
        return min([self._pace.rescan, *(max(age, self._pace.most) for age in ages if age)])
