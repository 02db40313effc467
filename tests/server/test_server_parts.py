"""The server with the compiled parts (httptools, uvloop), and without them."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.servers.listening import get

PROGRAM = """
import asyncio, sys
if sys.argv[2] == "plain":
    sys.modules["httptools"] = sys.modules["uvloop"] = None  # as if they were not installed
from pathlib import Path
from starlette.responses import PlainTextResponse
from resourcesync.adapters.system import SystemClock
from resourcesync.server.app import Application, ServedSource
from resourcesync.server.uvicorn_server import serve_forever

async def parts(scope, receive, send):
    loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
    parser = "httptools" if sys.modules.get("httptools") else "h11"
    if scope["type"] == "http":
        await PlainTextResponse(f"{parser} {loop}")(scope, receive, send)

root = Path(sys.argv[1])
served = ServedSource(
    root=root, documents=root / "resourcesync", well_known=root / "description.xml",
    capability_list_uri="http://x/c.xml", media_type=lambda _: "",
)
app = Application(served, clock=SystemClock(), mounts={"/parts": parts})
serve_forever(app, "localhost", 0, on_ready=lambda uri: print(uri, flush=True))
print("returned", flush=True)
"""
KINDS = pytest.mark.parametrize(
    "kind",
    [
        "plain",
        pytest.param(
            "compiled",
            marks=pytest.mark.skipif(
                find_spec("httptools") is None or find_spec("uvloop") is None,
                reason="httptools and uvloop are not installed",
            ),
        ),
    ],
)
PARTS = {"plain": b"h11 asyncio", "compiled": b"httptools uvloop"}
LARGE = bytes(range(256)) * 8192


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served")
    (root / "one.txt").write_bytes(b"0123456789")
    (root / "empty.txt").write_bytes(b"")
    (root / "shelf").mkdir()
    (root / "shelf" / "large.bin").write_bytes(LARGE)
    (root / "resourcesync").mkdir()
    (root / "resourcesync" / "capabilitylist.xml").write_bytes(b"<urlset/>")
    return root


@contextmanager
def running(root: Path, kind: str, number: signal.Signals) -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(root), kind], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(number)
            said = process.stdout.read()
    assert said == "returned\n"
    assert process.returncode == 0


@KINDS
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_each_kind_of_server_answers_alike_and_ends_in_order(
    root: Path, kind: str, number: signal.Signals
) -> None:
    with running(root, kind, number) as uri:
        parts = get(uri, "/parts")[1]
        status, body, fields = get(uri, "/one.txt")
        head = get(uri, "/one.txt", method="HEAD")
        part = get(uri, "/shelf/large.bin", range="bytes=1000-300999")
        same = get(uri, "/one.txt", if_none_match=fields["etag"])
        whole = get(uri, "/shelf/large.bin")
        empty = get(uri, "/empty.txt")
        absent = get(uri, "/two.txt")
        document = get(uri, "/resourcesync/capabilitylist.xml", accept_encoding="gzip")

    assert parts == PARTS[kind]
    assert (status, body, "server" in fields) == (200, b"0123456789", False)
    assert head[:2] == (200, b"")
    assert (head[2]["content-length"], head[2]["etag"]) == ("10", fields["etag"])
    assert part[:2] == (206, LARGE[1000:301000])
    assert same[:2] == (304, b"")
    assert whole[:2] == (200, LARGE)
    assert (empty[:2], empty[2]["content-length"]) == ((200, b""), "0")
    assert absent[0] == 404
    assert document[:2] == (200, b"<urlset/>")
