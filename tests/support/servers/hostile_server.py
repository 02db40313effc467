"""A server on raw sockets that does what its script says, right or wrong."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

CLOSE: Final = "close"
RESET: Final = "reset"
CLEAN_CLOSE: Final = "clean close"
"""Close, with the message by which TLS ends a connection."""

Step = bytes | float | str
"""Bytes to send, seconds to wait, or how to end the connection."""


@dataclass(frozen=True)
class Asked:
    target: str
    fields: dict[str, str]
    text: str


def asked_in(head: bytes) -> Asked:
    text = head.decode("latin-1")
    first, *lines = text.split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return Asked(first.split(" ")[1], {name.lower(): value for name, _, value in pairs}, text)


Answer = Iterable[Step] | Callable[[Asked], Iterable[Step]]


def answer(
    status: str = "200 OK", body: bytes = b"", *, length: int | str | None = -1, **fields: str
) -> list[Step]:
    lines = [f"HTTP/1.1 {status}"]
    if length is not None:
        lines.append(f"Content-Length: {len(body) if length == -1 else length}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return ["\r\n".join([*lines, "", ""]).encode("latin-1") + body]


def endless(first: bytes, block: bytes, pause: float = 0.0) -> Answer:
    def steps(_asked: object) -> Iterator[Step]:
        yield first
        while True:
            yield block
            yield pause

    return steps


class SocketServer:
    """Listens on loopback while a block runs, and serves each connection in a thread."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self.asked: list[Asked] = []  # every request, in the order of arrival
        self.connections = 0
        self._tls = tls
        self._stop = threading.Event()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server((host, port), backlog=256)
        self._threads: list[threading.Thread] = []
        self.host, self.port = self._listener.getsockname()[:2]
        self.origin = f"{'https' if tls else 'http'}://{self.host}:{self.port}"

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=5)

    def _spawn(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(connection)
            self._spawn(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        raise NotImplementedError


class HostileServer(SocketServer):
    """Answers each target with its own script; the last answer of a script is repeated."""

    def __init__(
        self, host: str = "127.0.0.1", *, port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(host, port, tls)
        self._scripts: dict[str, list[Answer]] = {}

    def on(self, target: str, *answers: Answer) -> str:
        self._scripts[target] = list(answers)
        return self.origin + target

    def targets(self) -> list[str]:
        return [asked.target for asked in self.asked if asked.target != "/robots.txt"]

    def _serve(self, connection: socket.socket) -> None:
        stream = connection
        with contextlib.suppress(OSError, ssl.SSLError):
            if self._tls is not None:
                self._open.discard(connection)
                stream = self._tls.wrap_socket(
                    connection, server_side=True, do_handshake_on_connect=False
                )
                self._open.add(stream)
                stream.do_handshake()
            for asked in self._requests(stream):
                self.asked.append(asked)
                if not self._play(stream, self._choose(asked)):
                    break
        self._open.discard(stream)
        with contextlib.suppress(OSError):
            stream.close()

    def _requests(self, stream: socket.socket) -> Iterator[Asked]:
        held = b""
        while not self._stop.is_set():
            while b"\r\n\r\n" not in held:
                more = stream.recv(65536)
                if not more:
                    return
                held += more
            head, _, held = held.partition(b"\r\n\r\n")
            yield asked_in(head)

    def _choose(self, asked: Asked) -> Iterable[Step]:
        script = self._scripts.get(asked.target) or self._scripts.get("*")
        if not script or (asked.target == "/robots.txt" and "/robots.txt" not in self._scripts):
            return answer("404 Not Found")
        chosen = script.pop(0) if len(script) > 1 else script[0]
        return chosen(asked) if callable(chosen) else chosen

    def _play(self, stream: socket.socket, steps: Iterable[Step]) -> bool:
        for step in steps:
            if isinstance(step, bytes):
                stream.sendall(step)
            elif isinstance(step, float):
                self._stop.wait(step)
            else:
                if step == CLEAN_CLOSE and isinstance(stream, ssl.SSLSocket):
                    stream.unwrap()
                if step == RESET:
                    linger = struct.pack("ii", 1, 0)
                    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return False
            if self._stop.is_set():
                return False
        return True
