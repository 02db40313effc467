"""What the entry of a resource adds to its answer: digests (RFC 9530) and links (RFC 8288)."""

import base64
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving.applications import find_tree
from resourcesync.discovery.links import find_targets
from resourcesync.model.digests import Digest, parse_digest_field
from resourcesync.model.entries import Link
from resourcesync.server.entry_fields import MAX_LINKS_BYTES, format_links
from tests.support.in_memory import ManualClock
from tests.support.servers.asgi import Answer, ask

BODY = b"0123456789" * 20_000
BASE = "https://museum.example/"


def digest_field(body: bytes, algorithm: str = "sha-256") -> str:
    value = hashlib.new(algorithm.replace("-", ""), body).digest()
    return f"{algorithm}=:{base64.b64encode(value).decode()}:"


def publish(tree: Path, **chosen: object) -> None:
    # Its clock is behind that of the disk, so that no file is too new to be known by its times.
    publish_tree(tree, {"url": BASE, **chosen}, clock=ManualClock())


def serve(tree: Path) -> ASGIApp:
    return find_tree(tree).application(SystemClock())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "ü b").mkdir(parents=True)
    (tree / "big.bin").write_bytes(BODY)
    (tree / "ü b/small.txt").write_bytes(b"small")
    (tree / "empty.txt").write_bytes(b"")
    (tree / "index.html").write_bytes(b"<p>")
    (tree / "robots.txt").write_bytes(b"User-agent: *\n")
    return tree


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/big.bin", BODY),
        ("/%C3%BC%20b/small.txt", b"small"),
        ("/empty.txt", b""),
        ("/index.html", b"<p>"),
        ("/", b"<p>"),
    ],
)
def test_a_listed_resource_is_sent_with_its_digest(tree: Path, path: str, body: bytes) -> None:
    publish(tree)
    app = serve(tree)

    answer, head = ask(app, path), ask(app, path, method="HEAD")

    assert (answer.status, answer.body) == (200, body)
    assert answer.fields["repr-digest"] == head.fields["repr-digest"] == digest_field(body)


def test_a_part_is_sent_with_the_digest_of_the_whole_and_what_is_no_resource_without(
    tree: Path,
) -> None:
    publish(tree)
    app = serve(tree)
    whole = ask(app, "/big.bin").fields

    for ranges in ("bytes=5-9", "bytes=-10"):
        part = ask(app, "/big.bin", fields={"range": ranges})
        assert (part.status, part.fields["repr-digest"]) == (206, digest_field(BODY))

    without = [
        ask(app, "/big.bin", fields={"range": "bytes=999999-"}),
        ask(app, "/big.bin", fields={"if-none-match": whole["etag"]}),
        ask(app, "/big.bin", fields={"if-match": '"x"'}),
        ask(app, "/resourcesync/resourcelist.xml"),
        ask(app, "/resourcesync/resourcelist.xml", fields={"accept-encoding": "gzip"}),
        ask(app, "/.well-known/resourcesync"),
        ask(app, "/robots.txt"),
        ask(app, "/nothing"),
    ]
    assert [answer.status for answer in without] == [416, 304, 412, 200, 200, 200, 200, 404]
    assert all("repr-digest" not in answer.fields for answer in without)


def test_a_file_that_changed_since_it_was_published_has_no_digest_until_it_is_again(
    tree: Path,
) -> None:
    publish(tree)
    for body in (b"y" * len(BODY), BODY):  # the old bytes, too, are in another file now
        (tree / "big.bin").write_bytes(body)
        answer = ask(serve(tree), "/big.bin")
        assert (answer.body, answer.fields.get("repr-digest")) == (body, None)

        publish(tree)
        assert ask(serve(tree), "/big.bin").fields["repr-digest"] == digest_field(body)

    found = (tree / "big.bin").stat()
    (tree / "big.bin").write_bytes(b"z" * len(BODY))
    os.utime(tree / "big.bin", ns=(found.st_atime_ns, found.st_mtime_ns))
    assert "repr-digest" not in ask(serve(tree), "/big.bin").fields


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [
        ("sha-256=10", ["sha-256"]),
        ("sha-512=10", ["sha-512"]),
        ("md5=10", ["sha-256", "sha-512"]),
        ("sha-256=0", ["sha-512"]),
        ("sha-256=0, sha-512=0", []),
        ("not; a, dictionary =", ["sha-256", "sha-512"]),
    ],
)
def test_the_client_says_which_digest_it_wants(tree: Path, wanted: str, sent: list[str]) -> None:
    publish(tree, hashes=("sha-256", "sha-512"))

    answer = ask(serve(tree), "/big.bin", fields={"want-repr-digest": wanted})

    digests = parse_digest_field(answer.fields.get("repr-digest", "")) or ()
    assert [digest.algorithm for digest in digests] == sent
    assert set(digests) <= {
        Digest("sha-256", hashlib.sha256(BODY).hexdigest()),
        Digest("sha-512", hashlib.sha512(BODY).hexdigest()),
    }


def test_a_catalogue_that_cannot_be_read_any_more_costs_the_digests_alone(tree: Path) -> None:
    publish(tree)
    app = serve(tree)
    for path in (tree / ".resourcesync").glob("catalogue.db*"):
        path.write_bytes(b"no catalogue at all" * 99)

    answer = ask(app, "/big.bin")

    assert (answer.status, answer.body) == (200, BODY)
    assert "repr-digest" not in answer.fields


def linked(answer: Answer, relation: str) -> tuple[str, ...]:
    return find_targets(answer.fields["link"], relation, BASE)


@pytest.mark.founding("0.9 §3", "Other registered relations may be used", "`publish --link`")
def test_the_links_of_an_entry_are_sent_with_its_resource(tree: Path) -> None:
    rules = ("describedby:{path}.xml always type=application/xml", "license:https://l.example/by")
    publish(tree, links=rules)
    app = serve(tree)

    answers = [ask(app, "/big.bin"), ask(app, "/big.bin", method="HEAD")]
    for answer in answers:
        assert linked(answer, "describedby") == (f"{BASE}big.bin.xml",)
        assert linked(answer, "license") == ("https://l.example/by",)
        assert linked(answer, "resourcesync") == (f"{BASE}resourcesync/capabilitylist.xml",)
        assert answer.names.count("link") == 1
    assert 'rel="describedby"; type="application/xml"' in answers[0].fields["link"]
    assert "license" not in ask(app, "/resourcesync/resourcelist.xml").fields.get("link", "")


def test_links_that_cannot_stand_in_a_header_are_left_out_and_there_is_a_limit() -> None:
    good = Link(rel="item", href="https://h.example/%C3%A9?a=b&c")
    bad = [
        Link(rel="item", href="https://h.example/a>b"),
        Link(rel="item", href="https://h.example/é"),
        Link(rel="item", href="relative"),
        Link(rel="item", href="https://h.example/\r\nx: y"),
        Link(rel='a"; title="', href="https://h.example/"),
        Link(rel="", href="https://h.example/"),
    ]
    odd_type = Link(rel="item", href="https://h.example/t", media_type='a"b')

    assert format_links([*bad, good, odd_type]) == (
        b'<https://h.example/%C3%A9?a=b&c>; rel="item", <https://h.example/t>; rel="item"'
    )
    many = format_links([Link(rel="item", href=f"https://h.example/{n}") for n in range(10_000)])
    assert MAX_LINKS_BYTES * 0.9 < len(many) <= MAX_LINKS_BYTES
    assert format_links([Link(rel="item", href="https://h.example/" + "x" * 9_000)]) == b""


@given(st.text(), st.text(), st.text())
def test_no_link_is_too_odd_to_be_left_out(rel: str, href: str, media_type: str) -> None:
    value = format_links([Link(rel=rel, href=href, media_type=media_type)])

    assert b"\r" not in value
    assert b"\n" not in value
