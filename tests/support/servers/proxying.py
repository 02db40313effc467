"""A small proxy on loopback, that forwards, tunnels and refuses as it is told."""

import contextlib
import select
import socket
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from tests.support.servers.hostile_server import SocketServer, asked_in

_IDLE_SECONDS: Final = 0.05


class Proxy(SocketServer):
    """Forwards ``http``, tunnels what is asked for with CONNECT; answers nothing itself."""

    def __init__(
        self,
        *,
        places: Mapping[str, tuple[str, int]] | None = None,
        refusal: str = "",
        tls: ssl.SSLContext | None = None,
        is_mute: bool = False,
    ) -> None:
        super().__init__("127.0.0.1", 0, tls)
        self._places = places or {}
        self._refusal = refusal
        self._is_mute = is_mute

    def targets(self) -> list[str]:
        return [f"{asked.text.split(' ', 1)[0]} {asked.target}" for asked in self.asked]

    def _serve(self, connection: socket.socket) -> None:
        stream = connection
        with contextlib.suppress(OSError, ssl.SSLError), contextlib.ExitStack() as held:
            held.callback(connection.close)
            if self._tls is not None:
                stream = self._tls.wrap_socket(connection, server_side=True)
                held.callback(stream.close)
            while (head := self._head(stream)) is not None:
                if self._is_mute:
                    self._stop.wait()
                    return
                if not self._answer(stream, head):
                    return

    def _head(self, stream: socket.socket) -> bytes | None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            if not self._is_ready(stream):
                return None
            byte = stream.recv(1)
            if not byte:
                return None
            head += byte
        self.asked.append(asked_in(head.removesuffix(b"\r\n\r\n")))
        return head

    def _is_ready(self, *streams: socket.socket) -> list[socket.socket]:
        while not self._stop.is_set():
            held = [
                stream
                for stream in streams
                if isinstance(stream, ssl.SSLSocket) and stream.pending()
            ]
            if held:
                return list(held)
            if ready := select.select(streams, (), (), _IDLE_SECONDS)[0]:
                return ready
        return []

    def _answer(self, stream: socket.socket, head: bytes) -> bool:
        asked = self.asked[-1]
        if self._refusal:
            stream.sendall(f"HTTP/1.1 {self._refusal}\r\nContent-Length: 0\r\n\r\n".encode())
            return True
        is_tunnel = head.startswith(b"CONNECT ")
        place = asked.target if is_tunnel else urlsplit(asked.target).netloc
        host, _, port = place.rpartition(":") if ":" in place else (place, "", "80")
        try:
            far = socket.create_connection(self._places.get(place, (host, int(port))), timeout=5)
        except OSError:
            stream.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return True
        with far:
            if is_tunnel:
                stream.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                self._pipe(stream, far)
                return False
            far.sendall(_as_the_origin_gets_it(head, asked.target))
            return self._hand_back(stream, far)

    def _hand_back(self, near: socket.socket, far: socket.socket) -> bool:
        with far.makefile("rb") as answer:
            head = b"".join(iter(answer.readline, b"\r\n"))
            if b"Content-Length: " not in head:
                return False
            length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
            near.sendall(head + b"\r\n" + answer.read(length))
            return True

    def _pipe(self, near: socket.socket, far: socket.socket) -> None:
        other = {near: far, far: near}
        while ready := self._is_ready(near, far):
            for stream in ready:
                data = stream.recv(65536)
                if not data:
                    return
                other[stream].sendall(data)


def _as_the_origin_gets_it(head: bytes, target: str) -> bytes:
    parts = urlsplit(target)
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    lines = head.replace(target.encode(), path.encode(), 1).split(b"\r\n")
    return b"\r\n".join(line for line in lines if not line.lower().startswith(b"proxy-"))
