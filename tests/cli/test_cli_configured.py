"""Mirrors and secrets of the configuration file, as the commands use them."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.cli.main import run
from resourcesync.errors import ConfigurationError
from resourcesync.model.settings import Limit
from resourcesync.model.timestamps import resolve_moment
from resourcesync.settings import schema
from tests.support.commands.command_line import MIRRORED, Said
from tests.support.commands.run import files_of
from tests.support.commands.settings_file import AUTH, museum, put, tokens
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.several_sets import SETS, offer


def test_a_name_wins_over_a_folder_and_a_path_names_the_folder(
    source: TinySource, said: Said
) -> None:
    put(museum(source))
    Path("museum").mkdir()

    assert run(["pull", "museum"]) == 0
    assert run(["pull", "./museum"]) == 2

    assert files_of(Path("copies/museum")) == MIRRORED
    assert "museum is not a mirror" in said.readouterr().err


@pytest.mark.parametrize("command", ["doctor", "audit", "pull"])
def test_the_name_of_a_source_is_not_taken_for_a_folder(
    command: str, here: Path, said: Said
) -> None:
    put('[source.files]\npath = "www"\nurl = "https://museum.example/"\n')

    assert run([command, "files"]) == 2

    assert "it is a source: resourcesync status files" in said.readouterr().err


@pytest.mark.parametrize("command", [["pull"], ["repair", "--delete"]])
def test_the_next_step_names_a_mirror_as_it_was_named(
    command: list[str], source: TinySource, said: Said
) -> None:
    put(museum(source))
    assert run(["pull", "museum"]) == 0
    source.offer({"/other": b"all else is gone"})

    run([*command, "museum"])

    shown = said.readouterr().out
    assert "resourcesync pull museum" in shown
    assert "resourcesync pull copies" not in shown


def test_a_fault_of_ours_in_one_mirror_does_not_keep_the_others_back(
    source: TinySource, said: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from resourcesync.app.configured_pulls import Puller

    real = Puller.pull

    def failing(puller: Any, target: Any, *others: Any) -> Any:
        if target.name == "first":
            raise RuntimeError("boom")
        return real(puller, target, *others)

    monkeypatch.setattr(Puller, "pull", failing)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    put(museum(source).replace("museum", "first") + museum(source))

    assert run(["pull", "--all"]) == 70

    assert files_of(Path("copies/museum")) == MIRRORED
    assert "error[bug]" in said.readouterr().err


def test_a_flag_wins_over_the_environment_over_the_mirror_over_the_defaults(
    source: TinySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def agent() -> str:
        source.asked.clear()
        assert run(["pull", "museum", *flags]) == 0
        return source.asked[-1].headers["From"]

    flags: list[str] = []
    put('[defaults]\ncontact = "a@defaults.example"\n' + museum(source))
    assert agent() == "a@defaults.example"
    put('[defaults]\ncontact = "a@h"\n' + museum(source, 'contact = "b@mirror.example"'))
    assert agent() == "b@mirror.example"
    monkeypatch.setenv("RESOURCESYNC_MIRROR__MUSEUM__CONTACT", "c@key.example")
    assert agent() == "c@key.example"
    monkeypatch.setenv("RESOURCESYNC_PULL_OPTION", "contact=d@variable.example")
    assert agent() == "d@variable.example"
    flags = ["-o", "contact=e@flag.example"]
    assert agent() == "e@flag.example"


@pytest.mark.parametrize(
    ("name", "text"), [("JOBS", "many"), ("JOBS", "0"), ("NOTHING", "1"), ("TRASH", "5")]
)
def test_a_mistake_in_the_environment_names_the_variable(
    name: str, text: str, source: TinySource, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(museum(source))
    monkeypatch.setenv(f"RESOURCESYNC_MIRROR__MUSEUM__{name}", text)

    assert run(["pull", "museum"]) == 2

    assert f"RESOURCESYNC_MIRROR__MUSEUM__{name}" in said.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        *("pull museum", "explore museum", "pull URL there --auth key", "explore URL --auth key"),
        "validate URL --auth key",
    ],
)
def test_a_secret_that_a_table_or_an_option_names_is_sent_and_not_shown(
    words: str, source: TinySource, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.setenv("THE_TOKEN", "s3cret")
    put(AUTH + museum(source, 'auth = "key"'))

    run(words.replace("URL", source.url).split())

    assert tokens(source) == {"Bearer s3cret"}
    assert "s3cret" not in "".join(said.readouterr())


@pytest.mark.parametrize("arguments", [["museum"], ["--all", "-q"], ["museum", "--dry-run"]])
def test_a_mirror_whose_folder_vanished_is_not_fetched_again_by_its_name(
    arguments: list[str], source: TinySource, said: Said
) -> None:
    put(museum(source))
    folder, away = Path("copies/museum"), Path("away")
    assert run(["pull", "museum"]) == 0
    folder.rename(away)
    folder.mkdir()  # as where its disk is mounted
    said.readouterr()

    assert run(["pull", *arguments]) == 8
    error = said.readouterr().err
    assert "was a mirror, and is none now" in error
    assert f"resourcesync pull {source.url} {folder.absolute()}" in error
    assert list(folder.iterdir()) == []
    for command in ("status", "audit", "changes", "trash list"):
        assert run([*command.split(), "museum"]) == 8
        assert "was a mirror, and is none now" in said.readouterr().err

    folder.rmdir()
    assert run(["pull", source.url, str(folder)]) == 0
    assert run(["pull", "museum"]) == 0
    assert run(["status", "--check"]) == 0


def test_a_netrc_is_asked_for_the_remembered_source(
    source: TinySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("netrc").write_text("machine 127.0.0.1 login me password s3cret\n")
    Path("netrc").chmod(0o600)
    put(f'[auth.mine]\ntype = "netrc"\nfile = "{Path("netrc").resolve()}"\n')
    assert run(["pull", source.url, "here"]) == 0
    source.asked.clear()

    assert run(["pull", "here", "--auth", "mine"]) == 0

    assert tokens(source) == {"Basic bWU6czNjcmV0"}


def test_a_mirror_is_audited_by_its_name_with_its_own_secret(
    source: TinySource, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_TOKEN", "s3cret")
    put(AUTH + museum(source, 'auth = "key"'))
    run(["pull", "museum"])
    source.asked.clear()

    assert run(["audit", "museum"]) == 0

    assert tokens(source) == {"Bearer s3cret"}
    Path("copies/museum/objects/0003.txt").unlink()
    assert run(["audit", "museum"]) == 1
    monkeypatch.delenv("THE_TOKEN")
    assert run(["audit", "museum"]) == 2
    assert run(["audit", "museum", "--offline"]) == 1


@pytest.mark.parametrize("chosen", ["all_sets = true", 'set = ["maps", "texts"]'])
def test_each_set_of_a_table_has_its_limits_and_its_secret_by_its_folder_too(
    chosen: str, source: TinySource, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_TOKEN", "s3cret")
    offer(source, SETS)
    table = museum(source, f'{chosen}\nauth = "key"\nmax_delete = 0\nmax_lag = "0s"')
    put(AUTH + table)
    assert run(["pull", "museum"]) == 0
    offer(source, {**SETS, "maps": {}}, at="2026-01-02T00:00:00Z")

    assert run(["pull", "museum"]) == 7
    assert [run(["status", at, "--check"]) for at in ("museum", "copies/museum/texts")] == [1, 1]
    assert run(["status", "museum", "--format", "prom"]) == 0
    shown = said.readouterr().out
    assert shown.count("mirror_max_lag_seconds{") == 2
    [advised] = set(re.findall("if the Source really shrank: resourcesync (.+)", shown))
    assert run(advised.split()) == 0
    assert run(["audit", "copies/museum/maps"]) == 0
    assert tokens(source) == {"Bearer s3cret"}

    put(AUTH + table.replace(source.url, f"{source.url}/other"))
    assert run(["status", "museum"]) == 0
    assert "[mirror.museum] has a `dest` that follows another address" in said.readouterr().out


NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)


Parser = Callable[[str], Any]
GOOD: Final[dict[Parser, dict[str, Any]]] = {
    schema.parse_duration: {
        "90s": 90, "15m": 900, "2h": 7200, "7d": 604800, "1w": 604800, "1.5h": 5400,
    },
    schema.parse_size: {
        "0": 0, "500": 500, "500B": 500, "10k": 10_000, "10K": 10_000, "2G": 2_000_000_000,
        "1T": 10**12, "64KiB": 65_536, "1.5MiB": 1_572_864, "2 GB": 2_000_000_000,
    },
    schema.parse_rate: {"5": 5, "5/s": 5, "30/m": 0.5, "0.5": 0.5},
    lambda text: resolve_moment(schema.parse_moment(text), NOW): {
        "2026": datetime(2026, 1, 1, tzinfo=UTC),
        "2026-11-20T11:04:09Z": datetime(2026, 11, 20, 11, 4, 9, tzinfo=UTC),
        "2026-11-20T11:04:09+02:00": datetime(2026, 11, 20, 9, 4, 9, tzinfo=UTC),
        "-7d": NOW - timedelta(days=7),
        "yesterday": NOW - timedelta(days=1),
        "-999999999d": datetime.min.replace(tzinfo=UTC),
    },
    schema.parse_limit: {
        "0": Limit(number=0), "250": Limit(number=250), "2.5 %": Limit(percent=2.5),
        "100%": Limit(percent=100.0),
    },
    schema.parse_header: {
        "Authorization: Bearer abc:def": ("Authorization", "Bearer abc:def"),
        "X-Empty:": ("X-Empty", ""),
        "Accept-Language:cs": ("Accept-Language", "cs"),
    },
}  # fmt: skip
BAD: Final[dict[Parser, tuple[str, ...]]] = {
    schema.parse_duration: ("", "30", "5min", "-1s", "s", "1h30m", "1e3s", "٣s", "1 h"),
    schema.parse_size: ("", "k", "-1", "5x", "1ib", "1 000", "0x10", "1e6", "5 parsecs"),
    schema.parse_rate: ("0", "0/s", "", "5/d", "-5", "fast"),
    schema.parse_moment: ("", "tomorrow", "2026-13-01", "-7", "7d", "--1d"),
    schema.parse_limit: ("", "%", "101%", "-1", "ten", "1,000"),
    schema.parse_header: ("", "nothing", ": value", "a b: c", "X: a\r\nY: b", "X: a\x00"),
}


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [(parse, text, value) for parse, told in GOOD.items() for text, value in told.items()],
)
def test_a_value_has_a_form_that_people_write(parse: Parser, text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"), [(parse, text) for parse, texts in BAD.items() for text in texts]
)
def test_what_could_be_understood_in_two_ways_is_refused(parse: Parser, text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse(text)


@given(st.text(max_size=40))
def test_any_text_is_a_value_or_a_configuration_error(text: str) -> None:
    for parse in BAD:
        with suppress(ConfigurationError):
            parse(text)
