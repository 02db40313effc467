"""``config``: begin, find, check and show the configuration file."""

from pathlib import Path

import pytest

from resourcesync.cli.commands.config import EXAMPLE
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

    assert Path("resourcesync.toml").read_text("utf-8") == EXAMPLE
    assert said.readouterr().out == (
        "Written   resourcesync.toml\n"
        "Good      0 mirrors, 0 secrets in resourcesync.toml; no mistake\n"
    )


def test_a_file_that_is_there_is_never_written_over(said: Said) -> None:
    put(GOOD)

    assert run(["config", "init"]) == 2

    assert Path("resourcesync.toml").read_text("utf-8") == GOOD
    assert "already exists" in said.readouterr().err


def test_every_mistake_is_told_at_once(said: Said) -> None:
    put(
        GOOD + "tokn = 1\n"
        "[mirror.a]\njbs = 1\nretries = true\n"
        "[mirror.b]\nsource = 'https://h/'\ndest = './museum'\n"
        "[mirror.'c/d']\n"
        "[auth.two]\ntype = 'basic'\nusername = 'me'\npassword = 's3cret'\n"
        "[auth.three]\ntype = 'bearer'\ntoken = { command = 'x' }\n"
    )

    assert run(["config", "check", "--json"]) == 2

    found = rows(said)
    told = [fields["message"] for fields in found if fields["type"] == "error"]
    assert told == [
        "`dest` in [mirror.museum] is the folder of [mirror.b] too",
        "unknown key `jbs` in [mirror.a]",
        "`retries` in [mirror.a] must be a whole number",
        "`dest` in [mirror.b] is the folder of [mirror.museum] too",
        "`c/d` in [mirror] is not a valid name: use letters, digits, . _ -",
        "`tokn` in [auth.key] is unknown",
        (
            "`password` in [auth.two] must not contain the secret itself: write { env = … }, "
            "{ file = … }, { credential = … } or { command = […] }"
        ),
        "`token` in [auth.three] needs the command and its arguments, as a list of strings",
    ]
    assert found[-1]["mistakes"] == 8


def test_checking_asks_nobody_for_a_secret(tmp_path: Path, said: Said) -> None:
    proof = tmp_path / "asked"
    put(
        f'[auth.a]\ntype = "bearer"\ntoken = {{ command = ["touch", "{proof}"] }}\n'
        '[auth.b]\ntype = "bearer"\ntoken = { file = "/nowhere" }\n'
        '[auth.c]\ntype = "netrc"\nfile = "/nowhere"\n'
        '[auth.d]\ntype = "header"\nname = "X-Key"\nvalue = { credential = "k" }\n'
    )

    assert run(["config", "check"]) == 0

    assert not proof.exists()
    assert "0 mirrors, 4 secrets" in said.readouterr().out


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


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ('cron = "61 2 * * *"', "`cron` in [mirror.a] '61 2 * * *' is not a crontab line"),
        ('cron = "5 2 * * * Nowhere/Here"', "`cron` in [mirror.a]"),
        ('cron = ""', "`cron` in [mirror.a]"),
        ('every = "0.5s"', "`every` in [mirror.a] must be at least 1s"),
        ('audit_sample = "15"', "`audit_sample` in [mirror.a] must be a share of the files"),
        ('on_change_limit = "0"', "`on_change_limit` in [mirror.a] must be at least 1s"),
        ('[log]\nfile = "nowhere/here.log"', "cannot write the log"),
    ],
)
def test_checking_finds_what_the_service_would_refuse(wrong: str, told: str, said: Said) -> None:
    put(f'[mirror.a]\nsource = "https://a.example/"\ndest = "a"\n{wrong}\n')

    assert run(["config", "check"]) == 2

    captured = said.readouterr()
    assert told in captured.err
    assert captured.out.splitlines()[-2:] == ["1 mistake in resourcesync.toml", "exit 2"]
    assert run(["watch"]) in {2, 8}
