"""The ASGI application that serves a tree and its ResourceSync documents. It writes nothing.

What it answers, and what not:

- ``GET`` and ``HEAD`` only; 405 for all else, 400 for a request with a body.
- ``/.well-known/resourcesync`` is the Source Description (§6.3.2). Below the folder of documents,
  only ``.xml`` files and the ``.zip`` packages of dumps are served. All other paths are resources
  of the tree.
- ``/`` is ``index.html`` of the tree when there is one, else a page that points to the Capability
  List. No other folder has a page: a folder is no resource that this package lists.
- Files that are not published, hidden files (a name that begins with ``.`` or ends with ``~``),
  links that lead out of the tree and everything that is no regular file are absent: 404. A file
  that cannot be read is not absent: 403, or 503 when the fault may pass, because a Destination may
  take 404 for a deletion.
- Validators are promised only for a state that can be told from the next one, and a body is never
  a mixture of two states: if a file changes while it is sent, the connection is cut.
"""

import asyncio
import hashlib
import html
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from anyio import to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from resourcesync.errors import ConfigurationError, OriginalChangedError, StorageError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import WELL_KNOWN_PATH
from resourcesync.ports import Clock
from resourcesync.server.conditions import Validators
from resourcesync.server.exchange import Exchange, Headers, Reply, Request, refuse, refuse_request
from resourcesync.server.files import FORBIDDEN, Condition, Folder, OpenFile
from resourcesync.server.paths import Names, is_hidden, read_path
from resourcesync.server.representations import Representation, answer, describe, with_body

_LOG: Final = logging.getLogger(__name__)

_CHUNK: Final = 256 * 1024
_INLINE: Final = 64 * 1024
"""Up to this size a file is read at once, in the loop: a thread would cost more than the read."""
_TRIES: Final = 3
_SETTLING_NS: Final = 20_000_000
"""Two writes within one tick of the system's clock leave the same times; no tick is longer."""

_WELL_KNOWN: Final = tuple(os.fsencode(WELL_KNOWN_PATH).strip(b"/").split(b"/"))
_NOSNIFF: Final = (b"x-content-type-options", b"nosniff")
_KINDS: Final = {
    b".xml": (b"content-type", b"application/xml"),
    b".zip": (b"content-type", b"application/zip"),
}
"""What the folder of documents holds, by the last four letters of the name."""
_NO_CACHE: Final = (b"cache-control", b"no-cache")
_FOREVER: Final = (b"cache-control", b"max-age=31536000, immutable")
# A numbered Change List may still be open, and grow; a numbered Resource List never changes, nor
# does a package.
_IMMUTABLE: Final = re.compile(
    rb"resourcelist-.+-[0-9]{4,}\.xml|(?:resource|change)list_.+Z(?:-[0-9]+)?\.xml"
    rb"|(?:resource|change)dump-.+(?:\.zip|-manifest\.xml)",
    re.DOTALL,
)
_LINKABLE: Final = re.compile(r"https?://[!#-;=?-Z_a-z~%\[\]@]+")


def _is_anything(path: str) -> bool:
    del path
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What one application serves.

    Attributes:
        root: The tree of the resources.
        documents: The folder of the ResourceSync documents, its own; ``None`` means
            ``resourcesync`` in ``root``. Outside ``root`` it is served under its own name.
        well_known: The Source Description; ``None`` means ``.well-known/resourcesync`` in ``root``.
        is_published: Tells of a path in the tree, as ``media_type`` gets it, whether the file there
            is published; what is not is absent.
        capability_list_uri: Absolute URI for the ``Link`` field and the page (§6.3.3): what the
            operator says, never what a request says.
        media_type: Gives the media type for a path in the tree (with ``/``, undecodable bytes as
            surrogates); empty when it has none.

    Raises:
        ConfigurationError: The URI cannot stand in a header, or ``documents`` is ``root`` itself.
    """

    root: Path
    capability_list_uri: str
    media_type: Callable[[str], str]
    documents: Path | None = None
    well_known: Path | None = None
    is_published: Callable[[str], bool] = _is_anything

    def __post_init__(self) -> None:
        if _LINKABLE.fullmatch(self.capability_list_uri) is None:
            raise ConfigurationError(
                "the address of the Capability List is no absolute HTTP URI",
                evidence=(("got", repr(self.capability_list_uri)),),
            )
        if not self.documents_names:
            raise ConfigurationError("the ResourceSync documents need a folder of their own")

    @property
    def documents_folder(self) -> Path:
        """The folder of the documents."""
        return self.documents or self.root / "resourcesync"

    @property
    def documents_names(self) -> Names:
        """The path of the documents' folder in the application, as names."""
        folder, root = self.documents_folder.absolute(), self.root.absolute()
        inside = folder.relative_to(root) if folder.is_relative_to(root) else Path(folder.name)
        return tuple(os.fsencode(part) for part in inside.parts)

    @property
    def description(self) -> Path:
        """The file of the Source Description."""
        return self.well_known or self.root / ".well-known" / "resourcesync"


def create_app(served: Served, *, clock: Clock) -> ASGIApp:
    """Return the ASGI application for ``served``. It holds nothing open between requests."""
    return _Application(served, clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where the answer to a path lies, and the fields that belong to it."""

    folder: Folder
    names: Names
    headers: Headers


@final
class _Application:
    """Finds the place that a path names, and sends the file that is there."""

    def __init__(self, served: Served, clock: Clock) -> None:
        self._clock = clock
        self._media_type = served.media_type
        self._prefix = served.documents_names
        self._documents = Folder(served.documents_folder)
        is_inside = served.documents_folder.absolute().is_relative_to(served.root.absolute())
        closed = self._prefix if is_inside else ()
        self._is_published = served.is_published
        self._tree = Folder(served.root, closed=closed, required=True, is_open=self._is_open)
        self._link = f'<{served.capability_list_uri}>; rel="resourcesync"'.encode("ascii")
        self._description = _Place(
            folder=Folder(served.description.parent),
            names=(os.fsencode(served.description.name),),
            headers=(_KINDS[b".xml"], _NO_CACHE, _NOSNIFF),
        )
        self._page = _page(served.capability_list_uri, self._link)

    def _is_open(self, names: Names) -> bool:
        return self._is_published(_path_of(names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as ASGI 3 asks."""
        if scope["type"] == "http":
            await self._serve(Exchange(Request.read(scope), receive, send))
        elif scope["type"] == "lifespan":
            await _live(receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _serve(self, exchange: Exchange) -> None:
        refusal = refuse_request(exchange.request)
        if refusal is not None:
            await exchange.send(refusal)
            return
        names = read_path(exchange.request.raw_path)
        place = None if names is None else self._locate(names)
        try:
            is_sent = place is not None and await self._send_file(exchange, place)
        except StorageError as error:
            if exchange.has_started:
                raise
            await exchange.send(_excuse(error))
            return
        if not is_sent:
            page = self._page if names == () else None
            reply = refuse(404, "Not found.") if page is None else page.answer(exchange.request)
            await exchange.send(reply)

    def _locate(self, names: Names) -> _Place | None:
        if names == _WELL_KNOWN:
            return self._description
        depth = len(self._prefix)
        if names[:depth] == self._prefix:
            return self._locate_document(names[depth:])
        names = names or (b"index.html",)
        if is_hidden(names) or not self._is_open(names):
            return None
        return self._locate_resource(names)

    def _locate_document(self, names: Names) -> _Place | None:
        if not names or is_hidden(names) or names[-1][-4:] not in _KINDS:
            return None
        caching = _FOREVER if _IMMUTABLE.fullmatch(names[-1]) is not None else _NO_CACHE
        headers = (_KINDS[names[-1][-4:]], caching, _NOSNIFF)
        return _Place(folder=self._documents, names=names, headers=headers)

    def _locate_resource(self, names: Names) -> _Place:
        media_type = self._media_type(_path_of(names))
        kind = ((b"content-type", media_type.encode("ascii")),) if media_type else ()
        headers = (*kind, (b"link", self._link), _NOSNIFF)
        return _Place(folder=self._tree, names=names, headers=headers)

    async def _send_file(self, exchange: Exchange, place: _Place) -> bool:
        """Send what is at ``place``; say whether there is anything.

        Raises:
            StorageError: It cannot be read.
            OriginalChangedError: It changed while it was sent; the server cuts the connection.
        """
        for _ in range(_TRIES):
            opened = place.folder.open(place.names)
            if opened is None:
                return False
            with opened:
                condition, validators = await self._settle(opened)
                reply = answer(exchange.request, condition.size, validators, place.headers)
                span = reply.span
                if span is None or exchange.request.method == "HEAD":
                    await exchange.send(reply)
                    return True
                if span.length > _INLINE:
                    await _stream(exchange, reply, opened, condition)
                    return True
                body = opened.read(span.start, span.length)
                if len(body) == span.length and _is_same(opened.look(), condition):
                    await exchange.send(with_body(reply, body))
                    return True
        raise StorageError("a served file changes as fast as it is read")

    async def _settle(self, opened: OpenFile) -> tuple[Condition, Validators]:
        """Look at a file, a few milliseconds later when it was only just written."""
        condition = opened.found
        for _ in range(_TRIES):
            now = to_microseconds(self._clock.now()) * 1000
            age = now - condition.changed_ns
            if age >= _SETTLING_NS:
                return condition, describe(condition, now)
            if age < 0:
                break
            await asyncio.sleep((_SETTLING_NS - age) / 1e9)
            condition = opened.look()
        return condition, Validators()


async def _stream(exchange: Exchange, reply: Reply, opened: OpenFile, condition: Condition) -> None:
    """Send a long span in chunks that a worker thread reads.

    Raises:
        OriginalChangedError: The file is not what it was; the last bytes were not sent.
    """
    assert reply.span is not None
    start, stop = reply.span.start, reply.span.stop
    async with exchange.watched() as gone:
        chunk = await to_thread.run_sync(opened.read, start, min(_CHUNK, stop - start))
        await exchange.start(reply)
        while not gone.done():
            start += len(chunk)
            if not chunk or (start >= stop and not _is_same(opened.look(), condition)):
                raise OriginalChangedError("a file changed while it was sent")
            await exchange.go_on(chunk, more=start < stop)
            if start >= stop:
                return
            chunk = await to_thread.run_sync(opened.read, start, min(_CHUNK, stop - start))


def _path_of(names: Names) -> str:
    return os.fsdecode(b"/".join(names))


def _is_same(now: Condition, before: Condition) -> bool:
    # Not changed_ns: new rights or a new name are no new bytes.
    return (now.size, now.modified_ns) == (before.size, before.modified_ns)


def _excuse(error: StorageError) -> Reply:
    _LOG.warning("%s", error)
    if error.code == FORBIDDEN:
        return refuse(403, "This server may not read it.")
    return refuse(503, "It cannot be read now.", (b"retry-after", b"5"))


def _page(uri: str, link: bytes) -> Representation:
    target = html.escape(uri)
    body = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<title>ResourceSync Source</title>\n<link rel="resourcesync" href="{target}">\n</head>\n'
        "<body>\n<h1>ResourceSync Source</h1>\n<ul>\n"
        f'<li><a href="{target}">Capability List</a></li>\n'
        # Relative, for a proxy may serve all this below another path.
        f'<li><a href="{WELL_KNOWN_PATH[1:]}">Source Description</a></li>\n'
        "</ul>\n</body>\n</html>\n"
    ).encode()
    return Representation(
        body=body,
        validators=Validators(etag=f'"{hashlib.sha256(body).hexdigest()[:32]}"'),
        headers=((b"content-type", b"text/html; charset=utf-8"), (b"link", link), _NOSNIFF),
    )


async def _live(receive: Receive, send: Send) -> None:
    """Go along with the server's start and stop: there is nothing to do at either."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
