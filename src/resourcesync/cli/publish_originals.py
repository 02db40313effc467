"""``publish`` of originals that are no files of a folder, such as the objects of a bucket."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from resourcesync.errors import ConfigurationError

if TYPE_CHECKING:
    from resourcesync.wiring.publishing import PublicationResult, PublishRequest

_SYSTEM_ONLY: Final = ("auth", "proxy", "proxy_auth", "ca_file")


def is_originals_address(target: str) -> bool:
    """Whether what is to be published is named by the address of originals."""
    if "://" not in target:
        return False
    from resourcesync.wiring import originals  # noqa: PLC0415 - help stays quick

    return originals.is_originals_address(target)


def publish_originals(
    target: str, chosen: dict[str, object], asked: "PublishRequest", values: Mapping[str, Any]
) -> "tuple[PublicationResult, Path, float]":
    """Publish originals once.

    Returns:
        What was done, the folder that ``Settings.out`` is relative to, and the seconds it took.

    Raises:
        ConfigurationError: It is not said where the documents go, or something is not for them.
    """
    from resourcesync.wiring import document_stores, machine, originals, publishing  # noqa: PLC0415

    if values["watch"]:
        raise ConfigurationError("--watch is for folders and other systems", hint="use cron")
    for name in _SYSTEM_ONLY:
        if values[name]:
            raise ConfigurationError(f"--{name} is for other systems, not for {target}")
    root = _originals_root(target, values)
    if values["out"] is not None:
        chosen["out"] = document_stores.out_setting(root, values["out"])
    chosen["originals"] = target.rstrip("/")
    if values["with"]:
        chosen["originals_with"] = originals.values_of(dict(values["with"]))
    clock = machine.system_clock()
    started = clock.monotonic()
    with _created_folder(root):
        done = publishing.publish_tree(root, chosen, clock=clock, asked=asked)
    return done, root, clock.monotonic() - started


@contextmanager
def _created_folder(folder: Path) -> Iterator[None]:
    """Make a folder for the block; it goes again if it is empty in the end, as after a dry run."""
    was_there = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be made: {error.strerror}") from error
    try:
        yield
    finally:
        if not was_there:
            with suppress(OSError):
                folder.rmdir()


def _originals_root(target: str, values: Mapping[str, Any]) -> Path:
    """Return the folder of the catalogue: the one named for it, or that of the documents."""
    state, out = values["state"], values["out"]
    if state is not None:
        return Path(state)
    if isinstance(out, Path):
        return out
    raise ConfigurationError(
        f"it is not said where the catalogue of {target} is",
        hint="--out DIR keeps it with the documents; for documents in a store, name --state DIR",
    )
