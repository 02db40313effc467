"""The recipe for POD is typed beside an aggregator that answers as POD does."""

import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands.pages import RECIPES, TypedPage
from tests.support.commands.run import files_of
from tests.support.commands.started import Started
from tests.support.software.pod import Pod, marc
from tests.support.waiting import wait_until

TOKEN = "the-token-of-your-organization"
Records = set[tuple[str, str]]


@pytest.fixture
def pod() -> Iterator[Pod]:
    made = Pod(token=TOKEN)
    for library in ("brown", "duke"):
        made.publish_full(library, marc("1", "One"), marc("2", "Two"))
    made.publish_delta("duke", marc("3", "Three"), deletes=("1",))
    with made.source:
        yield made


@pytest.fixture
def typed(pod: Pod, tmp_path: Path) -> TypedPage:
    stands_for = {"https://pod.example": pod.url, '"python3"': f'"{sys.executable}"'}
    page = TypedPage(RECIPES / "pod.md", tmp_path, stands_for)
    (tmp_path / "resourcesync.toml").write_text(page.blocks("toml")[0])
    (tmp_path / "load.py").write_text(page.blocks("python")[0])
    page.secrets = {"POD_TOKEN": TOKEN}
    return page


def load(typed: TypedPage) -> Records:
    """Let the program have the changes, as `watch` would; return the records."""
    typed.succeed("resourcesync changes pod --consumer load --ack --json > changes")
    typed.succeed(f"{sys.executable} load.py < changes")
    return records(typed.folder)


def records(folder: Path) -> Records:
    if not (folder / "pod.db").exists():
        return set()
    store = sqlite3.connect(folder / "pod.db")
    try:
        return set(store.execute("SELECT library, id FROM record"))
    except sqlite3.OperationalError:
        return set()  # no table yet
    finally:
        store.close()


def test_the_recipe_does_what_it_says(typed: TypedPage, pod: Pod) -> None:
    pull, watch = typed.blocks("sh")

    assert "4 resources" in typed.succeed(pull)
    with Started(*watch.split()[1:], cwd=typed.folder, env=typed.environment) as process:
        wait_until(lambda: bool(records(typed.folder)), 30)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=20)

    assert (process.returncode, errors) == (0, ""), output
    assert records(typed.folder) == {("brown", "1"), ("brown", "2"), ("duke", "2"), ("duke", "3")}


def test_records_are_in_step_with_every_dump(typed: TypedPage, pod: Pod) -> None:
    pull = typed.blocks("sh")[0]
    typed.succeed(pull)
    assert ("duke", "1") not in load(typed)

    pod.publish_delta("duke", marc("1", "One, again"), deletes=("3",))
    pod.publish_delta("duke", marc("4", "Four"))
    typed.succeed(pull)
    assert load(typed) >= {("duke", "1"), ("duke", "2"), ("duke", "4")}
    assert ("duke", "3") not in records(typed.folder)

    pod.publish_full("duke", marc("9", "Nine"))
    told = typed.succeed(pull)
    assert load(typed) == {("brown", "1"), ("brown", "2"), ("duke", "9")}
    assert "deleted" in told
    assert len(files_of(typed.folder / "pod")) == 2


def test_a_library_that_is_closed_loses_its_dumps_and_no_record(typed: TypedPage, pod: Pod) -> None:
    pull = typed.blocks("sh")[0]
    typed.succeed(pull)
    before = load(typed)
    pod.closed.add("brown")

    typed.succeed(pull)

    assert load(typed) == before
    assert not [path for path in files_of(typed.folder / "pod") if "brown" in path]


@pytest.mark.parametrize("code", [7, 6], ids=["no library is listed", "not the right token"])
def test_a_list_of_nothing_and_a_refusal_delete_nothing(
    typed: TypedPage, pod: Pod, code: int
) -> None:
    pull = typed.blocks("sh")[0]
    typed.succeed(pull)
    before = files_of(typed.folder / "pod")
    if code == 7:
        pod.closed |= {"brown", "duke"}
    else:
        pod.token = "another"

    ran = typed.type(pull)

    assert ran.code == code
    assert TOKEN not in ran.said
    assert files_of(typed.folder / "pod") == before
    assert all(asked.headers["Authorization"] == f"Bearer {TOKEN}" for asked in pod.source.asked)
