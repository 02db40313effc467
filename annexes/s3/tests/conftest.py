"""A place to work in, as the tests of the command line have it, and who stands before a server."""

from collections.abc import Iterator

import pytest

from resourcesync_s3 import store as objects
from tests.cli.conftest import here, said, source, tree
from tests.support.servers.interposed import Interposed, interposed
from tests.support.servers.object_server import ObjectServer

__all__ = ["here", "said", "source", "tree"]


@pytest.fixture
def between(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Interposed]:
    """Stand between us and the server; nothing is tried for longer than a second."""
    monkeypatch.setattr(objects, "PATIENCE", 1.0)
    with interposed(object_server.port) as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL", found.url)
        yield found
