"""nginx in front as a reverse proxy, and requests that two servers could read in two ways."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving.applications import LateApplication, find_tree
from resourcesync.server.connection_limits import ConnectionLimits
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.servers import nginx
from tests.support.servers.listening import get
from tests.support.servers.real_sockets import connected

SECRET = b"nobody asked for this"
IMPATIENT = ConnectionLimits(connections=50, client_timeout=0.3, keep_alive=1, grace=1)

SMUGGLED = b"GET /secret.txt HTTP/1.1\r\nHost: x\r\n\r\n"
AMBIGUOUS = {
    "length and chunks": b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks in disguise": b"Content-Length: %d\r\nTransfer-Encoding: xchunked\r\n\r\n",
    "chunks twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n",
    "a list of lengths": b"Content-Length: 0, %d\r\n\r\n",
    "a length with a sign": b"Content-Length: +%d\r\n\r\n",
    "a blank before the colon": b"Content-Length : %d\r\n\r\n",
    "a folded field": b"X: y\r\n Content-Length: %d\r\nContent-Length: %d\r\n\r\n",
    "a bare line feed": b"X: y\nContent-Length: %d\r\n\r\n",
    "a bare return": b"X: y\rContent-Length: %d\r\n\r\n",
    "a NUL": b"X: \x00\r\nContent-Length: %d\r\n\r\n",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("proxied")
    for number in range(60):
        (tree / f"{number}.txt").write_text(str(number))
    (tree / "secret.txt").write_bytes(SECRET)
    return tree


@pytest.fixture(scope="module")
def server(tree: Path) -> Iterator[ServerThread]:
    publish_tree(tree, {"url": "https://museum.example/"}, clock=SystemClock())
    late = LateApplication()
    with ServerThread(late, limits=IMPATIENT) as server:
        late.application = find_tree(tree).application(SystemClock())
        yield server


@pytest.fixture(scope="module")
def front(server: ServerThread, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not nginx.installed():
        pytest.skip("nginx is not installed")
    run = tmp_path_factory.mktemp("front") / "run"
    with nginx.proxying(server.uri, run) as url:
        yield url


def say(address: str, head: bytes, number: int) -> bytes:
    """Send a request that hides another one; return all that is answered until the end."""
    fields = head % ((number,) * head.count(b"%d"))
    with connected(address, timeout=0.7) as client:
        client.sendall(b"GET /1.txt HTTP/1.1\r\nHost: x\r\n" + fields + SMUGGLED)
        got = b""
        try:
            while part := client.recv(65536):
                got += part
        except (ConnectionError, TimeoutError):
            pass
    return got


@pytest.mark.parametrize("head", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_a_request_that_can_be_read_in_two_ways_hides_no_other(
    server: ServerThread, head: bytes
) -> None:
    answer = say(server.uri, head, len(SMUGGLED))

    assert SECRET not in answer
    assert answer.count(b"HTTP/1.1 ") <= 1
    assert b"HTTP/1.1 200" not in answer


@pytest.mark.parametrize("head", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_nothing_is_smuggled_past_a_proxy_either(front: str, head: bytes) -> None:
    answer = say(front, head, len(SMUGGLED))

    assert SECRET not in answer
    assert answer.count(b"HTTP/1.1 ") <= 1


def test_behind_a_proxy_all_is_as_without(front: str, server: ServerThread, tree: Path) -> None:
    lists = "/resourcesync/resourcelist.xml"
    for path in ("/1.txt", lists, "/.well-known/resourcesync", "/", "/robots.txt", "/nope"):
        for fields in ({}, {"Accept_Encoding": "gzip"}, {"Range": "bytes=1-3"}):
            through, direct = (get(front, path, **fields), get(server.uri, path, **fields))
            assert through[:2] == direct[:2]
            for name in ("etag", "content-range", "content-encoding", "vary", "link", "location"):
                assert through[2].get(name) == direct[2].get(name), (path, name)
    status, packed, fields = get(front, lists, Accept_Encoding="gzip", Host="evil.example")
    assert status == 200
    assert gzip.decompress(packed) == (tree / lists[1:]).read_bytes()
    assert b"evil" not in gzip.decompress(packed)
    assert get(front, lists, Accept_Encoding="gzip", If_None_Match=fields["etag"])[0] == 304
    assert get(front, "/../secret", Host="x")[0] in {400, 404}


def test_what_only_operators_are_told_is_not_told_to_the_public(server: ServerThread) -> None:
    for path in ("/metrics", "/livez", "/readyz", "/hub", "/publish"):
        assert get(server.uri, path)[0] == 404
