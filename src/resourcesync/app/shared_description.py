"""Sites: the sets of one host, which share the Source Description at the root of the host (§8)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from resourcesync import own_files
from resourcesync.adapters.files.names_and_uris import to_segment
from resourcesync.adapters.folder_documents import FolderDocuments
from resourcesync.app import document_stores
from resourcesync.discovery.uris import origin
from resourcesync.errors import ConfigurationError, LockedError, StateError, storage_error
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.timestamps import format_w3c
from resourcesync.model.vocabulary import Dialect
from resourcesync.source import description, naming
from resourcesync.source.document_writer import DocumentWriter, WrittenDocument
from resourcesync.source.naming import SourceNaming
from resourcesync.source.publication_settings import NOTIFYING, PublicationSettings
from resourcesync.source.publisher import OpenSource, Publication
from resourcesync.source.stored_plan import RECORD, DocumentRecord

SETS: Final = Path(OWN_FOLDER) / "site.json"
"""The sets of a site, from its folder."""
_LOCK: Final = Path(OWN_FOLDER) / "site.lock"
_MOST: Final = 64 * 1024 * 1024
_KEPT: Final = "the sets that were published before"
_ATTEMPTS: Final = 300
_PAUSE: Final = 0.1
_UNDESCRIBED: Final = frozenset({Dialect.V0_6, Dialect.V0_5})
_AGES: Final = tuple(Dialect)


class SiteSet(msgspec.Struct, frozen=True, kw_only=True):
    """A set of a site: what its Source Description says, and where the set is, from the site."""

    base_uri: str
    documents_uri: str
    described_by: str
    hubs: tuple[str, ...] = ()
    dialect: Dialect = Dialect.V1_1
    root: str = ""
    """The folder of its resources; empty if there are none in a folder."""
    out: str = ""
    """The folder of its documents; empty if they are in a store."""

    @property
    def names(self) -> SourceNaming:
        """The addresses of the set."""
        return SourceNaming(base_uri=self.base_uri, documents_uri=self.documents_uri)


class SiteState(msgspec.Struct, frozen=True, kw_only=True):
    """The sets of a site by their catalogues, and the documents that were written for all."""

    address: str = ""
    sets: dict[str, SiteSet] = {}
    documents: dict[str, DocumentRecord] = {}


def read_state(site: Path) -> SiteState | None:
    """Return the sets of a site; ``None`` if the folder is not that of a site."""
    try:
        return msgspec.json.decode(own_files.read_file(site / SETS, _MOST), type=SiteState)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise storage_error(error, f"reading {site / SETS}", kept=_KEPT) from error
    except msgspec.MsgspecError as error:
        raise StateError(
            f"{site / SETS} is damaged: {error}",
            hint="remove it, and the Source Description beside it; then publish every set again",
        ) from error


def place(
    root: Path, tree: Path | None, known: PublicationSettings, settings: PublicationSettings
) -> PublicationSettings:
    """Return settings with the addresses that follow from the folder of the site.

    ``root`` is what places are relative to, ``tree`` the folder that ``url`` is the address of.
    """
    home = os.path.abspath(root)  # noqa: PTH100 - a Path keeps what is left of ".."
    site = os.path.normpath(os.path.join(home, settings.site))  # noqa: PTH118 - the same
    kept = os.path.relpath(site, home) if settings.site else ""
    former = tuple(sorted({*known.former_sites, known.site} - {kept, ""}))
    settings = replace(settings, site=kept, former_sites=former, site_uri="", documents_uri="")
    if not kept:
        return settings
    _check(Path(site), settings)
    is_store = document_stores.is_store(settings.out)
    out = None if is_store else Path(os.path.normpath(Path(home, settings.out)))
    base = SourceNaming(base_uri=settings.url).base_uri
    tail = _address_below(site, tree or out)
    parts = urlsplit(base)
    if tail is not None and f"/{parts.path}".endswith(f"/{tail}"):
        address = base.removesuffix(tail)
    else:
        address = f"{parts.scheme}://{parts.netloc}/"
    below = _address_below(site, out)
    if below is not None and out is not None and (tree is None or out != _absolute(tree)):
        settings = replace(settings, documents_uri=f"{address}{below}{naming.FOLDER}")
    earlier = tuple(sorted({*settings.earlier, *_documents_beside(Path(site), home, out)}))
    return replace(settings, site_uri=address, earlier=earlier)


def _check(site: Path, settings: PublicationSettings) -> None:
    if not site.is_dir():
        raise ConfigurationError(f"site: {site} is not a folder", hint="create it first")
    if settings.dialect in _UNDESCRIBED:
        raise ConfigurationError(f"version {settings.dialect} has no Source Description")


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - a Path keeps what is left of ".."


def _address_below(site: str, folder: Path | None) -> str | None:
    if folder is None or not _absolute(folder).is_relative_to(site):
        return None
    names = _absolute(folder).relative_to(site).parts
    if any(name.startswith(".") for name in names):
        return None
    return "".join(f"{to_segment(name)}/" for name in names)


def _documents_beside(site: Path, home: str, out: Path | None) -> Iterator[str]:
    state = read_state(site)
    for each in () if state is None else state.sets.values():
        folder = Path(os.path.normpath(site / each.out)) if each.out else None
        if folder not in {None, out, Path(home)} and folder.is_relative_to(home):
            yield str(folder.relative_to(home))


class SharedDescription:
    """The Source Description that a set shares with the other sets of its site, if it does."""

    def __init__(
        self, source: OpenSource, home: Path, catalogue: Path, tree: Path | None = None
    ) -> None:
        settings = source.settings
        self._source = source
        self._home, self._catalogue, self._tree = home, _absolute(catalogue), tree
        self._site = _absolute(home / settings.site) if settings.site else None
        is_store = document_stores.is_store(settings.out)
        self._out = None if is_store else _absolute(home / settings.out)
        record = RECORD.read(source.catalogue) if self._site else None
        self._known = {} if record is None else record.documents

    def claim(self, *, dry_run: bool = False) -> None:
        """Refuse a publication that would harm other sets, or a description of somebody else.

        The place of the description is taken before the first document is written, so that a run
        that was killed can be continued.
        """
        if self._site is None:
            self._check_place_is_free()
        elif dry_run:
            self._check(self._site, read_state(self._site))
        else:
            with self._locked(self._site):
                state = read_state(self._site)
                self._check(self._site, state)
                if state is None:
                    _write_state(self._site, SiteState())

    def update(self, done: Publication) -> Publication:
        """Write the description after a publication, where it differs; leave former sites."""
        if self._site is not None:
            with self._locked(self._site):
                written = self._join(self._site)
            done = replace(done, written=(*done.written, *map(self._from_out, written)))
        for former in self._source.settings.former_sites:
            site = _absolute(self._home / former)
            if (site / SETS).exists():
                with self._locked(site):
                    self._leave(site)
        return done

    def _from_out(self, written: WrittenDocument) -> WrittenDocument:
        assert self._site is not None
        path = self._site / written.name
        name = str(path) if self._out is None else os.path.relpath(path, self._out)
        return replace(written, name=name)

    def _join(self, site: Path) -> list[WrittenDocument]:
        state = read_state(site)
        self._check(site, state)
        state, settings = state or SiteState(), self._source.settings
        names = settings.names
        own = SiteSet(
            base_uri=names.base_uri,
            documents_uri=names.documents_uri,
            described_by=settings.described_by or names.uri(naming.ABOUT),
            hubs=settings.hubs,
            dialect=settings.dialect,
            root="" if self._tree is None else os.path.relpath(self._tree, site),
            out="" if self._out is None else os.path.relpath(self._out, site),
        )
        key = self._key(site)
        others = {
            place: each
            for place, each in state.sets.items()
            if place == key or each.documents_uri != own.documents_uri
        }
        changed = replace(state, address=settings.site_uri, sets={**others, key: own})
        written = _write(site, state, changed)
        if self._out != site and self._wrote_own():
            self._source.documents.delete(naming.DESCRIPTION)
        return written

    def _leave(self, site: Path) -> None:
        state = read_state(site)
        if state is None or self._key(site) not in state.sets:
            return
        sets = {place: each for place, each in state.sets.items() if place != self._key(site)}
        if sets:
            _write(site, state, replace(state, sets=sets))
            return
        documents = FolderDocuments(site)
        if self._out != site:
            documents.delete(naming.DESCRIPTION)
        documents.delete(naming.SITE_ABOUT)
        own_files.remove_file(site / SETS)

    def _wrote_own(self) -> bool:
        names = SourceNaming(base_uri=self._source.settings.url)
        own = DocumentWriter(self._source.documents, names, self._known)
        return own.confirm_unharmed(naming.DESCRIPTION)

    def _key(self, site: Path) -> str:
        return os.path.relpath(self._catalogue, site)

    def _check(self, site: Path, state: SiteState | None) -> None:
        if state is None:
            exists = FolderDocuments(site).signature(naming.DESCRIPTION) is not None
            if exists and not (self._out == site and self._wrote_own()):
                raise ConfigurationError(
                    f"{site / naming.DESCRIPTION} already exists, and was not written for a site",
                    evidence=(("kept", "nothing was changed"),),
                    hint="if it is of one set, publish that with the same `site` first; if "
                    f"{site / SETS} was lost, restore it, or move the description away and publish"
                    " each set again",
                )
            return
        settings, key = self._source.settings, self._key(site)
        others = {place: each for place, each in state.sets.items() if place != key}
        uri = settings.names.capability_list
        for place, each in others.items():
            is_same = each.names.capability_list == uri
            if is_same and (site / place).exists():
                raise ConfigurationError(
                    f"another set of {site} has its Capability List at {uri}",
                    evidence=(("catalogue", os.path.normpath(site / place)),),
                    hint="write the documents of one of them elsewhere: --out FOLDER",
                )
        is_near = others and origin(state.address) == origin(settings.site_uri)
        if is_near and state.address != settings.site_uri:
            raise ConfigurationError(
                f"{settings.url} is not an address in the site at {state.address}",
                evidence=(("site", str(site)), ("would be at", settings.site_uri)),
                hint="correct --url, or the folder of the site",
            )

    def _check_place_is_free(self) -> None:
        if self._out is None or (state := read_state(self._out)) is None:
            return
        if state.sets.keys() != {self._key(self._out)}:
            raise ConfigurationError(
                f"the Source Description in {self._out} is shared by the sets of a site",
                evidence=(("kept", "nothing was changed"),),
                hint=f"publish this as one of them: -o site={self._out}",
            )

    @contextmanager
    def _locked(self, site: Path) -> Iterator[None]:
        clock = self._source.clock
        try:
            own_files.make_folder(site / OWN_FOLDER)
            with own_files.opened(own_files.open_path(site / _LOCK, own_files.LOCK)) as lock:
                for _ in range(_ATTEMPTS):
                    if own_files.lock_file(lock, format_w3c(clock.now())):
                        break
                    clock.sleep(_PAUSE)
                else:
                    raise LockedError(
                        f"another run holds the sets of {site}",
                        evidence=(("who", own_files.holder_of(lock)),),
                        hint="wait until it ends, then try again",
                    )
                yield
        except OSError as error:
            doing = f"writing the Source Description of {site}"
            raise storage_error(error, doing, kept=_KEPT) from error


def _write(site: Path, before: SiteState, state: SiteState) -> list[WrittenDocument]:
    if state != before:
        _write_state(site, state)
    address = SourceNaming(base_uri=state.address)
    same = before.address == state.address
    dialect = max((each.dialect for each in state.sets.values()), key=_AGES.index)
    writer = DocumentWriter(
        FolderDocuments(site), address, state.documents if same else {}, dialect=dialect
    )
    described = [
        description.DescribedSet(
            names=each.names,
            described_by=each.described_by,
            hubs=each.hubs if dialect in NOTIFYING else (),
        )
        for each in state.sets.values()
    ]
    description.publish_site(writer, described)
    if writer.known != state.documents:
        _write_state(site, replace(state, documents=writer.known))
    return writer.written


def _write_state(site: Path, state: SiteState) -> None:
    own_files.replace_file(site / SETS, msgspec.json.encode(state), mode=0o644)
