"""Access to documents under the names of resync: by our fetcher, or from local files."""

import os
import re
from contextlib import ExitStack
from typing import Any, BinaryIO, Final, Self
from urllib.parse import unquote, urlsplit

from msgspec import structs

from resourcesync.app import machine
from resourcesync.app.document_access import network_documents, open_fetcher
from resourcesync.compat.resync.errors import DocumentAccessError, as_access_error
from resourcesync.discovery.document_fetcher import fetch
from resourcesync.errors import ResourceSyncError
from resourcesync.ports import Fetcher
from resourcesync.settings.network import Network

CONFIG: Final[dict[str, Any]] = {"bearer_token": None, "delay": None}
"""Settings for all requests: a token for the Source's own origin, and seconds between them."""

_HAS_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def set_url_or_file_open_config(key: str, value: object) -> None:
    """Set one of the settings for all requests, ``bearer_token`` or ``delay``."""
    CONFIG[key] = value


def is_local(uri: str) -> bool:
    """True if an address is a path, or of the scheme ``file``."""
    return uri.startswith("file:") or not _HAS_SCHEME.match(uri)


def local_path(uri: str) -> str:
    """Return the path that a local address names.

    Raises:
        DocumentAccessError: It is on another machine.
    """
    if not uri.startswith("file:"):
        return uri
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost"):
        raise DocumentAccessError(f"{uri} is not on this machine", uri=uri)
    return unquote(parts.path)


class OpenDocument:
    """An open document, to be read as bytes; a context manager closes it.

    Attributes:
        url: Its address, for relative references; empty for a local file, whose are as written.
    """

    def __init__(self, stream: BinaryIO, url: str) -> None:
        self._stream = stream
        self.url = url

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        return self._stream.read(size)

    def info(self) -> dict[str, str]:
        """Return header fields: its ``Content-Length``."""
        return {"Content-Length": str(os.fstat(self._stream.fileno()).st_size)}

    def close(self) -> None:
        """Close the document."""
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class DocumentOpener:
    """An opener of documents of one Source, with one set of connections; to be closed.

    Args:
        network: Settings for requests; ``None`` for those of `CONFIG`.
        home: Address of the Source, to whose origin secrets go; empty for the first address.
    """

    def __init__(self, network: Network | None = None, home: str = "") -> None:
        self._network = configured_network(network)
        self._home = home
        self._opened = ExitStack()
        self._fetcher: Fetcher | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._opened.close()

    def fetcher(self, uri: str) -> Fetcher:
        """Return the network.

        Args:
            uri: The first address to fetch.

        Raises:
            ConfigurationError: A setting cannot work.
        """
        if self._fetcher is None:
            cancel = machine.new_cancel_token()
            opened = open_fetcher(self._home or uri, self._network, cancel)
            self._fetcher = self._opened.enter_context(opened)
        return self._fetcher

    def open(self, uri: str) -> OpenDocument:
        """Open a document; all of it is there.

        Raises:
            DocumentAccessError: It cannot be had.
        """
        try:
            if is_local(uri):
                return OpenDocument(open(local_path(uri), "rb"), "")
            fetched = fetch(network_documents(self.fetcher(uri)), uri)
            fetched.stream.seek(0)
            return OpenDocument(fetched.stream, fetched.final_uri)
        except (ResourceSyncError, OSError) as error:
            raise as_access_error(error, uri) from error


def configured_network(network: Network | None = None) -> Network:
    """Return settings for requests, with those of `CONFIG` where they are set."""
    chosen = network or Network()
    token, delay = CONFIG.get("bearer_token"), CONFIG.get("delay")
    if token:
        field = ("Authorization", f"Bearer {token}")
        chosen = structs.replace(chosen, headers=(*chosen.headers, field))
    if delay:
        chosen = structs.replace(chosen, rate=1.0 / float(delay), jobs=1)
    return chosen


def url_or_file_open(
    uri: str, method: str | None = None, timeout: float | None = None
) -> OpenDocument:
    """Open a document at an address or in a local file.

    Args:
        uri: An http or https address, a path, or an address of the scheme ``file``.
        method: ``GET``, or ``None`` for it.
        timeout: Seconds without an answer; ``None`` for the default.

    Raises:
        DocumentAccessError: It cannot be had; it is an ``OSError``, too.
        ValueError: Another method.
    """
    if method not in (None, "GET"):
        raise ValueError(f"documents are fetched with GET, not {method}")
    network = Network() if timeout is None else Network(timeout=timeout)
    with DocumentOpener(network) as opener:
        return opener.open(uri)
