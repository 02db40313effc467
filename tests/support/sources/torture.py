"""A Source on real sockets that misbehaves in many ways at once, and may be healed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Final, Self

from tests.support.documents.written import sha256, written
from tests.support.servers.hostile_server import CLOSE, Answer, Asked, HostileServer, Step, answer
from tests.support.sources.scripted_source import serve
from tests.support.sources.torture_ways import ELSEWHERE, Way, ways

GOOD: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class BadEntry:
    uri: str  # what `why` is asked for
    code: str  # the code that is told
    xml: str

    @property
    def known_as(self) -> str:
        """What a mirror remembers of the URI: no more of it than a URI may have."""
        return self.uri[:2_048]


def entry(uri: str, body: bytes, *, has_length: bool = True) -> str:
    length = f' length="{len(body)}"' if has_length else ""
    return f'<url><loc>{escape(uri)}</loc><rs:md hash="{sha256(body)}"{length}/></url>'


def bad_entries(origin: str, foreign: str) -> Iterator[BadEntry]:
    for uri, code in (
        (f"{origin}/../../escaped.txt", "URL_DOT_SEGMENT"),
        (f"{origin}/d/%2e%2e/%2e%2e/escaped.txt", "URL_DOT_SEGMENT"),
        (f"{origin}/a%00b", "URL_ILLEGAL"),
        (f"{origin}/a%0ab", "URL_ILLEGAL"),
        (f"{origin}/100%", "URL_ILLEGAL"),
        (f"{origin}/..%5c..%5cescaped\\x", "URL_ILLEGAL"),
        (f"{origin}/{'x' * 2_100}", "uri-too-long"),
        (f"{foreign}/foreign.txt", "foreign"),
        ("https://museum.example/foreign.txt", "foreign"),
        (origin.replace("http://", "http://user:secret@") + "/x", "URL_USERINFO"),
        ("file:///etc/passwd", "URL_SCHEME"),
        ("ftp://127.0.0.1/x", "URL_SCHEME"),
        ("http://127.1/x", "URL_HOST"),
    ):
        yield BadEntry(uri=uri, code=code, xml=entry(uri, b"bad"))
    yield BadEntry(
        uri="entry at line 2", code="entry-invalid", xml='<url><rs:md length="3"/></url>'
    )
    yield BadEntry(
        uri=f"{origin}/1",
        code="entry-invalid",
        xml=f"<url><loc>{origin}/1</loc><loc>{origin}/2</loc></url>",
    )


AWKWARD: Final = (
    *("/case/A", "/case/a", "/case/a/", "/case/a/b", "/case/a//b", "/case/a?b", "/case/a%3Fb"),
    *("/.git/config", "/.resourcesync/state.db", "/CON", "/aux.txt", "/dot.", "/!9"),
    *("/..%2Fescaped", "/%2Fetc%2Fpasswd", "/caf%C3%A9", "/cafe%CC%81", f"/{'n' * 300}", "/?q"),
)
"""Targets that clash, or mean something, on some disk; all of them must be had."""


class TortureSource:
    def __init__(self) -> None:
        self.server = HostileServer()
        self.forbidden = HostileServer("127.0.0.2")  # a server that must never be connected
        origin = self.server.origin
        names = [f"/good/{number % 7}/{number:03}.txt" for number in range(GOOD)]
        # what is served well, by target
        self.good = {name: f"content of {name}\n".encode() for name in (*names, *AWKWARD)}
        self.good["/good/elsewhere"] = ELSEWHERE
        self.ways: list[Way] = ways(origin, self.forbidden.origin)  # how the rest is served
        # the entries that cannot be used
        self.refused = list(bad_entries(origin, self.forbidden.origin))
        self._publish()

    def __enter__(self) -> Self:
        self.server.__enter__()
        self.forbidden.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self.server.__exit__(*raised)
        self.forbidden.__exit__(*raised)

    @property
    def uri(self) -> str:
        return self.server.origin + "/"

    def uri_of(self, way: Way) -> str:
        return f"{self.server.origin}/bad/{way.name}"

    @property
    def expected(self) -> dict[str, bytes]:
        had = {self.uri_of(way): way.body for way in self.ways if not way.code}
        return had | {self.server.origin + target: body for target, body in self.good.items()}

    @property
    def listed(self) -> dict[str, bytes]:
        """Every resource that the list tells of in a way that can be used, by URI."""
        return self.expected | {self.uri_of(way): way.body for way in self.ways}

    def heal(self) -> None:
        for way in self.ways:
            self.server.on(f"/bad/{way.name}", serve(way.body))
        self.refused = []
        self._publish(at="2026-01-02T00:00:00Z")

    def _publish(self, at: str = "2026-01-01T00:00:00Z") -> None:
        for target, body in self.good.items():
            self.server.on(target, serve(body))
        if self.refused:
            for way in self.ways:
                self.server.on(f"/bad/{way.name}", *way.answers)
        origin, is_ill = self.server.origin, bool(self.refused)
        stamp = f'at="{at}" completed="{at}"'
        pointer = '<url><loc>{0}/{1}.xml</loc><rs:md capability="{2}"/></url>'
        self._document(
            "/.well-known/resourcesync",
            '<rs:md capability="description"/>' + pointer.format(origin, "caps", "capabilitylist"),
            lambda good: [answer("500 Oh"), good] if is_ill else [good],
        )
        self._document(
            "/caps.xml",
            '<rs:md capability="capabilitylist"/>'
            + pointer.format(origin, "no-such", "levitation")
            + pointer.format(origin, "list", "resourcelist"),
            lambda good: [_in_pieces(good)] if is_ill else [good],
        )
        parts = "".join(
            f"<sitemap><loc>{origin}/list-{n}.xml</loc><rs:md {stamp}/></sitemap>" for n in (1, 2)
        )
        self._document(
            "/list.xml", f'<rs:md capability="resourcelist" {stamp}/>' + parts, tag="sitemapindex"
        )
        for number, entries in enumerate(self._entries(), 1):
            self._document(
                f"/list-{number}.xml",
                f'<rs:md capability="resourcelist" {stamp}/>' + "".join(entries),
                lambda good: [_cut(good), good] if is_ill else [good],
            )

    def _entries(self) -> tuple[list[str], list[str]]:
        good = [entry(self.server.origin + target, body) for target, body in self.good.items()]
        bad = [entry(self.uri_of(way), way.body, has_length=way.has_length) for way in self.ways]
        middle = len(good) // 2
        # An entry that is repeated word for word is one entry.
        first = [*good[:middle], *(bad_entry.xml for bad_entry in self.refused), good[0]]
        return first, [*bad, *good[middle:]]

    def _document(
        self,
        target: str,
        inner: str,
        served: Callable[[list[Step]], list[Answer]] = lambda good: [good],
        tag: str = "urlset",
    ) -> None:
        body = written(inner, root=tag).encode()
        tag_of_it = f'"{sha256(body)[8:20]}"'
        whole = answer(body=body, Content_Type="application/xml", ETag=tag_of_it)

        def conditional(chosen: Answer) -> Answer:
            def script(asked: Asked) -> list[Step]:
                if asked.fields.get("if-none-match") == tag_of_it:
                    return answer("304 Not Modified", length=None, ETag=tag_of_it)
                return list(chosen(asked) if callable(chosen) else chosen)

            return script

        self.server.on(target, *map(conditional, served(whole)))


def _cut(good: list[Step]) -> list[Step]:
    (whole,) = good
    assert isinstance(whole, bytes)
    return [whole[: len(whole) * 2 // 3], CLOSE]


def _in_pieces(good: list[Step]) -> list[Step]:
    (whole,) = good
    assert isinstance(whole, bytes)
    steps: list[Step] = []
    for at in range(0, len(whole), 100):
        steps += [whole[at : at + 100], 0.01]
    return steps
