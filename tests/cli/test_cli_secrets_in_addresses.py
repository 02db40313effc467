"""The address of another system that has a secret in it is refused, and shown nowhere."""

from pathlib import Path

import pytest

from resourcesync.app.publishing.accounts import check_account_address
from resourcesync.cli.main import run
from tests.support.commands.command_line import Said

SECRET = "hush-hush"
SECRETIVE = [
    f"postgresql://me:{SECRET}@h.example/db",
    f"postgresql://me:{SECRET}/x@h.example/db",
    f"postgresql://h.example/db?password={SECRET}",
    f"postgresql:host=h.example password = {SECRET}",
    f"elasticsearch:https://me:{SECRET}@h.example/i",
    f"oai:https://me:{SECRET}@h.example/oai",
    f"eventstreams:https://me:{SECRET}@h.example/events",
]


@pytest.mark.parametrize("address", SECRETIVE)
@pytest.mark.parametrize("how", [("--url", "https://h/"), ("--json",)])
def test_a_secret_in_an_address_is_neither_told_nor_noted(
    address: str, how: tuple[str, ...], said: Said
) -> None:
    code = run(["publish", address, "--out", "out", *how])

    told = said.readouterr()
    assert code == 2
    assert "an address must not contain a secret" in told.out + told.err
    assert SECRET not in told.out + told.err
    assert not Path("out").exists()


@pytest.mark.parametrize("scheme", ["postgresql", "elasticsearch:https"])
def test_who_wrote_a_secret_into_an_address_is_told_how_that_system_takes_it(
    scheme: str, said: Said
) -> None:
    run(["publish", f"{scheme}://me:{SECRET}@h.example/museum", "--url", "https://h/"])

    told = said.readouterr().err
    assert ("postgresql://HOST/DATABASE?user=NAME" in told) is (scheme == "postgresql")
    assert ("--with user=NAME" in told) is (scheme != "postgresql")
    assert "--with password=env:NAME" in told


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me@h.example:5432/db",
        "postgresql://h.example:5432,i.example:5433/db?application_name=a@b",
        "postgresql:host=/run/sockets passfile=/me/passwords",
        "elasticsearch:https://[::1]:9200/i@j",
        "oai:https://h.example:8080/oai?of=a:b@c",
        "oai:https://h.example/a:b@c",
        "eventstreams:https://h.example/a:b@c",
    ],
)
def test_addresses_without_a_secret_are_taken(address: str) -> None:
    check_account_address(address)


COMMANDS = [
    ["pull", "{}", "m"],
    ["explore", "{}"],
    ["validate", "{}"],
    ["validate", "{}", "--live"],
    ["audit", "{}"],
    ["doctor", "{}"],
    ["why", "https://h.example/a", "--from", "{}"],
    ["publish", ".", "--url", "{}"],
    ["publish", "{}", "--notify-only"],
    ["pull", "https://h.example/", "m", "-o", "proxy={}"],
]


@pytest.mark.parametrize("user", [f"me:{SECRET}", f"me:pa/{SECRET}", SECRET, f"a@b:{SECRET}"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("how", [(), ("--json",)])
def test_who_may_use_an_address_is_in_no_output_and_no_log(
    command: list[str], user: str, how: tuple[str, ...], said: Said
) -> None:
    arguments = [part.format(f"http://{user}@127.0.0.1:1/x?a=1") for part in command]

    assert run([*arguments, *how, "--log-file", "run.log"]) in {2, 4}

    told = said.readouterr()
    log = Path("run.log")
    assert SECRET not in told.out + told.err
    assert not log.exists() or SECRET not in log.read_text()
