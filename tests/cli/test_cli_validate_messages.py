"""``validate`` of a file that is a recorded message of a hub."""

import json
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from resourcesync.websub.messages import link_field, sign
from tests.support.commands.command_line import Said
from tests.support.rules.judged import OPEN, code, codes

BODY = (
    OPEN
    + '<rs:ln rel="up" href="http://h.example/capabilitylist.xml"/>\n'
    + '<rs:md capability="change-notification"/>\n'
    + '<url><loc>http://h.example/a</loc><rs:md change="updated"'
    + ' datetime="2026-03-01T01:00:00Z"/></url>\n</urlset>\n'
).encode()
LINKS = link_field("http://h.example/changes", ["http://hub.example/"])
ASKED = "GET /me?hub.mode=subscribe&hub.challenge=abc HTTP/1.1\r\n\r\n"


def record(name: str, body: bytes = BODY, links: str = LINKS, secret: bytes = b"s3cret") -> str:
    head = f"POST /me HTTP/1.1\r\nLink: {links}\r\nX-Hub-Signature: {sign(secret, body)}\r\n\r\n"
    Path(name).write_bytes(head.encode() + body)
    return name


@pytest.fixture(autouse=True)
def secret(said: Said) -> str:
    Path("secret.txt").write_bytes(b"s3cret\n")
    return "secret.txt"


def test_a_notification_is_judged_with_its_links_its_signature_and_its_body(
    said: Said, secret: str
) -> None:
    name = record("message.http")

    assert run(["validate", name, "--hub-secret-file", secret]) == 0
    assert said.readouterr().out == (
        "Checked 1 message, 1 document, 1 entry: 0 errors, 0 warnings\n"
    )

    bad = record("message.http", BODY.replace(b"T01:00:00Z", b" 01:00"), "<a>", b"another")
    assert run(["validate", bad, "--hub-secret-file", secret]) == 1
    out = said.readouterr().out
    assert codes(out) == [code("NT02"), code("NT02"), code("NT03"), code("G17")]
    assert "message.http:9:" in out  # the line of the file, not that of the body
    assert run(["validate", bad, "--select", "NT03"]) == 0, "nobody told the secret"


def test_a_verification_is_judged_by_its_answer(said: Said) -> None:
    Path("asked.http").write_text(ASKED + "HTTP/1.1 200 OK\r\n\r\nabd")

    assert run(["validate", "asked.http"]) == 1

    out = said.readouterr().out
    assert codes(out) == [code("NT04"), code("NT05")]
    assert "Checked 1 message, 0 documents, 0 entries: 2 errors" in out


def test_a_message_is_an_event_for_programs(said: Said) -> None:
    Path("asked.http").write_text(ASKED)
    run(["validate", record("message.http"), "asked.http", "--json"])

    lines = [json.loads(line) for line in said.readouterr().out.splitlines()]
    told = [(line["uri"], line["kind"]) for line in lines if line["type"] == "message"]
    assert told == [("message.http", "notification"), ("asked.http", "verification")]
    assert (lines[-1]["messages"], lines[-1]["documents"], lines[-1]["errors"]) == (2, 1, 1)


@pytest.mark.parametrize("form", ["junit", "html", "sarif", "github"])
def test_a_message_has_its_place_in_every_format(said: Said, form: str) -> None:
    Path("asked.http").write_text(ASKED)

    assert run(["validate", "asked.http", "--format", form]) == 1
    assert "asked.http" in said.readouterr().out


def test_what_is_cut_short_or_has_no_secret_is_an_error(said: Said) -> None:
    Path("cut.http").write_text("POST /me HTTP/1.1\r\nContent-Length: 9\r\n\r\nshort")
    assert run(["validate", "cut.http"]) == 5
    assert "ends before its body does" in said.readouterr().err

    Path("empty.txt").write_text("\n")
    for file in ("empty.txt", "not-there.txt"):
        assert run(["validate", record("message.http"), "--hub-secret-file", file]) == 2
        assert file in said.readouterr().err
