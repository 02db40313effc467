"""The address of another system that has a secret in it is refused, and shown nowhere."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from resourcesync.errors import ConfigurationError
from resourcesync.wiring.account_values import check_address
from tests.support.command_line import Said

SECRET = "hush-hush"
SECRETIVE = [
    f"postgresql://me:{SECRET}@h.example/db",
    f"postgresql://me:{SECRET}/x@h.example/db",
    f"postgresql://h.example/db?password={SECRET}",
    f"postgresql:host=h.example password = {SECRET}",
    f"redis://:{SECRET}@h.example/0",
    f"redis://h.example/0?db=1&password={SECRET}",
    f"elasticsearch:https://me:{SECRET}@h.example/i",
    f"oai:https://me:{SECRET}@h.example/oai",
    f"sitemap:https://me:{SECRET}@h.example/",
    f"sse:https://me:{SECRET}@h.example/events",
]


@pytest.mark.parametrize("address", SECRETIVE)
@pytest.mark.parametrize("how", [("--url", "https://h/"), ("--json",)])
def test_a_secret_in_an_address_is_neither_told_nor_noted(
    address: str, how: tuple[str, ...], said: Said
) -> None:
    code = run(["publish", address, "--out", "out", *how])

    told = said.readouterr()
    assert code == 2
    assert "a secret is never in an address" in told.out + told.err
    assert SECRET not in told.out + told.err
    assert not Path("out").exists()


def test_a_secret_in_an_address_that_is_posted_to_is_not_told(said: Said) -> None:
    assert run(["catalogue", "post", SECRETIVE[6], "--json"]) == 2

    told = said.readouterr()
    assert "a secret is never in an address" in told.out + told.err
    assert SECRET not in told.out + told.err


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me@h.example:5432/db",
        "postgresql://h.example:5432,i.example:5433/db?application_name=a@b",
        "postgresql:host=/run/sockets passfile=/me/passwords",
        "elasticsearch:https://[::1]:9200/i@j",
        "oai:https://h.example:8080/oai?of=a:b@c",
        "oai:https://h.example/a:b@c",
        "feed:changes:a@b.ndjson",
        "redis://h.example",
    ],
)
def test_addresses_without_a_secret_are_taken(address: str) -> None:
    check_address(address)


def test_the_message_has_no_address() -> None:
    with pytest.raises(ConfigurationError) as found:
        check_address(SECRETIVE[0])

    assert "h.example" not in f"{found.value} {found.value.evidence} {found.value.hint}"
