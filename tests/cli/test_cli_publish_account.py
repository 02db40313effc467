"""``publish SYSTEM:…``: options, words, exit codes, the configuration file, and going on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.app.publishing import inputs
from resourcesync.cli.main import run
from tests.support.accounts.scripted_account import ScriptedSystem, scripted
from tests.support.commands.command_line import Said, rows
from tests.support.commands.meanwhile import meanwhile

URL = ("--url", "https://h/", "--out", "out")


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedSystem]:
    monkeypatch.setattr(inputs, "RETRY_SECONDS", 0.05)
    with scripted(monkeypatch, "one") as (system,):
        yield system


def listed(name: str = "resourcelist") -> str:
    path = Path(f"out/resourcesync/{name}.xml")
    return path.read_text() if path.exists() else ""


def test_what_a_system_tells_is_published_and_what_changed_is_listed(
    system: ScriptedSystem, said: Said
) -> None:
    system.put("a", b"a")
    assert run(["publish", "told:one", *URL]) == 0
    assert "https://h/a" in (before := listed())
    assert "resourcelist.xml" in said.readouterr().out

    with system.failing(0):
        assert run(["publish", "told:one", "--out", "out"]) == 4
    assert "does not answer" in said.readouterr().err
    assert listed() == before
    system.put("a", b"second")
    system.put("b", b"b")
    assert run(["publish", "told:one", "--out", "out"]) == 0
    assert "https://h/b" in listed("changelist")
    assert "1 created, 1 updated" in said.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["told:one", "--url", "https://h/"], "needs --out"),
        (["told:one", "--out", "out"], "address of the resources"),
        (["told:one", *URL, "-o", "hash=md5"], "`hash` is only for folders"),
        (["told:one", *URL, "--dry-run"], "no dry run"),
        (["told:one", *URL, "--with", "key"], "KEY=VALUE"),
        (["told:one", *URL, "--with", "key=env:NOT_THERE"], "key=env:NOT_THERE: it is not set"),
        (["told:one", *URL, "--auth", "nobody"], "[auth.nobody]"),
        (["public", "--url", "https://h/", "--with", "key=1"], "--with is only for other systems"),
        (["ndjson:x", *URL, "--watch"], "--watch is only for folders and other systems"),
        (["eventstreams:https://h/s", *URL, "--with", "page=1"], "has no option page"),
        (["nosuch:thing", *URL], "there is no plug-in 'nosuch'"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_made(
    system: ScriptedSystem, tree: Path, said: Said, words: list[str], told: str
) -> None:
    assert run(["publish", *words]) in {2, 8}

    assert told in said.readouterr().err
    assert not Path("out/resourcesync").exists()
    assert not system.asked


def test_a_table_of_the_configuration_file_names_a_system(
    system: ScriptedSystem, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ITS_PASSWORD", "hush-hush")
    Path("resourcesync.toml").write_text(
        '[source.theirs]\npath = "told:one"\nurl = "https://h/"\nout = "out"\n'
        'with = ["password=env:ITS_PASSWORD", "table=objects"]\n'
    )
    system.put("a", b"a")

    assert run(["publish", "theirs", "--json"]) == 0
    assert run(["publish", "--all"]) == 0

    assert system.options is not None
    assert system.options.values == {"password": "hush-hush", "table": "objects"}
    assert "https://h/a" in listed()
    assert "hush-hush" not in said.readouterr().out
    assert run(["config", "check"]) == 0


def test_watching_publishes_what_changes_and_ends_by_the_signal(
    system: ScriptedSystem, said: Said
) -> None:
    system.put("a", b"a")
    system.on_lot = lambda: None
    done: list[str] = []

    def is_done() -> bool:
        if listed() and not done:
            done.append("b")
            system.put("b", b"b")
        return any(name.startswith("changes after 2,") for name in system.asked)  # it was told of

    with meanwhile(is_done):
        assert run(["publish", "told:one", *URL, "--watch", "-o", "every=1s"]) == 0

    output = said.readouterr().out
    assert "told:one; stop with Ctrl-C" in output
    assert "1 created" in output
    assert "https://h/b" in listed("changelist")
    assert output.splitlines()[-1] == "Stopped   no longer watched"
    assert system.asked[-1] == "closed"


def test_what_fails_while_it_watches_is_told_and_tried_again(
    system: ScriptedSystem, said: Said
) -> None:
    system.put("a", b"a")
    state: list[str] = []

    def is_done() -> bool:
        if listed() and not state:
            system.answers = 0
            state.append("down")
        elif state == ["down"] and system.asked.count("closed") >= 3:
            system.answers = None
            system.put("b", b"b")
            state.append("up")
        return "https://h/b" in listed("changelist")

    with meanwhile(is_done):
        assert run(["publish", "told:one", *URL, "--watch", "-o", "every=1s", "--json"]) == 0

    pauses = [row["message"] for row in rows(said) if row["type"] == "warning"]
    assert pauses[0] == "it does not answer; next try in 0.05 s"
    assert pauses[1] == "it does not answer; next try in 0.1 s"


def test_a_repository_that_is_watched_is_harvested_each_hour() -> None:
    every = [inputs.PublishedInput(target=at).usual_interval for at in ("oai:https://r/", "told:x")]

    assert every == [3_600, 60]
