"""The originals of a Source: the files of a tree, or those of a plug-in."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple
from urllib.parse import unquote

from resourcesync import app
from resourcesync.adapters.files import FileSelection, FileTreeOriginals, PathFilter, RereadSchedule
from resourcesync.app import document_stores, plugins
from resourcesync.catalogue.recording import CatalogueRecording
from resourcesync.errors import ConfigurationError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock
from resourcesync.ports.originals import Original, Originals, OriginalsOptions, WrappedOriginals
from resourcesync.source import naming
from resourcesync.source.publication_settings import CATALOGUE, PublicationSettings

_METHODS: Final = ("scan", "runs", "measure", "measure_run", "open", "omissions", "prefetch")

Opening = Callable[[str], BinaryIO | None]


class OpenedOriginals(NamedTuple):
    """The originals of a Source, with the links of the link rules."""

    originals: Originals
    reading: Callable[[], AbstractContextManager[Opening]]
    rereading: RereadSchedule
    """The files that are read again though they look unchanged."""
    unmatched: Callable[[], tuple[str, ...]]
    """Returns the globs and the link rules of the settings that matched nothing."""
    relink: Callable[[CatalogueRecording], int] = lambda _: 0
    """Records resources whose links by rule are others now as updated; returns how many."""


def is_originals_address(text: str) -> bool:
    """True if an address of originals is to be published, not a folder."""
    scheme, colon, _ = text.partition("://")
    return bool(colon) and scheme in plugins.names(plugins.ORIGINALS)


@contextmanager
def open_originals(
    root: Path, settings: PublicationSettings, clock: Clock, known: str | None
) -> Iterator[OpenedOriginals]:
    """Open the originals of the given settings."""
    rereading = RereadSchedule.since(known, to_microseconds(clock.now()))
    if not settings.originals:
        tree = FileTreeOriginals(
            root,
            settings.url,
            clock=clock,
            selection=selection_of(root, settings),
            algorithms=settings.hashes,
            rereading=rereading,
        )
        yield _opened(tree, settings, rereading)
        return
    with _load_originals(settings) as originals:
        yield _opened(_SelectedOriginals(originals, settings), settings, rereading)


def _opened(
    originals: "FileTreeOriginals | _SelectedOriginals",
    settings: PublicationSettings,
    rereading: RereadSchedule,
) -> OpenedOriginals:
    if not settings.links:
        return OpenedOriginals(originals, originals.reading, rereading, originals.unmatched)
    from resourcesync.source.link_rules import LinkedOriginals, parse_rule  # noqa: PLC0415 - quick start

    rules = [parse_rule(text) for text in settings.links]
    linked = LinkedOriginals(originals, rules, settings.url)
    return OpenedOriginals(
        linked,
        originals.reading,
        rereading,
        lambda: (*originals.unmatched(), *linked.unmatched()),
        linked.relink,
    )


def selection_of(root: Path, settings: PublicationSettings) -> FileSelection:
    """Return the selection of files to publish: never the documents themselves."""
    outs = [
        name for name in (settings.out, *settings.earlier) if not document_stores.is_store(name)
    ]
    skip = {CATALOGUE.parts[0]}
    for out in map(os.path.normpath, outs):
        if out == ".":
            skip |= {naming.FOLDER, naming.DESCRIPTION.partition("/")[0]}
        elif not out.startswith(".."):
            skip.add(out)
    if settings.site:
        skip.add(os.path.normpath(os.path.join(settings.site, naming.FOLDER)))  # noqa: PTH118 - a Path keeps ".."
    if settings.out == "." and document_stores.read_robots(root)[1]:
        skip |= {document_stores.ROBOTS_FILE}
    return FileSelection(
        include=settings.include,
        exclude=settings.exclude,
        skip=frozenset(skip),
        signs=(naming.CAPABILITY_LIST, CATALOGUE.as_posix()),
        is_own=naming.is_sitemap,
    )


def check_originals(settings: PublicationSettings, known: PublicationSettings) -> None:
    """Refuse settings that originals of a plug-in cannot have, or cannot change."""
    if not settings.originals and not known.originals:
        return
    if known.url and settings.originals != known.originals:
        raise ConfigurationError(
            "the originals of a published Source cannot be replaced by others all at once",
            evidence=(
                ("known", known.originals or "the files of the folder"),
                ("asked", settings.originals or "the files of the folder"),
                ("kept", "what was published before"),
            ),
            hint="publish into another folder: --out DIR, or --state DIR",
        )
    app.mirror_stores.check_plugin_address(settings.originals, plugins.ORIGINALS)
    if settings.versions or settings.patches:
        raise ConfigurationError("versions and patches need files in a folder")


@contextmanager
def _load_originals(settings: PublicationSettings) -> Iterator[Originals]:
    options = OriginalsOptions(
        address=settings.originals,
        base_uri=settings.names.base_uri,
        algorithms=settings.hashes,
        values=dict(settings.originals_with),
    )
    scheme = settings.originals.partition(":")[0]
    with plugins.open_plugin(plugins.ORIGINALS, scheme, options) as originals:
        missing = [name for name in _METHODS if not callable(getattr(originals, name, None))]
        if missing:
            raise _bad_plugin_error(f"what it opens has no {', '.join(missing)}")
        yield originals


def _bad_plugin_error(got: str, *evidence: tuple[str, str]) -> ConfigurationError:
    return ConfigurationError(
        "the plug-in for originals cannot be used",
        evidence=(("got", got[:500]), *evidence),
        hint="the list of plug-ins names the package of each: resourcesync doctor --plugins",
        code="bad-plugin",
    )


class _SelectedOriginals(WrappedOriginals):
    def __init__(self, originals: Originals, settings: PublicationSettings) -> None:
        super().__init__(originals)
        self._base = settings.names.base_uri
        home = settings.originals.rstrip("/")
        found = set()
        for out in (settings.out, *settings.earlier):
            if out == home:
                found.add("resourcesync")
            elif out.startswith(f"{home}/"):
                found.add(out.removeprefix(f"{home}/"))
        self._judge = PathFilter(
            FileSelection(
                include=settings.include,
                exclude=settings.exclude,
                skip=frozenset(found),
                is_own=naming.is_sitemap,
            )
        )
        self.unmatched = self._judge.unmatched

    def scan(self) -> Iterator[Original]:
        last = ""
        for original in self._originals.scan():
            uri = original.uri
            if uri <= last or not uri.startswith(self._base):
                raise _bad_plugin_error(
                    f"{uri[:300]}, out of order, or elsewhere", ("after", last[:300])
                )
            last = uri
            if self._is_published(uri):
                yield original

    def _is_published(self, uri: str) -> bool:
        names = tuple(map(unquote, uri.removeprefix(self._base).split("/")))
        # An empty name, as in "a//b", cannot be checked by its prefix.
        whole = tuple(filter(None, names))
        return bool(whole) and self._judge.exclusion_of_path(whole) is None

    def runs(self) -> Iterator[Sequence[Original]]:
        return Originals.runs(self)

    check_gone = Originals.check_gone

    def open(self, uri: str) -> BinaryIO | None:
        if not (uri.startswith(self._base) and self._is_published(uri)):
            return None
        return self._originals.open(uri)

    @contextmanager
    def reading(self) -> Iterator[Opening]:
        yield self.open
