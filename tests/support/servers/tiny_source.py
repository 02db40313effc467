"""A Source on loopback that serves exactly what a test says and records what it was asked."""

import contextlib
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from tests.support.documents.written import facts, written
from tests.support.servers.listening import Heard, Listener, Reply

STAMP = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Asked = Heard


class TinySource(Listener):
    """A server on loopback: ``answers`` maps request targets to answers, ``asked`` is the log."""

    def __init__(self, respond: Callable[[Asked], Answer | None] | None = None) -> None:
        super().__init__(self._reply)
        self.answers: dict[str, Answer] = {}
        self.respond = respond
        self.asked = self.heard

    def _reply(self, asked: Asked) -> Reply:
        answer = self.answers.get(asked.target)
        if answer is None and self.respond is not None:
            answer = self.respond(asked)
        if answer is None:
            return 404, b"not here\n"
        return answer.status, answer.body, answer.headers

    @property
    def url(self) -> str:
        return self.origin

    def put(self, target: str, body: bytes, media_type: str = "application/octet-stream") -> None:
        self.answers[target] = Answer(body=body, headers={"Content-Type": media_type})

    def offer(self, resources: Mapping[str, bytes], *, at: str = STAMP) -> None:
        for target, body in resources.items():
            self.put(target, body)
        entries = [self.entry(target, body) for target, body in resources.items()]
        self.offer_entries(entries, at=at)

    def offer_entries(self, entries: list[str], *, at: str = STAMP) -> None:
        self.put_document(
            "/.well-known/resourcesync",
            '<rs:md capability="description"/>',
            [self.pointer("/capabilitylist.xml", "capabilitylist")],
        )
        self.put_document(
            "/capabilitylist.xml",
            '<rs:md capability="capabilitylist"/>',
            [self.pointer("/resourcelist.xml", "resourcelist")],
        )
        self.put_document(
            "/resourcelist.xml", f'<rs:md capability="resourcelist" at="{at}"/>', entries
        )

    def offer_changes(self, *changes: str) -> None:
        lists = ("changelist", "resourcelist")
        self.put_document(
            "/capabilitylist.xml",
            '<rs:md capability="capabilitylist"/>',
            [self.pointer(f"/{name}.xml", name) for name in lists],
        )
        head = f'<rs:md capability="changelist" from="{STAMP}"/>'
        self.put_document("/changelist.xml", head, list(changes))

    def change(self, kind: str, target: str, body: bytes, *, at: str, more: str = "") -> str:
        said = "" if kind == "deleted" else facts(body)
        return (
            f"<url><loc>{self.url}{target}</loc><lastmod>{at}</lastmod>"
            f'<rs:md change="{kind}" datetime="{at}"{said}/>{more}</url>'
        )

    def put_document(self, target: str, head: str, entries: list[str]) -> None:
        lines = (f"\n{entry}" for entry in entries)
        self.put(target, written(f"\n{head}", lines).encode(), "application/xml")

    def pointer(self, target: str, capability: str) -> str:
        return f'<url><loc>{self.url}{target}</loc><rs:md capability="{capability}"/></url>'

    def entry(self, target: str, body: bytes, *, uri: str = "", lastmod: str = STAMP) -> str:
        where = escape(uri or self.url + target)
        md = f"<rs:md{facts(body)}/>"
        return f"<url><loc>{where}</loc><lastmod>{lastmod}</lastmod>{md}</url>"


@contextlib.contextmanager
def dead_address() -> Iterator[str]:
    """Give a loopback address at which nobody listens, reserved while the block runs."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"
