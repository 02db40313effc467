"""Publication of a table of resources without a catalogue: by ranges of rows, on many workers."""

import glob
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import msgspec

from resourcesync.adapters.catalogue.database import PublishLock
from resourcesync.adapters.inventory import (
    COLUMN_NAMES,
    InventoryFolder,
    SuppliedTable,
    check_installed,
)
from resourcesync.app.publishing import document_stores, trees
from resourcesync.app.publishing.inventory_publication import PublicationTarget, TablePublication
from resourcesync.app.publishing.inventory_tables import SourceTable
from resourcesync.errors import ConfigurationError, Remedy, StateError, StorageError
from resourcesync.ports import Clock
from resourcesync.settings.publication import CATALOGUE, PublicationSettings, decode_settings
from resourcesync.source.foreign_documents import refuse_foreign
from resourcesync.source.inventory import Inventory
from resourcesync.source.naming import SourceNaming
from resourcesync.source.plan import ChangeLists
from resourcesync.source.publication_options import PublicationResult, PublishRequest

TABLES: Final = "tables:"
"""Prefix that distinguishes the address of a table from a folder."""
FOLDER: Final = Path(".resourcesync") / "tables"
"""Folder of its state, in the folder of the documents or the one named for it."""
_LOCK: Final = "publish.lock"
_SUPPORTED_SETTINGS: Final = frozenset(
    {"url", "out", "max_entries", "max_bytes", "described_by", "keep", "rebase_every"}
)
_MEMORY_OPTION: Final = "memory"
_LEAST_MEMORY, _MOST_MEMORY = 128_000_000, 1_000_000_000
"""The default is half the size of the table, within these bytes. The process has 350 MiB more at
most: threads of DuckDB, Python, PyArrow."""
_FOR_EVER: Final = 1 << 62
_COPIES: Final = "copies.json"
"""List of the files of a mirror's copies, where these are a table."""
_log: Final = logging.getLogger(__name__)


class TableSource(msgspec.Struct, frozen=True, kw_only=True):
    """A table that is to be published.

    Attributes:
        address: ``tables:`` and a folder, a file or a pattern.
        values: The columns of each property, and ``memory``; empty for those of the last time.
        root: The folder of its state.
        out: The place of the documents: a folder, or the address of a store.
        engine: The address of the engine; empty for processes of this machine.
    """

    address: str
    values: Mapping[str, str]
    root: Path
    out: Path | str
    engine: str = ""


class _CopyManifest(msgspec.Struct):
    """The part of that list that is needed."""

    parts: list[dict[str, object]]


def publish_table(
    source: TableSource, chosen: Mapping[str, object], *, clock: Clock, asked: PublishRequest
) -> PublicationResult:
    """Publish a table, or update what was published.

    Args:
        source: The table, and the place of its documents.
        chosen: Settings that are given now, by their names; the others are as the last time.
        clock: Time.
        asked: Options of this run alone.

    Raises:
        ConfigurationError: A setting cannot work, the table or a column is missing, too many
            rows cannot be published, or most of the known resources are gone. Published documents
            stay.
        EngineError: The engine cannot be used, or some lists were not written.
        LockedError: Another run is publishing there.
        StorageError: The table cannot be read, or a document cannot be written.
    """
    check_installed()
    _check(source, chosen, asked)
    _files(source.address)
    own = source.root / FOLDER.parent
    folder = InventoryFolder(source.root / FOLDER)
    with ExitStack() as stack:
        remembered = folder.read()
        if remembered is None:
            _merge_settings(source, PublicationSettings(), chosen)  # before a folder is made
        folder.make()
        stack.enter_context(closing(PublishLock(own / _LOCK, clock)))
        inventory = _decode_inventory(folder.read())
        known = decode_settings(inventory.settings or None)
        settings = _merge_settings(source, known, chosen)
        store = stack.enter_context(
            document_stores.locked_documents(source.root, settings.out, own)
        )
        names = SourceNaming(base_uri=settings.url)
        if not trees.is_known_place(settings, known):
            refuse_foreign(store, names, inventory.documents, asked.step)
        if settings.out != known.out or not known.url or names != SourceNaming(base_uri=known.url):
            inventory = _reset_inventory(inventory)
        place = PublicationTarget(
            folder=folder,
            store=store,
            address=_address(source.root, settings.out),
            engine=source.engine,
        )
        publication = TablePublication(place, settings, inventory, clock)
        publication.resume(asked.step)
        return publication.publish(_table(source.address, settings), asked)


def _check(source: TableSource, chosen: Mapping[str, object], asked: PublishRequest) -> None:
    unsupported = sorted(
        name for name in chosen if name not in _SUPPORTED_SETTINGS and chosen[name]
    )
    if unsupported:
        raise ConfigurationError(
            f"{unsupported[0]} is not for tables",
            evidence=(("fit", ", ".join(sorted(_SUPPORTED_SETTINGS))),),
            hint="publish a catalogue instead, which supports this: ndjson:FILE",
        )
    if asked.dry_run:
        raise ConfigurationError("a table is stored while it is read: there is no dry run")
    for name in ("url", "described_by"):
        if chosen.get(name):
            trees.check_address(str(chosen[name]))
    for key in source.values:
        if key not in COLUMN_NAMES and key != _MEMORY_OPTION:
            raise ConfigurationError(
                f"tables have no option {key!r:.100}",
                evidence=(("known", ", ".join((*COLUMN_NAMES, _MEMORY_OPTION))),),
                hint="name a column by the option uri",
                remedy=Remedy("set-option", value="uri=COLUMN"),
            )
    if (source.root / CATALOGUE).exists():
        raise ConfigurationError(
            f"{source.root} is published from a catalogue already",
            evidence=(("catalogue", str(source.root / CATALOGUE)),),
            hint="publish the table into another folder",
            remedy=Remedy("write-elsewhere"),
        )


def _merge_settings(
    source: TableSource, known: PublicationSettings, chosen: Mapping[str, object]
) -> PublicationSettings:
    if known.originals and known.originals != source.address:
        _log.info("the table was %s before", known.originals)
    if not (chosen.get("url") or known.url):
        raise ConfigurationError(
            "the address of the resources is not known yet",
            hint="publish it with its address on the Web",
            remedy=Remedy("publish-into", target=source.address, value=str(source.out)),
        )
    values = tuple(sorted(source.values.items())) or known.originals_with
    return trees.merge_settings(
        source.root,
        known,
        {
            **{name: value for name, value in chosen.items() if name in _SUPPORTED_SETTINGS},
            "out": document_stores.out_setting(source.root, source.out),
            "originals": source.address,
            "originals_with": values,
            "change_lists": ChangeLists.PER_RUN.value,
        },
    )


def _reset_inventory(inventory: Inventory) -> Inventory:
    """Return the state for a new place of the documents: all but what is known of these."""
    return Inventory(
        settings=inventory.settings,
        table=inventory.table,
        rows=inventory.rows,
        orphans={**dict.fromkeys(inventory.documents, _FOR_EVER), **inventory.orphans},
    )


def _decode_inventory(content: bytes | None) -> Inventory:
    try:
        return Inventory() if content is None else msgspec.json.decode(content, type=Inventory)
    except msgspec.MsgspecError as error:
        raise StateError(
            f"the state of the table is damaged: {error!s:.300}",
            hint=f"remove {FOLDER} below the documents, and begin anew",
            remedy=Remedy("initialise"),
        ) from error


def _address(root: Path, out: str) -> str:
    return out if document_stores.is_store(out) else str((root / out).absolute())


def _table(address: str, settings: PublicationSettings) -> SourceTable:
    values = dict(settings.originals_with)
    memory, files = values.pop(_MEMORY_OPTION, ""), _files(address)
    if not memory:
        half = sum(file.stat().st_size for file in files) // 2
        memory = f"{min(max(half, _LEAST_MEMORY), _MOST_MEMORY)}B"
    return SourceTable(
        source=SuppliedTable(files=files, columns=values),
        signature=_signature(files, values),
        read_signature=lambda: _signature(_files(address), values),
        memory=memory,
    )


def _files(address: str) -> list[Path]:
    """Return the files of a table: of a folder, all Parquet files that are not hidden.

    In a folder with the copies of a mirror, only those in its list: the others are old.

    Raises:
        ConfigurationError: There are none.
    """
    name = address.removeprefix(TABLES)
    path = Path(name)
    if (path / _COPIES).is_file():
        try:
            manifest = msgspec.json.decode((path / _COPIES).read_bytes(), type=_CopyManifest)
        except (OSError, msgspec.MsgspecError) as error:
            raise StorageError(f"cannot read {path / _COPIES}: {error}") from error
        found = [path / Path(str(part["name"])).name for part in manifest.parts]
    elif path.is_dir():
        found = [item for item in path.rglob("*.parquet") if not _is_hidden(item.relative_to(path))]
    elif path.is_file():
        found = [path]
    else:
        found = [Path(name) for name in glob.glob(name, recursive=True)]  # noqa: PTH207 - any pattern
    found = sorted(path.absolute() for path in found if path.is_file())
    if not found:
        raise ConfigurationError(
            f"there is no table at {name!r:.300}",
            hint="name a Parquet file, a folder of them, or a pattern such as 'DIR/*.parquet'",
        )
    return found


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _signature(files: Sequence[Path], values: Mapping[str, str]) -> str:
    """Return a signature of the content of files, and of the columns that are read."""
    try:
        found = [(str(file), (status := file.stat()).st_size, status.st_mtime_ns) for file in files]
    except OSError as error:
        raise StorageError(f"cannot read {error.filename}: {error.strerror}") from error
    signature = json.dumps([found, sorted(values.items())])
    return hashlib.sha256(signature.encode()).hexdigest()
