"""Continuous publication: after a change, when a step is due, and every few hours."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from resourcesync.adapters.folder_watcher import FolderWatcher
from resourcesync.app.publishing import document_stores
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.errors import ResourceSyncError
from resourcesync.ports import Clock
from resourcesync.ports.originals import Watcher
from resourcesync.source.naming import is_sitemap
from resourcesync.source.plan import PublicationStep
from resourcesync.source.publication_options import PublicationResult, PublishRequest

OnPublished = Callable[[PublicationResult], None]
OnFailed = Callable[[ResourceSyncError, float], None]


class WatchIntervals(msgspec.Struct, frozen=True, kw_only=True):
    """The intervals between scans, in seconds.

    Attributes:
        rescan: Most seconds between two full scans, for changes without a hint.
        quiet: Seconds from a change to a second scan: files in a new folder may have come before
            the folder was watched.
        share: Seconds to pause for each second that a run took: a large tree is not scanned all
            the time.
        least, most: The shortest and the longest of these pauses.
        retry: Seconds after a failed run; each further failure doubles it, up to ``most``.
    """

    rescan: float = 4 * 3_600
    quiet: float = 5
    share: float = 4
    least: float = 1
    most: float = 60
    retry: float = 2


class PublishLoop:
    """Publishes a tree at once, and again after each change or when a step is due.

    A hint leads to a scan of the whole tree. A failure after the first run is reported and
    retried: the loop runs unattended.
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

    def watcher(self) -> FolderWatcher:
        """Watch the tree, except hidden files and our own documents."""
        return FolderWatcher(Path(self._top), self.is_ours)

    def run(self, watcher: Watcher, chosen: Mapping[str, object], asked: PublishRequest) -> None:
        """Publish, wait, and publish again; this never ends."""
        self._publish(chosen, asked)
        failures = 0
        while True:
            self._wait(watcher)
            try:
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
        """Publish the tree, and compute the time of the next run without a hint."""
        began = self._clock.monotonic()
        done = publish_tree(self._root, chosen, clock=self._clock, asked=asked, state=self._state)
        ended = self._clock.monotonic()
        remaining = max((ended - began) * self._pace.share, self._pace.least)
        self._rest = min(remaining, self._pace.most)
        self._next = ended + self._poll_seconds(done)
        outs = map(os.path.normpath, (done.settings.out, *done.settings.earlier))
        folders = ("resourcesync" if out == "." else out for out in outs)
        self._ours = (
            (*folders, document_stores.ROBOTS_FILE) if done.settings.robots else tuple(folders)
        )
        self._on_published(replace(done, seconds=ended - began))

    def _wait(self, watcher: Watcher) -> None:
        """Wait for a hint, or until the next run is due."""
        self._clock.sleep(self._rest)
        self._rest = 0.0
        while (left := self._next - self._clock.monotonic()) > 0:
            if watcher.wait(left):
                return

    def _poll_seconds(self, done: PublicationResult) -> float:
        """Return the seconds to the next scan without a hint."""
        if done.scan.changing or done.publication.written:
            return self._pace.quiet
        if done.notified is not None and (done.notified.problems or done.notified.error):
            return self._pace.most
        ages = (done.settings.rotate, done.settings.rebase_every)
        return min([self._pace.rescan, *(max(age, self._pace.most) for age in ages if age)])
