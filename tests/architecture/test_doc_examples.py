"""The commands on the pages are true: all are understood, and the tutorial is run as written."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from resourcesync import errors
from resourcesync.cli.explained_codes import CODES
from resourcesync.cli.main import cli
from resourcesync.settings.environment import PREFIX
from resourcesync.validator.rule import FAMILIES, find_rule
from tests.support.commands.forking import folder_of
from tests.support.commands.run import environment, files_of, free_port, running, script

ROOT = Path(__file__).parents[2]
COMMANDS = cli.list_commands(click.Context(cli))
PAGES = [
    ROOT / "README.md",
    *(
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if not {"_build", "adr"} & set(path.parts)
    ),
]
TUTORIALS = ROOT / "docs" / "tutorials"
TUTORIAL = TUTORIALS / "first-mirror.md"


def shell_blocks(page: Path) -> list[str]:
    return re.findall(r"^ *```sh\n(.*?)^ *```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def shown_commands() -> Iterator[tuple[str, str]]:
    """Each ``resourcesync`` command line that a page shows, in a block or in a sentence."""
    for page in PAGES:
        text = page.read_text("utf-8")
        blocks = re.findall(r"^ *```(?:sh|text)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
        spans = re.findall(r"`(resourcesync [a-z]+[^`\n]*)`", text)
        for line in [*(splitline for block in blocks for splitline in block.splitlines()), *spans]:
            if found := re.search(r"(?:^|\s\s|\$ )\s*resourcesync ([a-z]+\b.*)", line):
                command = re.split(r"\s+(?:#|\||>)|;|\s\s", found[1])[0]
                if command.split()[0] in COMMANDS and "OPTIONS" not in command:
                    yield page.relative_to(ROOT).as_posix(), command


SHOWN = sorted(set(shown_commands()))


def test_a_command_that_a_page_shows_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    group = click.Context(cli, info_name="resourcesync", auto_envvar_prefix=PREFIX)
    wrong = []
    for page, command in SHOWN:
        name, *arguments = shlex.split(command)
        found = cli.get_command(group, name)
        try:
            assert found is not None
            found.make_context(name, arguments, parent=group)
        except (AssertionError, click.ClickException) as error:
            wrong.append(f"{page}: {command}: {error}")

    assert wrong == []


def test_the_pages_show_every_command() -> None:
    assert {command.split()[0] for _, command in SHOWN} >= set(COMMANDS) - {"demo"}


def test_every_command_has_its_part_of_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")

    assert re.findall(r"^## resourcesync (\w+)$", text, re.MULTILINE) == list(COMMANDS)


def test_every_code_that_a_page_explains_is_known() -> None:
    kinds = [errors.ResourceSyncError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    known = {*CODES, *(kind.default_code for kind in kinds)}
    asked = {
        command.split()[1]
        for _, command in SHOWN
        if command.startswith("why ") and len(command.split()) == 2
    }
    examples = asked - {"CODE"}

    assert examples
    assert [
        code
        for code in sorted(examples)
        if code not in known and find_rule(code) is None and code not in FAMILIES
    ] == []


def in_a_shell(block: str, cwd: Path) -> str:
    """Type a block of the tutorial; return what was printed."""
    path = f"{folder_of(script('resourcesync'))}:{environment(cwd)['PATH']}"
    ran = subprocess.run(
        ["sh", "-c", block],
        check=False,
        cwd=cwd,
        env={**environment(cwd), "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def marks(text: str) -> list[str]:
    """The first characters of the lines that tell of one resource each."""
    return sorted(line[0] for line in text.splitlines() if line[:2] in {"+ ", "* ", "- ", "! "})


def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    port = free_port()
    publish, serve, *rest = (block.replace("8080", str(port)) for block in shell_blocks(TUTORIAL))
    in_a_shell(publish, tmp_path)
    _, *words = shlex.split(serve)

    with running(script("resourcesync"), *words, port=port, cwd=tmp_path):
        first, shown, _, update, again, audit, damaged = [
            in_a_shell(name, tmp_path) for name in rest
        ]

    mirror = tmp_path / "mirror"
    assert "In sync" in first
    assert "all hashes verified" in first
    assert shown == "a jug\n"
    assert marks(update) == ["*", "+", "-"]
    assert "nothing changed" in again
    assert "In sync" in audit
    assert "Not in sync" in damaged
    assert damaged.endswith("exit 1\n")
    assert not (mirror / "objects/0001.txt").exists()
    trashed = [path for path in (mirror / ".resourcesync/trash").rglob("*") if path.is_file()]
    assert [path.read_text() for path in trashed] == ["a jug\n"]


def test_the_tutorial_of_a_source_does_what_it_says(tmp_path: Path) -> None:
    port = free_port()
    page = TUTORIALS / "first-source.md"
    publish, serve, *rest = (block.replace("8080", str(port)) for block in shell_blocks(page))
    written = in_a_shell(publish, tmp_path)
    (table,) = re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    (tmp_path / "resourcesync.toml").write_text(table.replace("8080", str(port)))
    _, *words = shlex.split(serve)

    with running(script("resourcesync"), *words, port=port, cwd=tmp_path):
        explored, valid, first, changed, update, packed, hourly = [
            in_a_shell(name, tmp_path) for name in rest
        ]

    for document in re.findall(r"^\| `([^`]+)` \|", page.read_text("utf-8"), re.MULTILINE):
        assert document in written
        assert document in explored
    assert "2 of 2 resources: 0 errors, 0 warnings" in valid
    assert "In sync" in first
    assert "would create 1, update 1, delete 1" in changed
    assert "1 created, 1 updated, 1 deleted" in changed
    assert marks(update) == ["*", "+", "-"]
    assert "In sync" in update
    assert "Packed    2 entries in 1 package" in packed
    assert "publish" in hourly
    copies = [path.name for path in (tmp_path / "copy" / "objects").iterdir()]
    assert sorted(copies) == ["blue jug.txt", "plate.txt"]


def test_the_tutorial_of_a_program_does_what_it_says(tmp_path: Path) -> None:
    port = free_port()
    page = TUTORIALS / "first-program.md"
    publish, serve, *rest = (block.replace("8080", str(port)) for block in shell_blocks(page))
    in_a_shell(publish, tmp_path)
    (program,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    (tmp_path / "index.py").write_text(program.replace("8080", str(port)))
    rest = [name.replace("python ", f"{sys.executable} ") for name in rest]
    _, *words = shlex.split(serve)

    with running(script("resourcesync"), *words, port=port, cwd=tmp_path):
        first = in_a_shell(rest[0], tmp_path)
        (tmp_path / "museum" / "photo.jpg").write_bytes(b"\xff\xd8 clay")
        later, again = [in_a_shell(name, tmp_path) for name in rest[1:]]
    alone = in_a_shell(rest[-1], tmp_path)

    base = f"http://127.0.0.1:{port}/"
    assert first == f"2 changes\nclay: {base}jug.txt\n"
    found = f"clay: {base}photo.jpg\nclay: {base}plate.txt\n"
    assert re.search(rf"[4-6] changes\n{found}$", later)
    assert again == f"0 changes\n{found}"
    assert alone.startswith("Not pulled; the index has what was here before:")
    assert alone.endswith(again)


def test_the_page_on_handing_changes_on_does_what_it_says(tmp_path: Path) -> None:
    port = free_port()
    publish, serve, *_ = (block.replace("8080", str(port)) for block in shell_blocks(TUTORIAL))
    first, later, own = shell_blocks(ROOT / "docs" / "how-to" / "pass-changes-on.md")
    in_a_shell(publish, tmp_path)
    here = tmp_path / "here"
    here.mkdir()
    _, *words = shlex.split(serve)

    with running(script("resourcesync"), *words, port=port, cwd=tmp_path):
        in_a_shell(f"resourcesync pull http://127.0.0.1:{port} museum", here)
        in_a_shell(first, here)
        told = (here / "changes.ndjson").read_text()
        in_a_shell(later, here)
        again = (here / "changes.ndjson").read_text()
        in_a_shell(own, here)
        after_own = (here / "changes.ndjson").read_text()

    assert '"type":"change"' not in after_own
    assert '"exit":0' in after_own
    assert told.count('"change":"created"') == len(list((here / "museum").rglob("*.txt")))
    assert '"type":"change"' not in again


def test_the_page_on_repairing_does_what_it_says(tmp_path: Path) -> None:
    port = free_port()
    publish, serve, *_ = (block.replace("8080", str(port)) for block in shell_blocks(TUTORIAL))
    audit, repair = shell_blocks(ROOT / "docs" / "how-to" / "repair-a-mirror.md")
    in_a_shell(publish, tmp_path)
    here = tmp_path / "here"
    here.mkdir()
    _, *words = shlex.split(serve)

    with running(script("resourcesync"), *words, port=port, cwd=tmp_path):
        in_a_shell(f"resourcesync pull http://127.0.0.1:{port} museum", here)
        altered = next((here / "museum").rglob("*.txt"))
        whole = altered.read_text()
        altered.write_text("damaged")
        found = in_a_shell(audit, here)
        mended = in_a_shell(f"{repair.rstrip()} 2>told\n", here)

    assert found.endswith("something is wrong\n")
    assert "In sync" in mended
    assert altered.read_text() == whole


def test_the_page_on_several_mirrors_does_what_it_says(tmp_path: Path) -> None:
    port = free_port()
    publish, serve, *_ = (block.replace("8080", str(port)) for block in shell_blocks(TUTORIAL))
    page = ROOT / "docs" / "how-to" / "several-mirrors.md"
    check, pull, named, show = shell_blocks(page)
    [settings] = re.findall(
        r"^```toml\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    in_a_shell(publish, tmp_path)
    here = tmp_path / "here"
    here.mkdir()
    (here / "resourcesync.toml").write_text(settings.replace("8080", str(port)))
    _, *words = shlex.split(serve)

    good = in_a_shell(f"export MUSEUM_TOKEN=secret\n{check}", here)
    with running(script("resourcesync"), *words, port=port, cwd=tmp_path):
        pulled = in_a_shell(f"set -e; {pull}", here)
        again = in_a_shell(f"set -e; {named}", here)
    shown = in_a_shell(show, here)

    assert "2 mirrors, 1 secret" in good
    assert "2 of 2 mirrors OK" in pulled
    assert len(files_of(here / "copies" / "museum")) == 2
    assert list(files_of(here / "copies" / "bowls")) == ["objects/0002.txt"]
    assert "nothing changed" in again
    assert 'trash = "7d"  # resourcesync.toml:' in shown
