"""A mirror's folder is opened; one that is no mirror in the end is left as it was."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from resourcesync.adapters.mirror.copies import OWN_FOLDER, FileTreeCopies
from resourcesync.adapters.mirror.mirror_folder import STATE_FILE, MirrorFolder, is_mirror
from resourcesync.adapters.mirror.state import SqliteMirrorState
from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import ConfigurationError, StateError, StorageError
from resourcesync.ports import Clock, Reporter
from resourcesync.wiring import stores
from resourcesync.wiring.stores import Home
from resourcesync.wiring.ways import state_opener

_CATALOGUE = "catalogue.db"


@contextmanager
def open_mirror_folder(
    place: Path | Home,
    source: str | None,
    clock: Clock,
    *,
    is_expected: bool,
    report: Reporter,
) -> Iterator[MirrorFolder]:
    """Open a mirror's folder, and hold it.

    Args:
        place: The folder, or the mirror in a store.
        source: The address that is asked, where it was given.
        clock: Time.
        is_expected: Whether a first pull that failed is remembered there.
        report: Takes events.

    Raises:
        ConfigurationError: The folder is published at the address that is asked.
    """
    home = place if isinstance(place, Home) else Home(place)
    folder, open_state = home.folder, state_opener(home)
    _check_no_loop(folder, source or "")
    was_folder, was_mirror = folder.is_dir(), is_mirror(folder)
    had_own = (folder / OWN_FOLDER).is_dir()
    if isinstance(place, Home):
        stores.bind(place)
        try:
            is_restored = bool(place.store) and stores.restore(place)
        except BaseException:
            _remove_created(folder, had_own=had_own, keep=was_folder)
            raise
        if is_restored:
            message = f"{place.store} had a copy of the mirror's memory: it begins with that"
            report("warning", {"code": "memory-restored", "message": message})
    with MirrorFolder(folder, clock, open_state) as mirror:
        state = mirror.state
        assert state is not None
        try:
            yield mirror
        finally:
            is_told = is_expected and state.last_run() is not None
            if not was_mirror and SyncState(state).identity is None and not is_told:
                _remove_created(folder, had_own=had_own, keep=was_folder)


def open_state_and_copies(mirror: MirrorFolder) -> tuple[SqliteMirrorState, FileTreeCopies]:
    """Return the memory and the files of a mirror that is open."""
    assert mirror.state is not None
    assert mirror.copies is not None
    return mirror.state, mirror.copies


def _remove_created(folder: Path, *, had_own: bool, keep: bool) -> None:
    """Take away what opening a mirror made, when no mirror came of it, and nothing else.

    A folder ``.resourcesync`` that was there before may hold a catalogue, a trash or a quarantine.
    """
    if had_own:
        for suffix in ("", "-wal", "-shm"):
            (folder / OWN_FOLDER / f"{STATE_FILE}{suffix}").unlink(missing_ok=True)
    else:
        import shutil  # noqa: PLC0415 - seldom

        shutil.rmtree(folder / OWN_FOLDER, ignore_errors=True)
    if not keep:
        with suppress(OSError):
            folder.rmdir()


def _check_no_loop(folder: Path, source: str) -> None:
    """Refuse to make a mirror of a Source in the very folder that the Source publishes.

    Its copies would be published next time, and pulled again after that.

    Raises:
        ConfigurationError: The folder is published at the address that is asked.
    """
    if not (folder / OWN_FOLDER / _CATALOGUE).is_file() or is_mirror(folder):
        return
    from resourcesync.wiring.published import published_settings  # noqa: PLC0415 - seldom

    url = ""
    with suppress(StateError, StorageError):  # a catalogue that is none says nothing
        url = published_settings(folder).url
    if url and f"{source.rstrip('/')}/".startswith(url):
        raise ConfigurationError(
            f"{folder} is published at {url}: it is the Source, and cannot be its mirror",
            hint=f"name another folder: resourcesync pull {source} DEST",
        )
