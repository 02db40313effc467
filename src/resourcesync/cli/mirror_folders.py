"""The folders of configured mirrors: where each is, and that no two are in each other's way."""

from collections.abc import Mapping
from pathlib import Path

from resourcesync.config.files import ConfigFile
from resourcesync.errors import ConfigurationError


def configured_folder(
    file: ConfigFile, table: tuple[str, ...], dest: str, key: str = "dest"
) -> Path:
    """Return the folder that ``dest`` means, from the folder of the file if it is no whole path.

    Raises:
        ConfigurationError: It is none.
    """
    if not dest or "://" in dest or "\0" in dest:
        raise file.key_error(table, key, "must be a folder")
    try:
        return file.path.parent / Path(dest).expanduser()
    except RuntimeError:
        raise file.key_error(table, key, "names a user who is not there") from None


def locate_mirror(place: str, state: str | None) -> tuple[Path, str]:
    """Return a mirror's folder on this machine, and the address of its store; empty for none.

    Args:
        place: A folder, or the address of a store.
        state: The folder that was named for the mirror's memory.

    Raises:
        ConfigurationError: No plug-in is for such an address, or there is nothing to keep apart.
    """
    if ":" in place:
        from resourcesync.wiring import stores  # noqa: PLC0415 - help stays quick

        if stores.is_store_address(place):
            home = stores.home_of(place, state)
            return home.folder, home.store
    if state is not None:
        raise ConfigurationError(
            f"{place} is a folder, which keeps its own memory",
            hint="--state is for copies that go into a store: leave it out",
        )
    return Path(place), ""


def locate_configured_mirror(
    file: ConfigFile, table: tuple[str, ...], dest: str, state: str | None
) -> tuple[Path, str]:
    """Return the same for what a table says; paths count from the folder of the file.

    Raises:
        ConfigurationError: As `locate_mirror` and `configured_folder` do.
    """
    where = None if state is None else str(configured_folder(file, table, state, "state"))
    try:
        folder, store = locate_mirror(dest, where)
    except ConfigurationError as error:
        key = "dest" if "://" in dest else "state"
        reason = "must be a folder" if key == "dest" else "is for the address of a store in `dest`"
        raise file.key_error(table, key, reason, hint=error.message) from error
    return (folder, store) if store else (configured_folder(file, table, dest), "")


def check_no_overlap(file: ConfigFile, name: str, dest: Path, folders: Mapping[str, Path]) -> None:
    """Refuse the folder of a mirror when another one has it, has it inside, or lies in it.

    Each of the two would take the other's files for damage, and pulls would undo each other.

    Args:
        file: Where it is written.
        name: The mirror.
        dest: Its folder.
        folders: The folders of all mirrors, resolved, as far as their tables tell.

    Raises:
        ConfigurationError: It is not alone.
    """
    own = resolve_folder(dest)
    for other, there in folders.items():
        if other == name:
            continue
        if own == there:
            reason = f"is the folder of [mirror.{other}] too"
        elif own.is_relative_to(there):
            reason = f"lies in the folder of [mirror.{other}]"
        elif there.is_relative_to(own):
            reason = f"has the folder of [mirror.{other}] in it"
        else:
            continue
        hint = "give each mirror a folder of its own"
        raise file.key_error(("mirror", name), "dest", reason, hint=hint)


def no_mirrors_error(
    file: ConfigFile | None, looked: tuple[tuple[str, str], ...]
) -> ConfigurationError:
    """Return the error that says that no mirror is configured.

    Args:
        file: The configuration file; ``None`` when there is none.
        looked: Where it was looked for, as evidence.
    """
    hint = "resourcesync config init writes a file to begin with"
    if file is not None:
        hint = f"edit that file: add a table [mirror.NAME] with source and dest to {file.path}"
    return ConfigurationError("no mirror is configured", evidence=looked, hint=hint)


def resolve_folder(folder: Path) -> Path:
    """Return a folder without links on its way."""
    try:
        return folder.resolve()
    except (OSError, RuntimeError):  # a circle of links: it cannot be used anyway
        return folder.absolute()
