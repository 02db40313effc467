"""``config``: begin, find, check and show the configuration file."""

import re
import tomllib
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


def test_the_example_has_no_mistake_without_its_marks_either(said: Said) -> None:
    put(re.sub(r"(?m)^#(?=[a-z\[])", "", EXAMPLE))
    Path("public").mkdir()  # the folder that it publishes

    assert run(["config", "check"]) == 0

    assert "1 mirror, 1 source, 1 secret" in said.readouterr().out


def test_the_example_has_the_times_and_the_address_of_the_service(said: Said) -> None:
    keys = re.findall(r"(?m)^#([a-z_]+) = |^#(\[\w+\])", EXAMPLE)

    assert ("every", "") in keys
    assert keys[keys.index(("", "[watch]")) + 1] == ("admin", "")


def test_a_file_that_is_there_is_never_written_over(said: Said) -> None:
    put(GOOD)

    assert run(["config", "init"]) == 2

    assert Path("resourcesync.toml").read_text("utf-8") == GOOD
    assert "already exists" in said.readouterr().err


def test_an_example_goes_where_it_is_asked_for_or_says_why_not(said: Said) -> None:
    assert run(["config", "init", "--config", "mine.toml"]) == 0
    assert run(["config", "init", "--config", "nowhere/mine.toml"]) == 8

    assert Path("mine.toml").exists()
    assert "cannot write nowhere/mine.toml" in said.readouterr().err


def test_the_file_that_counts_is_named(said: Said) -> None:
    put(GOOD)

    assert run(["config", "path"]) == 0

    assert said.readouterr().out == "resourcesync.toml\n"


def test_where_no_file_is_the_places_are_named(said: Said) -> None:
    Path(".resourcesync").mkdir()
    put(GOOD)

    assert run(["config", "path"]) == 1

    lines = said.readouterr().out.splitlines()
    assert lines[0].startswith("No file   resourcesync.toml  (")
    assert lines[0].endswith("is a mirror or a published tree; not used)")
    assert lines[-1] == "exit 1"
    assert run(["config", "check"]) == 2
    assert "there is no configuration file" in said.readouterr().err


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


def test_mistakes_that_all_share_are_told_first(said: Said) -> None:
    put("[mirors]\n[defaults]\njbs = 1\ntrash = 5\n")

    assert run(["config", "check"]) == 2

    captured = said.readouterr()
    assert captured.err.count("error[config]") == 3
    assert captured.out.splitlines()[-2:] == ["3 mistakes in resourcesync.toml", "exit 2"]


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


def test_what_counts_is_shown_as_it_would_be_written(said: Said) -> None:
    put(GOOD)

    assert run(["config", "show"]) == 0

    shown = said.readouterr().out
    assert tomllib.loads(shown) == {
        "mirror": {
            "museum": {
                "source": "https://museum.example/",
                "dest": "museum",
                "jobs": 64,
                "trash": "7d",
                "include": ["/a/*", "/ü/*"],
                "auth": "key",
            }
        }
    }


def test_each_value_is_shown_with_where_it_comes_from(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(GOOD)
    monkeypatch.setenv("RESOURCESYNC_MIRROR__MUSEUM__RETRIES", "2")
    monkeypatch.setenv("RESOURCESYNC_PULL_TRASH", "1d")

    assert run(["config", "show", "--origin"]) == 0

    lines = said.readouterr().out.splitlines()
    assert 'source = "https://museum.example/"  # resourcesync.toml:5' in lines
    assert "jobs = 64  # resourcesync.toml:2" in lines
    assert "retries = 2  # RESOURCESYNC_MIRROR__MUSEUM__RETRIES" in lines
    assert 'trash = "1d"  # RESOURCESYNC_PULL_TRASH' in lines
    assert 'max_delete = "10%"  # built-in' in lines


def test_a_secret_is_never_shown(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_TOKEN", "s3cret")
    put(GOOD.replace('{ env = "THE_TOKEN" }', '"s3cret"'))

    run(["config", "show", "--origin"])
    run(["config", "check"])

    assert "s3cret" not in "".join(said.readouterr())


def test_a_mirror_with_a_mistake_does_not_hide_the_others(said: Said) -> None:
    put("[mirror.bad]\n" + GOOD)

    assert run(["config", "show"]) == 2

    captured = said.readouterr()
    assert "[mirror.museum]" in captured.out
    assert "`source` in [mirror.bad] is missing" in captured.err


def test_origins_are_for_show_only(said: Said) -> None:
    assert run(["config", "check", "--origin"]) == 2

    assert "--origin is for show" in said.readouterr().err


def test_an_example_that_is_there_is_not_written_over_and_what_to_do_is_said(said: Said) -> None:
    assert run(["config", "init"]) == 0
    Path("resourcesync.toml").write_text("# mine")

    assert run(["config", "init"]) == 2

    assert "edit it, then: resourcesync config check" in said.readouterr().err
    assert Path("resourcesync.toml").read_text() == "# mine"


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


def test_the_variable_for_the_file_is_the_same_for_all_commands(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("etc").mkdir()
    Path("etc/some.toml").write_text(GOOD)
    monkeypatch.setenv("RESOURCESYNC_CONFIG", "etc/some.toml")

    assert run(["config", "path"]) == 0
    assert said.readouterr().out == "etc/some.toml\n"
    run(["config", "--help"])
    assert "env var: RESOURCESYNC_CONFIG]" in " ".join(said.readouterr().out.split())
    monkeypatch.setenv("RESOURCESYNC_CONFIG", "nowhere.toml")
    assert run(["config", "path"]) == 2
    assert "named by RESOURCESYNC_CONFIG" in said.readouterr().err


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


def test_checking_leaves_no_log_behind(tmp_path: Path, said: Said) -> None:
    log = tmp_path / "here.log"
    text = '[mirror.a]\nsource = "https://a.example/"\ndest = "a"\n[log]\nfile = "here.log"\n'
    put(text)

    assert run(["config", "check"]) == 0
    assert not log.exists()
    log.write_text("before\n")
    assert run(["config", "check"]) == 0

    assert log.read_text() == "before\n"
