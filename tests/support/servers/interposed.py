"""A man in the middle of a client and an HTTP server, who spoils what he is told to spoil."""

import contextlib
import http.client
from collections.abc import Callable, Iterator
from threading import Lock
from typing import NamedTuple

from tests.support.servers.listening import Heard, Listener, Reply


class Answer(NamedTuple):
    status: int  # of HTTP; 0 resets the connection instead
    body: bytes
    length: int | None = None  # what `Content-Length` says; `None` says the truth


Spoil = Callable[[str, str], Answer | None]
"""Is asked for each request, by method and target; ``None`` lets it through."""
SpoilAnswer = Callable[[str, str, bytes], Answer | None]


class Interposed(Listener):
    def __init__(self, behind: int, at: int) -> None:
        super().__init__(self._pass_on, port=at)
        self.url = self.origin  # where the client asks
        self.asked: list[tuple[str, str]] = []  # each request's method and target
        self.fields: list[dict[str, str]] = []  # each request's header fields
        # what is done before a request gets through
        self.spoil: Spoil = _spoil_nothing
        # what is done to the answer of one that got through
        self.spoil_answer: SpoilAnswer = lambda method, target, body: None
        # names of header fields, in lower case, that do not get through
        self.drops: frozenset[str] = frozenset()
        self._behind, self._lock = behind, Lock()

    @contextlib.contextmanager
    def spoiling(self, spoil: Spoil) -> Iterator[None]:
        self.spoil = spoil
        try:
            yield
        finally:
            self.spoil = _spoil_nothing

    def _pass_on(self, heard: Heard) -> Reply:
        method, target = heard.method, heard.target
        with self._lock:
            self.asked.append((method, target))
            self.fields.append(dict(heard.headers))
        if (answer := self.spoil(method, target)) is not None:
            return _reply(answer, {})
        connection = http.client.HTTPConnection("127.0.0.1", self._behind, timeout=30)
        with contextlib.closing(connection):
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in heard.headers.items():
                if name.lower() not in self.drops:
                    connection.putheader(name, value)
            connection.endheaders(heard.body)
            got = connection.getresponse()
            data = got.read()
            length = len(data) or int(got.headers.get("Content-Length", 0))
            own = {"content-length", "transfer-encoding", "connection"}
            fields = {name: value for name, value in got.getheaders() if name.lower() not in own}
            spoiled = self.spoil_answer(method, target, data)
            return _reply(spoiled or Answer(got.status, data, length), fields)


def _reply(answer: Answer, fields: dict[str, str]) -> Reply:
    length = len(answer.body) if answer.length is None else answer.length
    return answer.status, answer.body, {**fields, "Content-Length": str(length)}


def _spoil_nothing(method: str, target: str) -> None:
    """Let a request through."""


@contextlib.contextmanager
def interposed(port: int, *, at: int = 0) -> Iterator[Interposed]:
    with Interposed(port, at) as between:
        yield between
