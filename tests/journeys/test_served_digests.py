"""Digests that a server sends with its answers (RFC 9530), where the list has no hash."""

import base64
import hashlib
from pathlib import Path

import pytest

from resourcesync import Mirror
from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving import applications
from resourcesync.cli.main import run
from resourcesync.destination.reports import MirrorState
from resourcesync.settings.mirror import Network
from tests.support.commands.command_line import Said, rows
from tests.support.in_memory import ManualClock
from tests.support.servers.hostile_server import HostileServer, answer
from tests.support.sources.scripted_source import ScriptedSource
from tests.support.worlds.site_maps import urlset

BODY = b"what is served " * 100
OTHER = b"something else"


def digest_field(body: bytes, algorithm: str = "sha-256") -> str:
    value = hashlib.new(algorithm.replace("-", ""), body).digest()
    return f"{algorithm}=:{base64.b64encode(value).decode()}:"


def put(source: ScriptedSource, **fields: str) -> None:
    source.put("/a", BODY, digest="", length=False, serving=False)
    source.server.on("/a", answer("200 OK", BODY, **fields))


def wanted(source: ScriptedSource, target: str = "/a") -> list[str | None]:
    asked = [a for a in source.server.asked if a.target == target]
    return [a.fields.get("want-repr-digest") for a in asked]


def fixity(source: ScriptedSource) -> object:
    [item] = [fields for event, fields in source.events if event == "item"]
    return item["fixity"]


@pytest.mark.parametrize(
    "fields",
    [
        {"Repr_Digest": digest_field(BODY)},
        {"Repr_Digest": digest_field(BODY, "sha-512")},
        {"Repr_Digest": f"{digest_field(BODY, 'sha-512')}, {digest_field(BODY)}, md5=:AA==:"},
        {"Content_Digest": digest_field(BODY)},
        {"Repr_Digest": digest_field(BODY), "Content_Digest": digest_field(BODY)},
        {"Repr_Digest": digest_field(BODY), "Content_Encoding": "identity"},
    ],
)
def test_a_copy_is_verified_by_the_digest_that_its_server_sends(
    source: ScriptedSource, fields: dict[str, str]
) -> None:
    put(source, **fields)

    report = source.pull()

    assert wanted(source) == ["sha-256=10"]
    assert (report.state, report.created) == (MirrorState.IN_SYNC, 1)
    assert (
        report.fetched.verified,
        report.fetched.server_verified,
        report.fetched.weak,
        report.fetched.unverified,
    ) == (0, 1, 0, 0)
    assert fixity(source) == "server-verified"
    assert source.file("/a") == BODY


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"Repr_Digest": "md5=:AAAA:"},
        {"Repr_Digest": digest_field(OTHER)[:-2]},
        {"Repr_Digest": "sha-256=:AAAA:"},
        {"Repr_Digest": "sha-256=abc"},
        {"Repr_Digest": "\xe4;;,, ,=" + "(" * 3_000},
        {"Content_Digest": ","},
    ],
)
def test_without_a_digest_that_can_be_read_a_copy_stays_unverified(
    source: ScriptedSource, fields: dict[str, str]
) -> None:
    put(source, **fields)

    report = source.pull()

    found = (report.state, report.fetched.server_verified, report.fetched.unverified)
    assert found == (MirrorState.IN_SYNC, 0, 1)
    assert source.file("/a") == BODY
    [item] = [fields for event, fields in source.events if event == "item"]
    is_told = bool(fields) and fields != {"Repr_Digest": "md5=:AAAA:"}
    assert item.get("bad_digest", False) == is_told


@pytest.mark.parametrize(
    "fields",
    [
        {"Repr_Digest": digest_field(OTHER)},
        {"Repr_Digest": digest_field(OTHER, "sha-512")},
        {"Content_Digest": digest_field(OTHER)},
        {"Repr_Digest": digest_field(BODY), "Content_Digest": digest_field(OTHER)},
    ],
)
def test_an_answer_that_its_own_digest_contradicts_is_never_kept(
    source: ScriptedSource, fields: dict[str, str]
) -> None:
    put(source)
    source.pull()
    source.publish("2026-01-02T00:00:00Z")
    source.server.on("/a", answer("200 OK", b"a damaged body", **fields))

    report = source.pull()

    assert (report.state, report.failed) == (MirrorState.BEHIND, 1)
    assert report.failures[0].code == "digest-mismatch"
    assert "the server's own digest says" in report.failures[0].reason
    assert len(wanted(source)) == 2, "once more past the caches"
    assert source.file("/a") == BODY
    assert source.temporary() == []


def test_lenient_keeps_contradicted_bytes_as_unverified_and_is_not_in_sync(
    source: ScriptedSource,
) -> None:
    put(source, Repr_Digest=digest_field(OTHER))

    report = source.pull(verify="lenient")

    found = (report.state, report.fetched.unverified, report.retained.contradicting)
    assert found == (MirrorState.BEHIND, 1, 1)
    assert report.fetched.server_verified == 0


def test_a_body_in_two_parts_is_verified_as_a_whole_by_repr_digest_alone(
    source: ScriptedSource,
) -> None:
    body = bytes(range(256)) * 1_000
    put(source)
    (whole,) = answer("200 OK", body, ETag='"x"', Repr_Digest=digest_field(body))
    assert isinstance(whole, bytes)
    at = len(body) // 2
    rest = answer(
        "206 Partial Content",
        body[at:],
        ETag='"x"',
        Content_Range=f"bytes {at}-{len(body) - 1}/{len(body)}",
        Repr_Digest=digest_field(body),
        Content_Digest=digest_field(body[at:]),
    )
    source.server.on("/a", [whole[: len(whole) - at], 0.05, "close"], rest)

    report = source.pull(Network(retries=1, timeout=2.0))

    assert source.ranges("/a") == [None, f"bytes={at}-"]
    assert (source.file("/a"), report.fetched.server_verified) == (body, 1)


def test_a_plain_sitemap_says_that_servers_verified_its_copies_and_an_audit_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    page = digest_field(b"page")
    with HostileServer() as server:
        site = urlset(*((f"{server.origin}/{name}.html", "2025-01-01") for name in "abc"))
        server.on("/sitemap.xml", answer("200 OK", site, Content_Type="text/xml"))
        for name in "abc":
            server.on(f"/{name}.html", answer("200 OK", b"page", Repr_Digest=page))
        server.on("/c.html", answer("200 OK", b"page"))

        assert run(["pull", f"{server.origin}/sitemap.xml", "m"]) == 0
        pulled = capsys.readouterr().out
        assert run(["why", "m", "a.html"]) == 0
        explained = capsys.readouterr().out
        assert run(["audit", "m", "--json"]) == 0
        audited = rows(capsys)[-1]
        assert run(["status", "m", "--json"]) == 0

    assert "(3 created, 0 of 3 hashes verified, 2 by the server's digests)" in pulled
    assert ", verified by the server's digest" in explained
    assert (audited["accuracy"], audited["unproven"]) == (None, 3)


def test_a_mirror_of_our_own_plain_sitemap_is_verified_by_the_digests_that_we_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "tree"
    root.mkdir()
    for name in ("a.txt", "b c.txt"):
        (root / name).write_text(name)
    late = applications.LateApplication()
    with applications.ServerThread(late) as running:
        chosen = {"url": running.uri, "sitemap": True}
        publish_tree(root, chosen, clock=ManualClock())  # behind the times of the files
        late.application = applications.find_tree(root).application(SystemClock())
        sitemap = f"{running.uri.rstrip('/')}/resourcesync-sitemap.xml"

        report = Mirror(sitemap, "copy").pull()

    found = (report.fetched.server_verified, report.fetched.verified, report.fetched.unverified)
    assert found == (2, 0, 0)
    assert (tmp_path / "copy/b c.txt").read_text() == "b c.txt"
