"""Servers on loopback that do as they are told, and an authority of the tests' own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.support.servers.hostile_server import HostileServer


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


@pytest.fixture
def other() -> Iterator[HostileServer]:
    with HostileServer("127.0.0.2") as running:
        yield running


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)
