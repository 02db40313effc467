"""What the tests of servers send over real sockets, from any address of this machine."""

import http.client
import socket
from contextlib import closing
from urllib.parse import urlsplit


def connected(uri: str, source: str = "", timeout: float = 10) -> socket.socket:
    """Open a connection to a server."""
    parts = urlsplit(uri)
    place = (parts.hostname or "", parts.port or 0)
    return socket.create_connection(place, timeout=timeout, source_address=(source, 0))


def requested(
    uri: str,
    path: str = "/",
    method: str = "GET",
    *,
    source: str = "",
    body: str = "",
    **fields: str,
) -> tuple[int, bytes, dict[str, str]]:
    """Return the status, body and fields of an answer; ``_`` in a field's name stands for ``-``."""
    client = http.client.HTTPConnection(
        urlsplit(uri).netloc, timeout=10, source_address=(source, 0)
    )
    with closing(client):
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        client.request(method, path, body or None, named)
        answer = client.getresponse()
        got = answer.read()
        return answer.status, got, {name.lower(): value for name, value in answer.getheaders()}
