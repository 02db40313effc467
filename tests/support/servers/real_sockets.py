"""What the tests of servers send over real sockets, from any address of this machine."""

import socket
from urllib.parse import urlsplit


def connected(uri: str, source: str = "", timeout: float = 10) -> socket.socket:
    parts = urlsplit(uri)
    place = (parts.hostname or "", parts.port or 0)
    return socket.create_connection(place, timeout=timeout, source_address=(source, 0))
