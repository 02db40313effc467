"""The files of a tree that are published, and the unchanged-looking ones that are read again.

Writes through a memory map update the times late, and a disk may corrupt data. So two kinds of
files are read again, a bounded part of a tree each time:

- files written within a minute before the last scan, once that minute is over: until then a write
  to mapped memory may leave the times as they are;
- all others in turn, within thirty days or thirty scans, whichever takes longer.
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from glob import escape
from typing import Final, NamedTuple, Self

import msgspec

from resourcesync.model.globs import normal_path, parse_glob

LEFT_OUT = ""
"""The reason for a file that the operator, or this package itself, excluded on purpose."""


class FileSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The selection of files to publish.

    Only files that match ``include``, if there is any, and not ``exclude`` are published. ``skip``
    are never scanned, such as the folder of the documents, nor files at the top for which
    ``is_own``. A folder with ``signs`` is published by itself: then the folder of the first, which
    has its documents, is not scanned either. ``hidden``: publish names that begin with a dot or end
    with ``~``.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    skip: frozenset[str] = frozenset()
    signs: tuple[str, ...] = ()
    is_own: Callable[[str], bool] = lambda _name: False
    hidden: bool = False


class PathFilter:
    """A filter of names by a ``FileSelection``."""

    def __init__(self, selection: FileSelection) -> None:
        self.signs = selection.signs
        self._skip = frozenset(path.strip("/") for path in selection.skip)
        self._skip_folders = frozenset(path.rpartition("/")[0] for path in self._skip)
        self._is_own = selection.is_own
        self._hidden = selection.hidden
        self._include = _Globs(selection.include or ("**",))
        self._excluded = selection.exclude
        self._exclude = _Globs(selection.exclude)
        self._chooses = bool(selection.include or selection.exclude)

    def exclude_hint(self, name: str) -> str:
        """Return how to publish or exclude what is elsewhere; new globs replace those of before."""
        globs = [*self._excluded, f"/{escape(name)}"]
        options = " ".join(f"--exclude {shlex.quote(each)}" for each in globs)
        return f"copy what it leads to in its place, or leave it out: {options}"

    def unmatched(self) -> tuple[str, ...]:
        """Return the patterns that no name matched yet."""
        return (*self._include.unmatched, *self._exclude.unmatched) if self._chooses else ()

    def exclusion_of_file(self, folder: str, name: str) -> str | None:
        """Return ``None`` to publish a file, else the reason, ``LEFT_OUT`` for one on purpose."""
        path = folder + name
        if path in self._skip or (not folder and self._is_own(name)):
            return LEFT_OUT
        if self._chooses and (self._exclude.match(path) or not self._include.match(path)):
            return LEFT_OUT
        return self._exclusion_of_name(name) if name[0] == "." or name[-1] == "~" else None

    def publishes_all(self, folder: str, names: Sequence[str]) -> bool:
        """True if all of some files of a folder are surely published: a fast test for most."""
        if self._chooses or folder[:-1] in self._skip_folders:
            return False
        if not folder and any(map(self._is_own, names)):
            return False
        joined = f"/{'/'.join(names)}/"
        return self._hidden or not ("/." in joined or "~/" in joined)

    def exclusion_of_folder(self, folder: str, name: str) -> str | None:
        """Return ``None`` to scan a folder, else the reason, as ``exclusion_of_file`` does."""
        path = folder + name
        if path in self._skip:
            return LEFT_OUT
        if self._chooses and self._exclude.match_all_below(path):
            return LEFT_OUT
        return self._exclusion_of_name(name)

    def exclusion_of_folders(self, names: tuple[str, ...]) -> str | None:
        """Return ``None`` to scan a folder at these names from the root, else the reason."""
        folder = ""
        for name in names:
            verdict = self.exclusion_of_folder(folder, name)
            if verdict is not None:
                return verdict
            folder += name + "/"
        return None

    def exclusion_of_path(self, names: tuple[str, ...]) -> str | None:
        """Return ``None`` to publish the file at these names from the root, else the reason."""
        verdict = self.exclusion_of_folders(names[:-1])
        if verdict is not None:
            return verdict
        return self.exclusion_of_file("".join(f"{name}/" for name in names[:-1]), names[-1])

    def exclusion_of_target(self, names: tuple[str, ...]) -> str | None:
        """Return ``None`` if a link may publish the file at these names, else the reason.

        The operator's ``include`` chooses links by their own names, not by their targets'.
        """
        verdict, path = self.exclusion_of_folders(names[:-1]), "/".join(names)
        if verdict is None and (path in self._skip or self._exclude.match(path)):
            return LEFT_OUT
        return self._exclusion_of_name(names[-1]) if verdict is None else verdict

    def _exclusion_of_name(self, name: str) -> str | None:
        if self._hidden:
            return None
        if name[0] == ".":
            return "its name begins with a dot"
        if name[-1] == "~":
            return "a backup: its name ends with ~"
        return None


class _Globs:
    def __init__(self, texts: Iterable[str]) -> None:
        self._globs = {text: parse_glob(text) for text in texts}
        self.unmatched = dict(self._globs)

    def match(self, path: str) -> bool:
        place = normal_path(path)
        found = [text for text, glob in self._globs.items() if glob.matches(place, None)]
        return self._note(found)

    def match_all_below(self, folder: str) -> bool:
        place = normal_path(folder)
        found = [text for text, glob in self._globs.items() if glob.matches_all_below(place)]
        return self._note(found)

    def _note(self, found: list[str]) -> bool:
        for text in found:
            self.unmatched.pop(text, None)
        return bool(found)


_SECOND: Final = 1_000_000
_DAY: Final = 24 * 3_600 * _SECOND
_ROUND_TIME: Final = 30 * _DAY
_MOST: Final = _DAY
"""The most that one scan reads again: the share of a day, however long ago the last one was."""
_UNSETTLED: Final = 60 * _SECOND
"""Systems write mapped memory to the disk within half a minute, and notice later writes."""
_ROUND: Final = 2**32
_LAST: Final = _ROUND - 1
_MIXER: Final = 2_654_435_761
"""Factor that spreads consecutive numbers over the whole round."""


class _RereadState(msgspec.Struct, frozen=True):
    at: int
    place: int


class RereadSchedule(NamedTuple):
    """The files that one scan reads again; by default none.

    ``width`` is the share of the round that is due from ``place`` on; files modified after
    ``written_after`` and up to ``written_until``, nanoseconds, are all due.
    """

    now: int = 0
    place: int = 0
    width: int = 0
    written_after: int = 0
    written_until: int = 0

    @classmethod
    def since(cls, note: str | None, now: int) -> Self:
        """Return the schedule of a scan now."""
        try:
            kept = msgspec.json.decode(note or "null", type=_RereadState | None)
        except msgspec.MsgspecError:
            kept = None
        if kept is None:
            return cls(now)
        width = _ROUND * min(max(now - kept.at, 0), _MOST) // _ROUND_TIME
        after, until = kept.at - _UNSETTLED, now - _UNSETTLED
        return cls(now, kept.place % _ROUND, width, after * 1_000, until * 1_000)

    def note(self) -> str:
        """Return the note to store once the scan is recorded."""
        place = (self.place + self.width) % _ROUND
        return msgspec.json.encode(_RereadState(at=self.now, place=place)).decode()

    def due(self, inodes: Sequence[int], modified: Sequence[int]) -> list[int]:
        """Return the places of the files that are due, among some files."""
        place, width, after, until = self.place, self.width, self.written_after, self.written_until
        found = [at for at, inode in enumerate(inodes) if (inode * _MIXER - place) & _LAST < width]
        if max(modified, default=0) > after:
            found += [at for at, time in enumerate(modified) if after < time <= until]
        return found
