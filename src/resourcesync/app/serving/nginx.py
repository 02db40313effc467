"""The configuration of nginx for published folders: it sends the files, without ``serve``."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from textwrap import indent
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from resourcesync.adapters.files.names_and_uris import MEDIA_TYPES
from resourcesync.app import document_stores, inputs
from resourcesync.app.configured_sources import ConfiguredSource
from resourcesync.app.serving.published_tree import any_settings
from resourcesync.catalogue.reader import uris
from resourcesync.errors import ConfigurationError
from resourcesync.source.naming import DESCRIPTION, FOLDER

_LOCATION: Final = """
    location "{base}" {{
        if (!-f "$document_root{documents}capabilitylist.xml") {{ return 503; }}
        index index.html;
        {link}
        add_header X-Content-Type-Options nosniff;
    }}"""
_LINK: Final = """add_header Link '<{link}capabilitylist.xml>; rel="resourcesync"';"""
_NO_LINK: Final = "# No Link: only `serve` knows which of several sets a file here is of."
_UNSAFE: Final = re.compile(r'["\\$\x00-\x1f\x7f]')


class _Served(NamedTuple):
    origin: str
    root: str
    base: str
    documents: str
    description: str
    link: str
    selection: tuple[str, ...]


def server_blocks(sources: Iterable[ConfiguredSource], template: str) -> Iterator[str]:
    """Yield the server block of each host, from the template of one."""
    hosts: dict[tuple[str, str], list[_Served]] = {}
    for source in sources:
        served = _served(source)
        hosts.setdefault((served.origin, served.root), []).append(served)
    for host in hosts.values():
        yield _block(host, template)


def _block(served: Sequence[_Served], template: str) -> str:
    origin = served[0].origin
    parts = urlsplit(origin)
    host, port = parts.hostname or "", parts.port or 80
    listen = f"{host}:{port};" if re.fullmatch(r"[0-9.]+", host) else f"{port};"
    if parts.scheme == "https":
        listen = f"80;  # for https, let certbot add the certificate of {host}"
    sets = {re.escape(of.documents.removesuffix(FOLDER)) for of in served}
    descriptions = {re.escape(of.description) for of in served}
    lines = ({**of._asdict(), "link": _link_line(of, served)} for of in served)
    locations = {str(line["base"]): _LOCATION.format(**line) for line in lines}
    values = {
        "origin": origin,
        "host": host,
        "listen": listen,
        "root": served[0].root,
        "types": indent(MEDIA_TYPES, " " * 8).rstrip(),
        "sets": "|".join(sorted(sets)),
        "descriptions": "|".join(sorted(descriptions)),
        "locations": "\n".join(locations.values()),
    }
    return re.sub("@([a-z]+)@", lambda found: values[found[1]], template)


def _linked(catalogue: Path, origin: str, root: str, places: Iterable[Path]) -> str:
    above = (str(path) for place in places for path in (place, *place.parents))
    paths = (unquote(uri.removeprefix(origin), errors="surrogateescape") for uri in uris(catalogue))
    found = chain((path for path in above if len(path) > len(root)), (root + at for at in paths))
    return next(filter(os.path.islink, found), "")


def _link_line(of: _Served, served: Sequence[_Served]) -> str:
    others = (other.base for other in served if other is not of and of.base.startswith(other.base))
    is_shared = any(base == of.base or of.selection for base in others)
    return _NO_LINK if is_shared else _LINK.format(link=of.link)


def _served(source: ConfiguredSource) -> _Served:
    catalogue, place = source.places
    settings, home = any_settings(catalogue), os.path.abspath(place)  # noqa: PTH100 - a Path keeps what is left of ".."
    if not settings.url:
        raise ConfigurationError(
            f"{source.name} was not published yet",
            hint=f"publish it first: resourcesync publish {source.name}",
        )
    names, kind = settings.names, inputs.kind_of(source.path)
    out, site = (Path(os.path.normpath(Path(home, of))) for of in (settings.out, settings.site))
    tree = Path(home) if kind is inputs.InputKind.FOLDER else out
    origin = names.base_uri.removesuffix(urlsplit(names.base_uri).path)
    addresses = (names.base_uri, names.documents_uri, names.uri(DESCRIPTION))
    base, documents, description = (unquote(urlsplit(uri).path) for uri in addresses)
    root = str(tree).removesuffix(base.rstrip("/"))
    files = {
        base: tree,
        documents: out / FOLDER,
        description: (site if settings.site else out) / DESCRIPTION,
    }
    misplaced = [str(file) for path, file in files.items() if Path(f"{root}{path}") != file]
    linked = "" if misplaced else _linked(catalogue, origin, root, files.values())
    reasons = {
        "its documents are in a store": document_stores.is_store(settings.out),
        "a mirror has its own names of files": kind is inputs.InputKind.MIRROR,
        "it has public versions": settings.versions,
        "it has a hub of its own": any(hub.startswith(names.base_uri) for hub in settings.hubs),
        f"{''.join(misplaced[:1])} is not at the path of its address": bool(misplaced),
        f"it answers {linked}, a symbolic link, with 403": bool(linked),
        f"nginx has no way to write {root + documents!r}": _UNSAFE.search(root + documents + base),
    }
    for reason, is_true in reasons.items():
        if is_true:
            raise ConfigurationError(
                f"nginx alone cannot serve {source.name}: {reason}",
                hint="put nginx in front of `resourcesync serve`, as the page about serve shows",
            )
    link, selection = urlsplit(names.documents_uri).path, settings.include + settings.exclude
    return _Served(origin, root or "/", base, documents, description, link, selection)
