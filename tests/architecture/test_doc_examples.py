"""The commands on the pages are true: all are understood, and the tutorial is run as written."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from resourcesync import errors
from resourcesync.cli.explained_codes import CODES
from resourcesync.cli.main import cli
from resourcesync.settings.environment import PREFIX
from resourcesync.validator.rule import FAMILIES, find_rule
from tests.support.commands.forking import folder_of
from tests.support.commands.run import (
    Ran,
    environment,
    files_of,
    free_port,
    resourcesync,
    running,
    script,
)

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
TUTORIALS, HOW_TO = ROOT / "docs" / "tutorials", ROOT / "docs" / "how-to"
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


@contextmanager
def museum(cwd: Path, page: Path = TUTORIAL) -> Iterator[tuple[int, str, list[str]]]:
    """Publish and serve as a page says; yield the port, what was printed, and its other blocks."""
    port = free_port()
    publish, serve, *rest = (block.replace("8080", str(port)) for block in shell_blocks(page))
    written = in_a_shell(publish, cwd)
    _, *words = shlex.split(serve)
    (cwd / "here").mkdir()
    with running(script("resourcesync"), *words, port=port, cwd=cwd):
        yield port, written, rest


def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    with museum(tmp_path) as (_, _, rest):
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
    page = TUTORIALS / "first-source.md"
    with museum(tmp_path, page) as (port, written, rest):
        (table,) = re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        (tmp_path / "resourcesync.toml").write_text(table.replace("8080", str(port)))
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
    page = TUTORIALS / "first-program.md"
    (program,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    with museum(tmp_path, page) as (port, _, rest):
        (tmp_path / "index.py").write_text(program.replace("8080", str(port)))
        begin, *others = (name.replace("python ", f"{sys.executable} ") for name in rest)
        first = in_a_shell(begin, tmp_path)
        (tmp_path / "museum" / "photo.jpg").write_bytes(b"\xff\xd8 clay")
        later, again = [in_a_shell(name, tmp_path) for name in others]
    alone = in_a_shell(others[-1], tmp_path)

    base = f"http://127.0.0.1:{port}/"
    assert first == f"2 changes\nclay: {base}jug.txt\n"
    found = f"clay: {base}photo.jpg\nclay: {base}plate.txt\n"
    assert re.search(rf"[4-6] changes\n{found}$", later)
    assert again == f"0 changes\n{found}"
    assert alone.startswith("Not pulled; the index has what was here before:")
    assert alone.endswith(again)


def test_the_page_on_handing_changes_on_does_what_it_says(tmp_path: Path) -> None:
    blocks, here, lines = shell_blocks(HOW_TO / "pass-changes-on.md"), tmp_path / "here", []
    with museum(tmp_path) as (port, _, _):
        in_a_shell(f"resourcesync pull http://127.0.0.1:{port} museum", here)
        for block in blocks:
            in_a_shell(block, here)
            lines.append((here / "changes.ndjson").read_text())

    first, later, own = lines
    assert first.count('"change":"created"') == len(list((here / "museum").rglob("*.txt")))
    assert '"type":"change"' not in later + own
    assert '"exit":0' in own


def test_the_page_on_repairing_does_what_it_says(tmp_path: Path) -> None:
    (audit, repair), here = shell_blocks(HOW_TO / "repair-a-mirror.md"), tmp_path / "here"
    with museum(tmp_path) as (port, _, _):
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
    page, here = HOW_TO / "several-mirrors.md", tmp_path / "here"
    check, pull, named, show = shell_blocks(page)
    [settings] = re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    with museum(tmp_path) as (port, _, _):
        (here / "resourcesync.toml").write_text(settings.replace("8080", str(port)))
        good = in_a_shell(f"export MUSEUM_TOKEN=secret\n{check}", here)
        pulled = in_a_shell(f"set -e; {pull}", here)
        again = in_a_shell(f"set -e; {named}", here)
        shown = in_a_shell(show, here)

    assert "2 mirrors, 1 secret" in good
    assert "2 of 2 mirrors OK" in pulled
    assert len(files_of(here / "copies" / "museum")) == 2
    assert list(files_of(here / "copies" / "bowls")) == ["objects/0002.txt"]
    assert "nothing changed" in again
    assert 'trash = "7d"  # resourcesync.toml:' in shown


# --- The page on nightly publishing is true: its lines are run as cron and systemd run them -------


NIGHTLY = Path(__file__).parents[2] / "docs" / "how-to" / "publish-every-night.md"
HOME = "/opt/resourcesync/bin"
LINE = re.compile(r"(?:\S+ ){4}\S+  (.+)")


def blocks(kind: str, folder: Path) -> list[str]:
    """Return the blocks of the page, with the folders of this machine."""
    text = NIGHTLY.read_text("utf-8").replace(HOME, str(script("resourcesync").parent))
    text = text.replace("/srv/", f"{folder}/").replace("/etc/resourcesync", str(folder))
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def started(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        check=False,
        cwd=folder,
        env={"HOME": environment(folder)["HOME"], "PATH": "/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


def by_cron(crontab: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the job of a crontab as cron does: by sh, with the variables that it sets."""
    *variables, job = crontab.splitlines()
    found = LINE.fullmatch(job)
    assert found is not None
    pairs = dict(line.split("=", 1) for line in variables)
    return started(["/bin/sh", "-c", found[1]], folder, **pairs)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two trees, of which the first was published by hand."""
    for name in ("museum", "archive"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "jug.txt").write_text("a jug")
    first, *_ = blocks("sh", tmp_path)
    ran = started(["/bin/sh", "-c", first], tmp_path, PATH=f"{script('resourcesync').parent}:/bin")
    assert ran.returncode == 0
    return tmp_path


def test_cron_publishes_what_changed_and_packs_it(folder: Path) -> None:
    nightly, *_ = blocks("text", folder)
    (folder / "museum" / "bowl.txt").write_text("a bowl")

    ran = by_cron(nightly, folder)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    lists = folder / "museum" / "resourcesync"
    assert "bowl.txt" in (lists / "changelist.xml").read_text()
    [manifest] = [
        path for path in lists.glob("*-manifest.xml") if "bowl.txt" in path.read_text("utf-8")
    ]
    assert "jug.txt" in manifest.read_text("utf-8")


def test_one_line_publishes_all_folders_of_the_configuration(folder: Path) -> None:
    [settings] = blocks("toml", folder)
    (folder / "resourcesync.toml").write_text(settings)
    nightly, every, often = blocks("text", folder)
    variables = "".join(f"{line}\n" for line in nightly.splitlines()[:-1])

    for job in (every, often):
        ran = by_cron(variables + job, folder)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")

    assert (folder / "museum" / "resourcesync" / "resourcedump.xml").is_file()


# --- The page on judging is true: its commands are run as written, against a Source that is served


JUDGING_PAGES = ("explore-a-source.md", "validate-a-source.md")
JUDGING = "\n".join((HOW_TO / page).read_text("utf-8") for page in JUDGING_PAGES)

BROKEN = """\
<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
        xmlns:rs="http://www.openarchives.org/rs/terms/">
 <rs:ln rel="up" href="https://museum.example/resourcesync/capabilitylist.xml"/>
 <rs:md capability="changelist" from="2026-11-20T00:00:00Z"/>
 <url>
  <loc>https://museum.example/a.html</loc>
  <rs:md change="updated" datetime="2026-11-20 11:04"/>
 </url>
</urlset>
"""


def shown() -> list[str]:
    """The commands in blocks and in sentences that name only what the test has made."""
    blocks = re.findall(r"^```sh\n(.*?)^```", JUDGING, re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`(resourcesync [a-z]+ [^`\n]*)`", JUDGING)
    found = [line for block in blocks for line in block.splitlines()] + spans
    return [line for line in found if "museum" not in line and "monday" not in line]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judging")
    for name in ("index.html", "a.html", "cat.jpg"):
        (folder / "public").mkdir(exist_ok=True)
        (folder / "public" / name).write_bytes(name.encode())
    return folder


def test_the_commands_of_the_page_find_nothing_wrong_with_what_we_publish(tree: Path) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    ours = script("resourcesync")

    def ran(line: str) -> Ran:
        _, *words = shlex.split(line.replace("http://127.0.0.1:8080", address))
        return resourcesync(*words, cwd=tree)

    assert ran(f"resourcesync publish ./public --url {address}").code == 0
    commands = shown()
    assert {line.split()[1] for line in commands} == {
        "explore",
        "validate",
        "why",
    }
    with running(ours, "serve", "./public", "--bind", f"127.0.0.1:{port}", port=port, cwd=tree):
        for line in commands:
            done = ran(line)
            assert (done.code, done.stderr) == (0, ""), line
            assert done.stdout, line


def test_the_page_shows_a_finding_as_the_judge_tells_it(tmp_path: Path) -> None:
    (tmp_path / "changelist.xml").write_text(BROKEN)
    shown_output = re.search(
        r"^```text\n(changelist\.xml:.*?)^```",
        JUDGING,
        re.DOTALL | re.MULTILINE,
    )
    assert shown_output is not None

    said = resourcesync("validate", "changelist.xml", cwd=tmp_path)

    assert said.stdout == shown_output[1]
    assert said.code == 1
