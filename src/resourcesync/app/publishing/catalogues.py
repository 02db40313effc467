"""Catalogues that other programs fill: import and export of JSON lines, and publication."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice, starmap
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from resourcesync.app import document_stores, shared_description
from resourcesync.app.publishing import trees
from resourcesync.app.publishing.mending import mending, publish_mended, report_bad_rows
from resourcesync.catalogue import bad_rows
from resourcesync.catalogue.bad_rows import BadRow
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.discovery.uris import origin
from resourcesync.documents import ndjson
from resourcesync.errors import ConfigurationError, StorageError, quoted
from resourcesync.model.entries import Change, Resource
from resourcesync.ports import Clock
from resourcesync.ports.accounts import Posted
from resourcesync.source.clock_guard import check_clock
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from resourcesync.source.publication_settings import (
    CATALOGUE,
    CATALOGUE_SCHEME,
    INPUT_NOTE,
    LINES_SCHEME,
    MIRROR_SCHEME,
    NOTE,
    PublicationSettings,
    decode_settings,
)
from resourcesync.source.publisher import ListPublisher, OpenSource, Publication
from resourcesync.source.round_trip import check_own_resource, find_fault
from resourcesync.source.scan_for_changes import ScanReport
from resourcesync.source.stored_plan import SYSTEM_NOTE

NO_DRY_RUN: Final = "no-dry-run"
"""Code of the error that an input has no dry run."""
BATCH: Final = 10_000
"""Changes of one transaction."""
_FOLDER_SETTINGS: Final = frozenset(
    {"include", "exclude", "hashes", "links", "robots", "versions", "versions_in",
     "versions_keep", "versions_least", "versions_max_bytes", "patches"}
)  # fmt: skip
_SHOWN_ORIGINS: Final = 3


@contextmanager
def open_catalogue(path: Path) -> Iterator[SourceCatalogue]:
    """Open a catalogue that other programs fill."""
    with SourceCatalogue(path) as catalogue:
        if catalogue.note(NOTE) is not None:
            raise ConfigurationError(
                f"{path} is the catalogue of a folder; the next publish would undo the changes",
                evidence=(("kept", "nothing was changed"),),
                hint="name another catalogue; it is created if it does not exist",
            )
        yield catalogue


def import_lines(
    path: Path, lines: str, *, clock: Clock, is_all: bool = True, allow_empty: bool = False
) -> Posted:
    """Record resources from lines; see ``SourceCatalogue.fill``."""
    now = clock.now()
    with _open_lines(lines) as stream, open_catalogue(path) as catalogue:
        resources = _resources(stream, lines)
        return catalogue.fill(resources, now, is_all=is_all, allow_empty=allow_empty)


def post_lines(path: Path, lines: str, *, clock: Clock) -> Iterator[Posted]:
    """Record changes from lines; yield the counts of each transaction.

    Each transaction has up to ``BATCH`` changes, so the memory is bounded, and what was yielded
    stays whatever comes after it.
    """
    with _open_lines(lines) as stream, open_catalogue(path) as catalogue:
        changes = _changes(stream, lines)
        while batch := list(islice(changes, BATCH)):
            yield catalogue.post(batch, clock.now())


def read_resources(path: Path) -> Iterator[Resource]:
    """Yield the resources of any catalogue in URI order."""
    with _open_existing(path) as catalogue:
        yield from catalogue.resources()


def read_changes(path: Path, after: int) -> Iterator[tuple[int, Change]]:
    """Yield the changes of any catalogue after a number, each with its number."""
    with _open_existing(path) as catalogue:
        yield from catalogue.changes(after)


def export_lines(path: Path, *, changes_after: int | None = None) -> Iterator[bytes]:
    """Yield the resources of a catalogue as lines, or its changes after a number."""
    if changes_after is None:
        yield from map(ndjson.write, read_resources(path))
    else:
        yield from starmap(ndjson.write_change, read_changes(path, changes_after))


def find_bad_rows(path: Path) -> Iterator[BadRow]:
    """Yield the rows of any catalogue that cannot be published; nothing is written."""
    _check_exists(path)
    yield from bad_rows.find_bad_rows(path, find_fault)


def _check_exists(path: Path) -> None:
    if not path.is_file():
        raise ConfigurationError(
            f"there is no catalogue {path}",
            hint="import resources into it: "
            f"resourcesync catalogue import {quoted(path, 'CATALOGUE')} FILE",
        )


@contextmanager
def _open_existing(path: Path) -> Iterator[SourceCatalogue]:
    _check_exists(path)
    with SourceCatalogue(path) as catalogue:
        yield catalogue


def publish(
    path: Path,
    out: Path | str | None,
    chosen: Mapping[str, object],
    *,
    clock: Clock,
    asked: PublishRequest,
) -> PublicationResult:
    """Publish the content of a catalogue; no folder is scanned."""
    _check_exists(path)
    trees.check_addresses(chosen)
    return publish_mended(path, clock, asked, partial(_publish, path, out, chosen, clock, asked))


def _publish(
    path: Path,
    out: Path | str | None,
    chosen: Mapping[str, object],
    clock: Clock,
    asked: PublishRequest,
) -> PublicationResult:
    with ExitStack() as stack:
        catalogue = stack.enter_context(SourceCatalogue(path, clock, dry_run=asked.dry_run))
        known, tree = _known_settings(path, catalogue), _mirror_of(catalogue)
        settings = _merge_settings(path, out, known, chosen)
        settings = shared_description.place(path.parent, tree, known, settings)
        root = path.parent
        store = document_stores.locked_documents(root, settings.out, root, dry_run=asked.dry_run)
        held = stack.enter_context(store)
        source = OpenSource(catalogue=catalogue, documents=held, settings=settings, clock=clock)
        trees.refuse_foreign(source, known, asked.step)
        shared = shared_description.SharedDescription(source, root, path, tree)
        shared.claim(dry_run=asked.dry_run)
        step = check_clock(catalogue, clock.now(), asked.step)
        with catalogue.snapshot() as snapshot:
            found = ScanReport(files=snapshot.count())
        mended, notified, done = 0, None, Publication()
        if asked.dry_run:
            mended = report_bad_rows(path, asked)
            done = done if mended else ListPublisher(source).foresee(step, clock.now())
        else:
            catalogue.write_notes({INPUT_NOTE: msgspec.json.encode(settings).decode()})
            done = shared.update(ListPublisher(source).publish(step))
            notified = trees.notify_hubs(source, root)
        return PublicationResult(
            settings=settings,
            root=root,
            scan=found,
            foreign_origins=_foreign_origins(catalogue, settings.url) if done.first else (),
            publication=done,
            mended=mended,
            dry_run=asked.dry_run,
            notified=notified,
        )


def _known_settings(path: Path, catalogue: SourceCatalogue) -> PublicationSettings:
    if catalogue.note(NOTE) is not None:
        raise ConfigurationError(
            f"{path} is the catalogue of a folder",
            hint="publish that folder: resourcesync publish DIR",
        )
    return decode_settings(catalogue.note(INPUT_NOTE))


def _mirror_of(catalogue: SourceCatalogue) -> Path | None:
    folder = (catalogue.note(SYSTEM_NOTE) or "").removeprefix(MIRROR_SCHEME)
    return Path(folder) if folder.startswith("/") else None


def _foreign_origins(catalogue: SourceCatalogue, url: str) -> tuple[str, ...]:
    home, found, start = origin(url), list[str](), ""
    with catalogue.snapshot() as snapshot:
        while len(found) < _SHOWN_ORIGINS:
            resource = next(snapshot.resources(start), None)
            if resource is None:
                break
            of = origin(resource.uri)
            found += [of] if of not in (home, *found) else []
            start = f"{'/'.join(resource.uri.split('/', 3)[:3])}0"  # "0" comes after "/"
    return tuple(found)


def refuse_dry_run(asked: PublishRequest, reason: str) -> None:
    """Refuse a dry run of an input that has none."""
    if asked.dry_run:
        raise ConfigurationError(f"{reason}: there is no dry run", code=NO_DRY_RUN)


def publish_lines(
    lines: str, out: Path, chosen: Mapping[str, object], *, clock: Clock, asked: PublishRequest
) -> PublicationResult:
    """Publish resources from lines; their catalogue is stored with the documents."""
    path = out / CATALOGUE
    refuse_dry_run(asked, "lines are recorded as they are read")
    if not (chosen.get("url") or path.exists()):
        raise trees.unknown_address_error(f"{LINES_SCHEME}{lines}", out)
    now = clock.now()
    with (
        mending(path, clock, asked),
        _open_lines(lines) as stream,
        open_catalogue(path) as catalogue,
    ):
        catalogue.fill(_resources(stream, lines), now, allow_empty=asked.allow_empty)
    return publish(path, out, chosen, clock=clock, asked=asked)


def _merge_settings(
    path: Path, out: Path | str | None, known: PublicationSettings, chosen: Mapping[str, object]
) -> PublicationSettings:
    target = f"{CATALOGUE_SCHEME}{path}"
    if not (chosen.get("url") or known.url):
        raise trees.unknown_address_error(target, "")
    if out is None and not known.url:
        raise ConfigurationError(
            "the folder for the documents is not known yet",
            hint=f"publish it into a folder: {trees.first_command(target, '')}",
        )
    unsupported = sorted(_FOLDER_SETTINGS & chosen.keys())
    if unsupported:
        raise ConfigurationError(
            f"{unsupported[0]} is for folders: a catalogue already has the entries of its resources"
        )
    settings = dict(chosen)
    if out is not None:
        settings["out"] = document_stores.out_setting(path.parent, out)
    return trees.merge_settings(path, known, settings)


def _resources(stream: BinaryIO, name: str) -> Iterator[Resource]:
    for entry in ndjson.read(stream, name=name):
        if isinstance(entry, Change):
            raise ConfigurationError(
                f"{name} has changes, such as of {entry.uri}; post them instead",
                hint="post changes to a catalogue: resourcesync catalogue post CATALOGUE FILE",
            )
        yield check_own_resource(entry)


def _changes(stream: BinaryIO, name: str) -> Iterator[Change]:
    for entry in ndjson.read(stream, name=name):
        if isinstance(entry, Resource):
            raise ConfigurationError(
                f"{name} has no kind of change for {entry.uri}",
                hint='"change" is "created", "updated" or "deleted"',
            )
        check_own_resource(entry.resource)
        yield entry


@contextmanager
def _open_lines(lines: str) -> Iterator[BinaryIO]:
    if lines == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(lines).open("rb") as stream:
            yield stream
    except OSError as error:
        raise StorageError(f"cannot read {lines}: {error.strerror}") from error
