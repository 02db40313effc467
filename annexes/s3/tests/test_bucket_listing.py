"""Keys of a bucket as a server lists them: in pages, each exactly, or the listing ends in an error.

The server keeps keys as S3 does; SeaweedFS keeps them as paths of files.
"""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote_plus, urlsplit

import pytest

from resourcesync.errors import StorageError
from resourcesync_s3.bucket import Bucket
from resourcesync_s3.listing import read_page
from tests.support.servers.listening import serving

KEYS = [
    b"/lead",
    b"a",
    b"a//b",
    b"a b",
    b"a+b",
    b"a%41",
    b"./x",
    b"x/..",
    b"dir/",
    b"t\ty",
    b"\xff",
]
KEPT = ["a", "a b", "a+b", "a%41"]


class Listings(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.busy = 0  # requests that are answered with 503 before the next page
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Listings

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.server.busy:
            self.server.busy -= 1
            self.send_error(503)
            return
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        at = int(query.get("continuation-token", 0))
        prefix = query.get("prefix", "").encode()
        keys = [key for key in KEYS if (b"p/" + key).startswith(prefix)]
        body = page([b"p/" + key for key in keys[at : at + 2]], at + 2 if keys[at + 2 :] else 0)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def page(keys: list[bytes], following: int = 0) -> bytes:
    rows = "".join(
        f"<Contents><Key>{quote_plus(key)}</Key><Size>3</Size><ETag>&#34;e&#34;</ETag>"
        "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        for key in keys
    )
    more = f"<NextContinuationToken>{following}</NextContinuationToken>" if following else ""
    is_cut = "true" if following else "false"
    return (
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><EncodingType>url'
        f"</EncodingType><IsTruncated>{is_cut}</IsTruncated>{more}{rows}</ListBucketResult>"
    ).encode()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listings]:
    found = Listings()
    with serving(found) as origin:
        monkeypatch.setenv("AWS_ENDPOINT_URL", origin)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        yield found


def test_usual_keys_are_listed_exactly_and_each_odd_one_is_told(server: Listings) -> None:
    server.busy = 2
    odd: dict[str, str] = {}
    bucket = Bucket("s3://museum/p", patience=20, pauses=(0.001, 0.01))
    assert [found.key for found in bucket.list("", odd.__setitem__)] == KEPT
    assert sorted(odd) == ["./x", "/lead", "a//b", "dir/", "t\ty", "x/..", "\udcff"]
    assert len(server.asked) == 2 + 6
    assert [found.key for found in bucket.list("a ")] == ["a b"]
    assert all("X-Amz-Signature=" in target for target in server.asked)


def test_what_anybody_may_list_is_listed_without_a_signature(
    server: Listings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    assert [found.key for found in Bucket("s3://museum/p", patience=1).list("")] == KEPT
    assert not any("X-Amz" in target for target in server.asked)


@pytest.mark.parametrize(
    "body",
    [
        page([b"a"])[:-20],
        page([b"a"], 2).replace(b"NextContinuationToken", b"Next"),
        page([b"a"]).replace(b"<Size>3</Size>", b""),
        page([b"a"]).replace(b"2026-01-01T", b"yesterday"),
        b"<html></html>",
        b"",
    ],
)
def test_a_page_that_is_not_whole_is_no_page(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_page(body)


def test_a_server_that_stays_busy_is_told(server: Listings) -> None:
    server.busy = 1_000
    with pytest.raises(StorageError, match="failed while listing") as caught:
        list(Bucket("s3://museum/p", patience=0.1, pauses=(0.01, 0.01)).list(""))
    assert ("got", "503") in caught.value.evidence
