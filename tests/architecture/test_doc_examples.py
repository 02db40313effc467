"""The commands on the pages are true: all are understood, and the tutorial is run as written."""

import hashlib
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import click
import pytest

from resourcesync import Mirror, errors
from resourcesync.cli.main import cli
from resourcesync.cli.why_codes import CODES
from resourcesync.settings.environment import PREFIX
from resourcesync.validator.rule import FAMILIES, find_rule
from tests.support.commands.pages import TypedPage
from tests.support.commands.run import files_of, free_port, resourcesync, running, script
from tests.support.waiting import wait_until

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
        if command.startswith("why ") and len(command.split()) == 2 and "://" not in command
    }
    examples = asked - {"CODE"}

    assert examples
    assert [
        code
        for code in sorted(examples)
        if code not in known and find_rule(code) is None and code not in FAMILIES
    ] == []


def marks(text: str) -> list[str]:
    """The first characters of the lines that tell of one resource each."""
    return sorted(line[0] for line in text.splitlines() if line[:2] in {"+ ", "* ", "- ", "! "})


@contextmanager
def museum(cwd: Path, page: Path = TUTORIAL) -> Iterator[tuple[TypedPage, str, list[str]]]:
    """Publish and serve as a page says; yield it, what was printed, and its other blocks."""
    port = free_port()
    typed = TypedPage(page, cwd, {"8080": str(port)})
    publish, serve, *rest = typed.blocks("sh")
    written = typed.succeed(publish)
    _, *words = shlex.split(serve)
    with running(script("resourcesync"), *words, port=port, cwd=cwd):
        yield typed, written, rest


@contextmanager
def mirrored(cwd: Path, page: str) -> Iterator[tuple[TypedPage, list[str]]]:
    """Yield a page for a mirror ``museum`` of the Source of the tutorial, and its blocks."""
    with museum(cwd) as (source, _, _):
        (cwd / "here").mkdir()
        typed = TypedPage(HOW_TO / page, cwd / "here", {"8080": source.here("8080")})
        typed.succeed(typed.here("resourcesync pull http://127.0.0.1:8080 museum"))
        yield typed, typed.blocks("sh")


def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    with museum(tmp_path) as (typed, _, rest):
        first, shown, _, update, again, audit, damaged = [
            typed.succeed(f"set +e\n{block}") for block in rest
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
    with museum(tmp_path, page) as (typed, written, rest):
        (table,) = typed.blocks("toml")
        (tmp_path / "resourcesync.toml").write_text(table)
        explored, valid, first, changed, update, packed, hourly = map(typed.succeed, rest)

    for document in re.findall(r"^\| `([^`]+)` \|", typed.text, re.MULTILINE):
        assert document in written
        assert document in explored
    assert "2 of 2 resources: 0 errors, 0 warnings" in valid
    assert "In sync" in first
    assert "would create 1, update 1, delete 1" in changed
    assert "1 created, 1 updated, 1 deleted" in changed
    assert marks(update) == ["*", "+", "-"]
    assert "In sync" in update
    assert "Packed    2 entries in 1 package" in packed
    assert "*/1 * * *  resourcesync publish" in re.sub(r"/\S*/", "", hourly)
    copies = [path.name for path in (tmp_path / "copy" / "objects").iterdir()]
    assert sorted(copies) == ["blue jug.txt", "plate.txt"]


def test_the_tutorial_of_a_program_does_what_it_says(tmp_path: Path) -> None:
    page = TUTORIALS / "first-program.md"
    with museum(tmp_path, page) as (typed, _, rest):
        (program,) = typed.blocks("python")
        (tmp_path / "index.py").write_text(program)
        begin, *others = (name.replace("python ", f"{sys.executable} ") for name in rest)
        first = typed.succeed(begin)
        (tmp_path / "museum" / "photo.jpg").write_bytes(b"\xff\xd8 clay")
        later, again = map(typed.succeed, others)
    alone = typed.succeed(others[-1])
    (tmp_path / "copy").rename(tmp_path / "moved")
    (tmp_path / "index.py").write_text(program.replace('"copy"', '"moved"'))
    with Mirror(None, tmp_path / "moved"):
        locked = typed.succeed(others[-1])

    base = typed.here("http://127.0.0.1:8080/")
    assert first == f"2 changes\nclay: {base}jug.txt verified\n"
    found = f"clay: {base}photo.jpg verified\nclay: {base}plate.txt verified\n"
    assert re.search(rf"[4-6] changes\n{found}$", later)
    assert again == f"0 changes\n{found}"
    assert alone.startswith("Not pulled; the index has what was here before:")
    assert "another run" in locked
    assert alone.endswith(again)
    assert locked.endswith(again)


def test_the_program_of_the_tutorial_loses_and_doubles_nothing_when_it_is_killed_twice(
    tmp_path: Path,
) -> None:
    tree, index = tmp_path / "museum", tmp_path / "index.db"

    def indexed() -> list[tuple[str, str, str]]:
        query = "SELECT path, digest, text FROM page JOIN words ON id = words.rowid ORDER BY path"
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(index)) as db:
            return [(Path(path).name, *rest) for path, *rest in db.execute(query)]
        return []

    def holds_more_than(least: int) -> bool:
        return len(indexed()) > least

    with museum(tmp_path, TUTORIALS / "first-program.md") as (typed, _, rest):
        (program,) = typed.blocks("python")
        (tmp_path / "index.py").write_text(program)
        run = rest[-1].replace("python ", f"{sys.executable} ")
        for number in range(400):
            (tree / f"{number:03}.txt").write_text(f"clay {number}")
        typed.succeed("resourcesync publish museum")
        for least in (100, 250):
            with subprocess.Popen(shlex.split(run), cwd=tmp_path, env=typed.environment) as started:
                wait_until(partial(holds_more_than, least))
                started.kill()
            assert least < len(indexed()) < 400
            (tree / f"{least}.txt").write_text(f"glass {least}")  # indexed, and changed since
            (tree / f"{least + 1}.txt").unlink()
            typed.succeed("resourcesync publish museum")
        last = typed.succeed(run)

    wanted = {path.name: path.read_bytes() for path in tree.glob("*.txt")}
    assert " changes\nclay: " in last
    assert indexed() == [
        (name, f"sha-256:{hashlib.sha256(body).hexdigest()}", body.decode())
        for name, body in sorted(wanted.items())
    ]


def test_the_page_on_handing_changes_on_does_what_it_says(tmp_path: Path) -> None:
    lines = []
    with mirrored(tmp_path, "pass-changes-on.md") as (typed, blocks):
        for block in blocks:
            typed.succeed(block)
            lines.append((typed.folder / "changes.ndjson").read_text())

    first, later, own = lines
    assert first.count('"change":"created"') == len(files_of(typed.folder / "museum"))
    assert '"type":"change"' not in later + own
    assert '"exit":0' in own


def test_the_page_on_repairing_does_what_it_says(tmp_path: Path) -> None:
    with mirrored(tmp_path, "repair-a-mirror.md") as (typed, (audit, repair)):
        altered = next((typed.folder / "museum").rglob("*.txt"))
        whole = altered.read_text()
        altered.write_text("damaged")
        found = typed.succeed(audit)
        mended = typed.succeed(f"{repair.rstrip()} 2>told\n")

    assert found.endswith("something is wrong\n")
    assert "In sync" in mended
    assert altered.read_text() == whole


def test_the_page_on_several_mirrors_does_what_it_says(tmp_path: Path) -> None:
    with mirrored(tmp_path, "several-mirrors.md") as (typed, blocks):
        [settings] = typed.blocks("toml")
        (typed.folder / "resourcesync.toml").write_text(settings)
        typed.secrets["MUSEUM_TOKEN"] = "secret"
        good, pulled, again, shown = map(typed.succeed, blocks)

    assert "2 mirrors, 1 secret" in good
    assert "2 of 2 mirrors OK" in pulled
    assert len(files_of(typed.folder / "copies" / "museum")) == 2
    assert list(files_of(typed.folder / "copies" / "bowls")) == ["objects/0002.txt"]
    assert "nothing changed" in again
    assert 'trash = "7d"  # resourcesync.toml:' in shown


HOME = "/opt/resourcesync/bin"
LINE = re.compile(r"(?:\S+ ){4}\S+  (.+)")


def by_cron(page: TypedPage, crontab: str) -> str:
    """Run the job of a crontab as cron does: by sh, with the variables that it sets."""
    *variables, job = crontab.splitlines()
    found = LINE.fullmatch(job)
    assert found is not None
    return page.succeed(shlex.join(["env", "-i", "HOME=.", *variables, "/bin/sh", "-c", found[1]]))


@pytest.fixture
def nightly(tmp_path: Path) -> TypedPage:
    """Return the page for a folder with two trees, of which the first was published by hand."""
    here = {HOME: str(script("resourcesync").parent), "/srv/": f"{tmp_path}/"}
    here["/etc/resourcesync"] = str(tmp_path)
    page = TypedPage(HOW_TO / "publish-every-night.md", tmp_path, here)
    for name in ("museum", "archive"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "jug.txt").write_text("a jug")
    page.succeed(page.blocks("sh")[0])
    return page


def test_cron_publishes_what_changed_and_packs_it(nightly: TypedPage) -> None:
    (nightly.folder / "museum" / "bowl.txt").write_text("a bowl")

    assert by_cron(nightly, nightly.blocks("text")[0]) == ""

    lists = nightly.folder / "museum" / "resourcesync"
    assert "bowl.txt" in (lists / "changelist.xml").read_text()
    [manifest] = [
        path for path in lists.glob("*-manifest.xml") if "bowl.txt" in path.read_text("utf-8")
    ]
    assert "jug.txt" in manifest.read_text("utf-8")


def test_each_line_of_cron_finds_its_command() -> None:
    blocks = [
        block
        for page in sorted(HOW_TO.parent.rglob("*.md"))
        for block in re.findall(r"```text\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    ]
    line = re.compile(r"^ *(?:[*/0-9]+ ){4}[*/0-9]+ +(.*)", re.MULTILINE)
    jobs = [(block, job) for block in blocks for job in line.findall(block)]

    assert len(jobs) > 5
    assert [job for block, job in jobs if not (job.startswith("/") or "PATH=" in block)] == []


def test_one_line_publishes_all_folders_of_the_configuration(nightly: TypedPage) -> None:
    [settings] = nightly.blocks("toml")
    (nightly.folder / "resourcesync.toml").write_text(settings)
    first, *jobs = nightly.blocks("text")
    variables = "".join(f"{line}\n" for line in first.splitlines()[:-1])

    assert [by_cron(nightly, variables + job) for job in jobs] == ["", "", ""]

    assert (nightly.folder / "museum" / "resourcesync" / "resourcedump.xml").is_file()


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


def test_the_commands_of_the_page_find_nothing_wrong_with_what_we_publish(tmp_path: Path) -> None:
    (tmp_path / "public").mkdir()
    for name in ("index.html", "a.html", "cat.jpg"):
        (tmp_path / "public" / name).write_bytes(name.encode())
    port, commands = free_port(), shown()
    typed = TypedPage(HOW_TO / JUDGING_PAGES[0], tmp_path, {"8080": str(port)})
    typed.succeed(typed.here("resourcesync publish ./public --url http://127.0.0.1:8080"))
    assert {line.split()[1] for line in commands} == {"explore", "validate", "why"}
    words = ("serve", "./public", "--bind", f"127.0.0.1:{port}")
    with running(script("resourcesync"), *words, port=port, cwd=tmp_path):
        for line in commands:
            assert typed.succeed(typed.here(line)), line


def test_the_page_shows_a_finding_as_the_judge_tells_it(tmp_path: Path) -> None:
    (tmp_path / "changelist.xml").write_text(BROKEN)
    shown_output = re.search(
        r"^```text\n(changelist\.xml:.*?)^```", JUDGING, re.DOTALL | re.MULTILINE
    )
    assert shown_output is not None

    said = resourcesync("validate", "changelist.xml", cwd=tmp_path)

    assert said.stdout == shown_output[1]
    assert said.code == 1
