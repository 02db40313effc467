"""A real PostgreSQL for the tests of a worker, and a database of its own for each."""

import os
from collections.abc import Iterator
from itertools import count

import pytest

from tests.support.accounts.postgres_tables import Records
from tests.support.servers.postgres_server import NoServerError, Server, running

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")
    # A server for each worker: what may be pruned depends on all transactions of a server.
    try:
        with running() as found:
            yield found
    except NoServerError as error:
        pytest.skip(f"no PostgreSQL: {error}")


@pytest.fixture
def address(server: Server) -> Iterator[str]:
    import psycopg

    name = f"rs_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(server.address(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield server.address(name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def records(address: str) -> Iterator[Records]:
    found = Records(address)
    yield found
    found.close()
