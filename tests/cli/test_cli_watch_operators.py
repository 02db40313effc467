"""What an operator does on the pages of a running service."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from resourcesync import Mirror
from resourcesync.app import mirror_home
from resourcesync.app.stored_names import StoredNames
from resourcesync.app.watching.watch_jobs import read_history
from resourcesync.cli.main import run
from resourcesync.errors import StateError, StorageError
from tests.support.commands.command_line import FILES, MIRRORED, Said, rows
from tests.support.commands.meanwhile import meanwhile
from tests.support.commands.run import files_of
from tests.support.commands.settings_file import museum, put
from tests.support.commands.watching import AdminPages
from tests.support.servers.tiny_source import TinySource

TOKEN = "a-token-of-this-test"
OPERATOR = '[watch]\noperator = "desk"\n[auth.desk]\ntype = "bearer"\ntoken = { env = "DESK" }\n'


class Service(AdminPages):
    def __init__(self, source: TinySource, more: str = "") -> None:
        super().__init__()
        put(museum(source, 'every = "2h"\n') + more)

    def run(self, *steps: Callable[[], object]) -> None:
        with meanwhile(lambda: self.pulls() == 1, *steps):
            assert run(["watch", "--admin", self.bind, "--state", "elsewhere", "-v"]) == 0

    def pulls(self) -> int:
        with suppress(OSError):
            found = [line for line in self.metrics() if line.startswith("resourcesync_runs_total{")]
            return sum(int(line.split()[-1]) for line in found if 'kind="pull"' in line)
        return 0

    def act(self, action: str, number: str = "") -> bool:
        fields = {"name": "museum", "action": action, "token": TOKEN, "number": number}
        form = urlencode(fields).encode()
        with urlopen(f"http://{self.bind}/act", form, timeout=10) as answer:
            return b"Operate" in answer.read()  # it leads back to the page of the mirror


def test_a_pause_survives_a_restart_and_ends_when_it_is_resumed(
    source: TinySource, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.setenv("DESK", TOKEN)
    service = Service(source, OPERATOR)
    service.run(lambda: service.act("pause"), lambda: service.reason() == "paused")

    assert run(["pull", "museum", "-qq"]) == 0
    said.readouterr()
    for place in ("museum", "copies/museum"):
        assert run(["status", place, "--json"]) == 0
        assert rows(said)[1]["paused"] is True
    again = Service(source, OPERATOR)
    with meanwhile(
        lambda: again.reason() == "paused",
        lambda: ">paused</span>" in again.get(),
        lambda: again.act("pull"),
        lambda: again.pulls() == 1,
        lambda: again.act("resume"),
        lambda: again.reason() == "scheduled",
    ):
        assert run(["watch", "--admin", again.bind, "-v"]) == 0
    [line] = [line for line in said.readouterr().out.splitlines() if "museum  in sync" in line]
    assert line.endswith("  paused")
    mirror_home.pause(Path("copies/museum"), is_paused=True)
    Path("copies/museum/.resourcesync/state.db").write_bytes(b"damaged" * 99)
    assert read_history(Path("copies/museum")).is_paused


def test_held_deletions_are_released_once_by_their_exact_number(
    source: TinySource, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.setenv("DESK", TOKEN)
    service, names, copies = Service(source, OPERATOR), list(FILES), Path("copies/museum")

    def keep(*left: str) -> bool:
        source.offer({name: FILES[name] for name in left}, at=f"2026-01-0{9 - len(left)}T00:00:00Z")
        return service.act("pull")

    def is_refused(number: str) -> bool:
        with pytest.raises(HTTPError, match="409") as caught:
            service.act("release", number)
        caught.value.close()
        return True

    service.run(
        lambda: keep(*names[:3]),
        lambda: f"{len(FILES) - 3} held deletions" in service.get("mirror?name=museum"),
        lambda: is_refused(str(len(FILES) - 2)),
        lambda: is_refused(""),
        lambda: files_of(copies) == MIRRORED,
        lambda: service.act("release", str(len(FILES) - 3)),
        lambda: len(files_of(copies)) == 3,
        lambda: is_refused(str(len(FILES) - 3)),
        lambda: keep(*names[:1]),  # what was released was so for one pull
        lambda: "2 held deletions" in service.get("mirror?name=museum"),
    )

    assert len(files_of(copies)) == 3
    assert run(["trash", "restore", "museum", "--all", "-qq"]) == 0
    status = Mirror(None, copies).status()
    assert (status.resources, status.listed.total) == (len(FILES), 1)


@pytest.mark.parametrize(
    ("operator", "token", "words"),
    [
        ("desk", "t1ny-t0ken", "too short"),
        ("desk", "", "not set or is empty"),
        ("nobody", TOKEN, "[auth.nobody]"),
    ],
)
def test_a_token_that_cannot_be_used_ends_the_start(
    source: TinySource,
    said: Said,
    monkeypatch: pytest.MonkeyPatch,
    operator: str,
    token: str,
    words: str,
) -> None:
    monkeypatch.setenv("DESK", token)
    service = Service(source, OPERATOR.replace('"desk"', f'"{operator}"'))
    assert run(["watch", "--admin", service.bind]) == 2
    error = said.readouterr().err
    assert words in error
    assert token == "" or token not in error


def test_names_of_another_process_stay_and_a_list_that_cannot_be_used_is_reported(
    tmp_path: Path,
) -> None:
    path = tmp_path / "pulled.json"
    path.write_text("{")
    with pytest.raises(StateError, match="not a list of names"):
        StoredNames(path)
    (tmp_path / "file").write_text("")
    pulled, theirs = (StoredNames(tmp_path / "none" / "pulled.json") for _ in range(2))
    theirs.add("a")
    pulled.add("b")
    assert StoredNames(tmp_path / "none" / "pulled.json").names == {"a", "b"}
    (tmp_path / "none" / "pulled.json").unlink()
    (tmp_path / "none").rmdir()
    (tmp_path / "none").write_text("")
    with pytest.raises(StorageError):
        pulled.add("c")
    assert pulled.names == {"a", "b"}
