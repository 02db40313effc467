"""Publish again and again: when something changed, when something is due, and every few hours."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from resourcesync.adapters.folder_watcher import FolderWatcher
from resourcesync.errors import ResourceSyncError
from resourcesync.ports import Clock
from resourcesync.ports.originals import Watcher
from resourcesync.source.naming import is_sitemap
from resourcesync.wiring import document_stores
from resourcesync.wiring.publishing import PublicationResult, PublishRequest, publish_tree

OnPublished = Callable[[PublicationResult], None]
OnFailed = Callable[[ResourceSyncError, float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchIntervals:
    """How often is looked, in seconds.

    Attributes:
        rescan: A whole look at least so often, for what no hint told of.
        settle: A second look so long after a change: files in a folder that was just made may
            have come before anybody watched it.
        share: After a run that took one second, so many seconds pass before the next: so a tree
            that is large is not looked at all the time.
        least, most: The shortest and the longest of these pauses.
        retry: After a run that failed; each further failure doubles it, up to ``most``.
    """

    rescan: float = 4 * 3_600
    quiet: float = 5
    share: float = 4
    least: float = 1
    most: float = 60
    retry: float = 2


class PublishLoop:
    """Keeps a tree published: at once, and from then on whenever that is called for.

    A hint leads to a look at the whole tree. What fails later than at the first time is told and
    tried again: nobody sits before it.

    Args:
        root: The tree.
        clock: Time.
        pace: How often is looked.
        on_published: Told of each run.
        on_failed: Told why a run failed, and how many seconds later it is tried again.
    """

    def __init__(
        self,
        root: Path,
        clock: Clock,
        pace: WatchIntervals,
        on_published: OnPublished,
        on_failed: OnFailed,
    ) -> None:
        self._root = root
        self._top = os.path.join(os.path.realpath(root), "")  # noqa: PTH118 - a prefix of texts
        self._clock = clock
        self._pace = pace
        self._on_published = on_published
        self._on_failed = on_failed
        self._ours: tuple[str, ...] = ("resourcesync",)
        self._rest = 0.0
        self._next = 0.0

    def watcher(self) -> FolderWatcher:
        """Watch the tree, but for what is hidden and for our own documents.

        Raises:
            ConfigurationError: The extra ``watch`` is not installed.
        """
        return FolderWatcher(Path(self._top), self._is_ours)

    def run(self, watcher: Watcher, chosen: Mapping[str, object], asked: PublishRequest) -> None:
        """Publish, wait, and publish again; this never ends.

        Args:
            watcher: Gives the hints; it watches already, so that nothing is missed.
            chosen: Settings that are given now, see ``publish_tree``.
            asked: What is asked of the first run.

        Raises:
            ConfigurationError: The first run cannot work.
            StorageError: The same, because of the disk; or nothing can be watched any more.
        """
        self._publish(chosen, asked)
        failures = 0
        while True:
            self._wait(watcher)
            try:
                self._publish({}, PublishRequest(allow_empty=asked.allow_empty))
            except ResourceSyncError as error:
                pause = min(self._pace.retry * 2.0 ** min(failures, 16), self._pace.most)
                failures += 1
                self._rest, self._next = pause, 0.0
                self._on_failed(error, pause)
            else:
                failures = 0

    def _is_ours(self, path: str) -> bool:
        name = path.removeprefix(self._top)
        return (
            name.startswith((".", *(f"{our}/" for our in self._ours)))
            or "/." in name
            or name in self._ours
            or is_sitemap(name)
        )

    def _publish(self, chosen: Mapping[str, object], asked: PublishRequest) -> None:
        """Publish the tree, and see when that is to be done again without a hint."""
        began = self._clock.monotonic()
        done = publish_tree(self._root, chosen, clock=self._clock, asked=asked)
        ended = self._clock.monotonic()
        rest = max((ended - began) * self._pace.share, self._pace.least)
        self._rest = min(rest, self._pace.most)
        self._next = ended + self._poll_seconds(done)
        outs = map(os.path.normpath, (done.settings.out, *done.settings.earlier))
        folders = ("resourcesync" if out == "." else out for out in outs)
        self._ours = (
            (*folders, document_stores.ROBOTS_FILE) if done.settings.robots else tuple(folders)
        )
        self._on_published(done)

    def _wait(self, watcher: Watcher) -> None:
        """Wait for a hint, or until it is time."""
        self._clock.sleep(self._rest)
        self._rest = 0.0
        while (left := self._next - self._clock.monotonic()) > 0:
            if watcher.wait(left):
                return

    def _poll_seconds(self, done: PublicationResult) -> float:
        """Return the seconds after which the tree is looked at without a hint."""
        if done.scan.changing or done.publication.written:
            return self._pace.quiet
        if done.notified is not None and (done.notified.problems or done.notified.error):
            return self._pace.most
        ages = (done.settings.rotate, done.settings.rebase_every)
        return min([self._pace.rescan, *(max(age, self._pace.most) for age in ages if age)])
