"""``config``: begin, find, check and show the configuration file."""

from pathlib import Path

import pytest

from resourcesync.app.unit_files import shared_text
from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows

GOOD = """\
[defaults]
jobs = 64

[mirror.museum]
source = "https://museum.example/"
dest = "museum"
trash = "7d"
include = ["/a/*", "/ü/*"]
auth = "key"

[auth.key]
type = "bearer"
token = { env = "THE_TOKEN" }
"""


def put(text: str) -> None:
    Path("resourcesync.toml").write_text(text, "utf-8")


def test_an_example_is_written_that_has_no_mistake(said: Said) -> None:
    assert run(["config", "init"]) == 0
    assert run(["config", "check"]) == 0

    assert Path("resourcesync.toml").read_text("utf-8") == shared_text("resourcesync.toml")
    assert said.readouterr().out == (
        "Written   resourcesync.toml\n"
        "Good      0 mirrors, 0 secrets in resourcesync.toml; no mistake\n"
    )


def test_a_secret_is_never_shown(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_TOKEN", "s3cret")
    put(GOOD.replace('{ env = "THE_TOKEN" }', '"s3cret"'))

    run(["config", "show", "--origin"])
    run(["config", "check"])

    assert "s3cret" not in "".join(said.readouterr())


def test_a_secret_that_is_not_there_is_a_warning_with_its_name(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THE_TOKEN", raising=False)
    put(GOOD + '[auth.two]\ntype = "bearer"\ntoken = { file = "nowhere/token" }\n')

    assert run(["config", "check", "--json"]) == 0

    assert [row["message"] for row in rows(said) if row["type"] == "warning"] == [
        (
            "`token` in [auth.key] comes from the environment variable THE_TOKEN, "
            "which is not set or is empty"
        ),
        "`token` in [auth.two] comes from the file nowhere/token, which does not exist",
    ]
    monkeypatch.setenv("THE_TOKEN", "abc")
    Path("nowhere").mkdir()
    Path("nowhere/token").write_text("abc")
    assert run(["config", "check", "--json"]) == 0
    assert [row for row in rows(said) if row["type"] == "warning"] == []
