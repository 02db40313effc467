"""``publish``: what it writes and remembers."""

import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from resourcesync import Catalogue, Resource
from resourcesync.adapters.system import SystemClock
from resourcesync.app.configured_sources import source_keys
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.cli.commands.publish import command
from resourcesync.cli.main import run
from resourcesync.cli.output import QUIET
from resourcesync.cli.render.publish import conclude
from resourcesync.source.publication_options import PublicationResult
from resourcesync.source.publication_settings import CATALOGUE, PublicationSettings
from resourcesync.source.publisher import Publication
from resourcesync.source.scan_for_changes import LeftFile, ScanReport
from tests.support.commands.command_line import Said, rows
from tests.support.commands.settings_file import put
from tests.support.commands.started import Started
from tests.support.rules.judged import code, codes
from tests.support.servers.listening import Listener
from tests.support.servers.tiny_source import TinySource
from tests.support.waiting import wait_until

URL = "https://museum.example"


def test_a_refused_run_keeps_a_catalogue_that_another_input_filled(
    tmp_path: Path, said: Said
) -> None:
    line = '{"uri": "https://museum.example/a", "lastmod": "2026-01-01T00:00:00Z"}\n'
    (tmp_path / "all.ndjson").write_text(line)
    twin = tmp_path / "twin"
    run(["publish", f"ndjson:{tmp_path}/all.ndjson", "--out", str(twin), "--url", URL])

    said.readouterr()
    assert run(["publish", str(twin), "--url", URL, "--allow-empty"]) == 2

    text = said.readouterr().err
    assert "has the lists of another input, and none of the files in it" in text
    assert f"--out {twin}\n" in text
    assert (twin / CATALOGUE).is_file()
    assert run(["publish", f"ndjson:{tmp_path}/all.ndjson", "--out", str(twin)]) == 0


def test_no_step_empties_the_lists_of_a_catalogue_that_is_elsewhere(here: Path, said: Said) -> None:
    Catalogue("c.db").fill([Resource(uri=f"{URL}/a")])
    run(["publish", "catalogue:c.db", "--url", URL, "--out", "www"])
    listed = Path("www/resourcesync/resourcelist.xml").read_bytes()

    for options in (["-n"], ["--initialise"], ["--initialise", "--allow-empty"]):
        assert run(["publish", "www", "--url", URL, *options]) != 0

    assert "the catalogue of www is missing" in said.readouterr().err
    assert Path("www/resourcesync/resourcelist.xml").read_bytes() == listed
    assert [run(["status", name]) for name in ("c.db", "catalogue:c.db")] == [2, 0]
    assert "if it is a Source's catalogue: catalogue:c.db" in said.readouterr().err


@pytest.mark.parametrize("place", ["b", "c.txt"])
def test_what_was_moved_and_linked_back_is_kept_as_published_until_it_is_excluded(
    place: str, tree: Path, said: Said
) -> None:
    (tree / "b").mkdir()
    for name in ("b/1.txt", "c.txt", "gone.txt"):
        (tree / name).write_text(name)
    publish = ["publish", str(tree), "-q"]
    assert run([*publish, "--url", URL, "--include", "*.txt"]) == 0
    (tree / place).rename(tree.parent / "elsewhere")
    (tree / place).symlink_to(tree.parent.absolute() / "elsewhere")
    (tree / "gone.txt").unlink()
    said.readouterr()

    assert run(publish) == 8

    assert f"or leave it out: --exclude /{place}" in said.readouterr().err
    assert "/gone.txt" in (tree / "resourcesync/resourcelist.xml").read_text()
    assert run([*publish, "--exclude", f"/{place}"]) == 0
    changes = (tree / "resourcesync/changelist.xml").read_text()
    assert changes.count('change="deleted"') == 2


def test_the_catalogue_may_be_outside_a_folder_that_is_emptied(tree: Path, said: Said) -> None:
    arguments = ["publish", "public", "--state", "state"]
    assert run([*arguments, "--url", "https://museum.example", "--versions"]) == 0
    assert not (tree / ".resourcesync").exists()
    shutil.rmtree(tree)
    tree.mkdir()
    (tree / "new.txt").write_text("new")
    said.readouterr()

    assert run([*arguments, "--json"]) == 0

    end = rows(said)[-1]
    assert (end["created"], end["deleted"]) == (1, 12)
    assert (tree.parent / "state" / CATALOGUE).exists()
    assert not (tree / ".resourcesync").exists()
    assert "new.txt" in (tree / "resourcesync/changelist.xml").read_text()
    assert run(["publish", "public"]) == 8, "there is no catalogue in the folder"


@pytest.mark.parametrize("target", ["public", "catalogue:c.db"])
def test_a_dry_run_foresees_what_the_run_lists(target: str, tree: Path, capsys: Said) -> None:
    shown, into = ("first", "resources", "created", "updated", "deleted"), ["--out", "lists"]
    steps = [["--url", URL, *into], [], ["--initialise"], ["--url", "https://n.example", *into]]
    for number, options in enumerate(steps):
        (tree / f"{number}.txt").write_text("x")
        (tree / f"{number - 1}.txt").unlink(missing_ok=True)
        Catalogue("c.db").fill([Resource(uri=f"{URL}/{at}") for at in (number, "x")])
        capsys.readouterr()
        assert run(["publish", target, "--json", *options, "-n"]) == 0
        planned = rows(capsys)[-1]
        assert run(["publish", target, "--json", *options]) == 0
        end = rows(capsys)[-1]
        assert [planned[name] for name in shown] == [end[name] for name in shown]
        assert (end["first"], end["deleted"]) == (number == 0, number == 1)


@pytest.mark.parametrize("way", ["--initialise", "--url=https://n.example"])
@pytest.mark.parametrize("kinds", ["all", "resources", "none"])
def test_dumps_start_over_with_the_lists_and_are_offered_at_once(
    way: str, kinds: str, tree: Path, said: Said
) -> None:
    for name in "abc":
        put(name, str(tree / name))
        assert run(["publish", "public", "--url", URL, "--dumps", "all", "-q"]) == 0

    assert run(["publish", "public", way, "--dumps", kinds, "--json"]) == 0

    written = [Path(row["name"]).stem for row in rows(said) if row["type"] == "written"]
    assert set(written) - {"resourcesync"} == {"resourcelist", "changelist", "capabilitylist"}
    assert len(written) == len(set(written))
    heads = {"all": ["resourcedump", "changedump"], "resources": ["resourcedump"]}.get(kinds, [])
    listed = (tree / "resourcesync/capabilitylist.xml").read_text()
    assert re.findall(r'capability="(\w+dump)"', listed) == heads
    dumps = {path.stem: path for path in (tree / "resourcesync").glob("*dump.xml")}
    assert sorted(dumps) == sorted(heads)
    assert "changedump" not in dumps or ".zip" not in dumps["changedump"].read_text()


@contextmanager
def growing(file: Path) -> Iterator[None]:
    ended = Event()

    def grow() -> None:
        while not ended.wait(0.001):
            with file.open("a") as stream:
                stream.write("x")

    Thread(target=grow).start()
    yield
    ended.set()


@pytest.mark.parametrize(("dumps", "code"), [("resources", 3), ("changes", 8)])
def test_what_a_run_lists_is_told_also_if_it_cannot_write_its_dumps(
    dumps: str, code: int, tree: Path, said: Said
) -> None:
    (tree / "z.log").touch()
    os.truncate(tree / "z.log", 30_000_000)
    assert run(["publish", "public", "--url", URL, "--dumps", dumps, "-q"]) == 0
    (tree / "new.txt").write_text("new")
    (tree / "resourcesync/changedump-000001.zip").mkdir()
    said.readouterr()

    with growing(tree / "z.log") if dumps == "resources" else nullcontext():
        assert run(["publish", "public", "--dumps", dumps, "--json"]) == code

    *_, error, end = rows(said)
    assert (error["type"], end["code"], end["created"]) == ("error", error["code"], 1)
    assert "changelist" in [written["capability"] for written in end["written"]]
    assert run(["status", "public", "--json"]) == 0
    _, status, _ = rows(said)
    assert (status["state"], status["unpublished"]) == ("failing", int(code == 3))
    assert status["changed_at"] == status["last_run"]


def test_the_documents_of_a_tree_published_inside_the_tree_are_no_resources(tree: Path) -> None:
    put("not a publication", str(tree / "rooms/resourcesync/floor.txt"))
    put("page", str(tree / "inner/page.html"))
    run(["publish", "public/inner", "--url", "https://museum.example/inner"])

    assert run(["publish", "public", "--url", "https://museum.example"]) == 0

    listed = Path("public/resourcesync/resourcelist.xml").read_text()
    assert "inner/resourcesync" not in listed
    assert "/inner/page.html<" in listed
    assert "/rooms/resourcesync/floor.txt<" in listed


@pytest.mark.parametrize(("changing", "unreadable"), [(1, 0), (0, 1)])
def test_files_that_are_left_for_the_next_run_make_this_one_partial(
    changing: int, unreadable: int
) -> None:
    left = LeftFile(code="unreadable-file", reason="public/a cannot be read: Permission denied")
    done = PublicationResult(
        settings=PublicationSettings(url="https://museum.example"),
        scan=ScanReport(
            files=2, changing=changing, unreadable=unreadable, unlisted=1, left=(left,)
        ),
        publication=Publication(),
    )

    outcome = conclude(done)

    assert outcome.exit == 3
    assert done.report().resources == 1, "the other is in no list"
    quiet = [line.text.strip() for line in outcome.closing if line.level == QUIET]
    assert "1 file not published: unreadable, or changed while being read" in quiet
    assert left.reason in quiet, "cron mails what -q shows"


def test_most_files_touched_are_told_and_may_be_from_a_backup(tree: Path, said: Said) -> None:
    for number in range(12):
        (tree / f"{number}.txt").write_text("one of many")
    wait_until(lambda: time.time() > (tree / "11.txt").stat().st_ctime + 0.1)  # no longer fresh
    run(["publish", "public", "--url", URL])
    shutil.copytree(tree, "restored")

    assert run(["publish", "restored"]) == 0
    for path in tree.rglob("*"):
        path.chmod(0o700)
    assert run(["publish", "public"]) == 0
    told = re.findall(r"\]: \d+ files (.+)\n  fix +(.+)", said.readouterr().err)
    hint = "if they were restored from a backup, mirrors know more: publish with --rebase"
    assert told == [("touched, same bytes", hint)] * 2


def test_damaged_settings_in_the_catalogue_are_told(tree: Path, said: Said) -> None:
    run(["publish", "public", "--url", URL])
    with closing(SourceCatalogue(tree / CATALOGUE, SystemClock())) as catalogue:
        catalogue.write_notes({"publish.settings": "{"})

    assert run(["publish", "public"]) == 8
    assert "the publisher's note 'settings' in the catalogue is damaged" in said.readouterr().err


NAME = "resourcesync-sitemap.xml"


@pytest.mark.founding(
    "D-Lib §4",
    "Search engines get a sitemap of their own, without extensions",
    "`publish --sitemap`",
)
def test_the_protocol_is_kept_at_the_top_and_not_in_a_folder(
    tree: Path, source: TinySource, said: Said
) -> None:
    assert run(["publish", "public", "--url", source.url, "--sitemap"]) == 0
    text = (tree / NAME).read_bytes()
    source.put(f"/{NAME}", text, "application/xml")
    source.put("/resourcesync/sitemap.xml", text, "application/xml")
    said.readouterr()

    assert run(["validate", f"{source.url}/{NAME}", "--profile", "sitemap"]) == 0
    assert run(["validate", f"{source.url}/resourcesync/sitemap.xml", "--profile", "sitemap"]) == 1
    assert set(codes(said.readouterr().out)) == {code("SM01")}


def test_what_search_engines_read_goes_when_it_is_offered_no_more_and_own_files_stay(
    tree: Path, said: Said
) -> None:
    robots, line = tree / "robots.txt", f"Sitemap: {URL}/resourcesync/resourcelist.xml"

    def published(*words: str) -> list[dict[str, Any]]:
        said.readouterr()
        assert run(["publish", "public", "--json", *words]) == 0
        return rows(said)

    published("--url", URL, "--sitemap", "-o", "robots=true")
    rewritten, end = published("--no-sitemap")[-2:]
    assert (rewritten["name"], end["removed"]) == ("robots.txt", [NAME])
    assert robots.read_text().endswith(f"{line}\n")
    end = published("-o", "robots=false")[-1]
    assert (end["removed"], end["created"], robots.exists()) == (["robots.txt"], 0, False)
    robots.write_text("User-agent: *\n")
    for created in (1, 0):
        _, left, *_, end = published("-o", "robots=true")
        assert (left["code"], left["hint"]) == ("robots-left", f"add this line to it: {line}")
        assert (end["created"], robots.read_text()) == (created, "User-agent: *\n")
    robots.write_text(line)
    assert "robots-left" not in str(published())


@pytest.mark.founding(
    "0.9 §8.4", "A librarian's files lead to their metadata", "`--link describedby:{path}.xml`"
)
def test_links_by_rule_are_published_and_remembered(tree: Path, said: Said) -> None:
    (tree / "objects/0002.txt.xml").write_text("<about/>")
    rule = "describedby:{path}.xml only=*.txt type=application/xml"

    assert run(["publish", "public", "--url", "https://museum.example", "--link", rule]) == 0
    first = (tree / "resourcesync/resourcelist.xml").read_text()
    (tree / "objects/0002.txt").write_text("altered\n")
    assert run(["publish", "public"]) == 0
    changes = (tree / "resourcesync/changelist.xml").read_text()
    assert run(["publish", "public", "--link", ""]) == 0
    without = (tree / "resourcesync/resourcelist.xml").read_text()

    link = (
        '<rs:ln rel="describedby" href="https://museum.example/objects/0002.txt.xml"'
        ' type="application/xml"/>'
    )
    assert first.count("describedby") == 1
    assert link in first
    assert link in changes
    assert "describedby" not in without
    said.readouterr()


def test_a_link_by_rule_comes_and_goes_with_the_file_that_it_leads_to(
    tree: Path, said: Said
) -> None:
    about, words = tree / "objects/0001.txt.xml", ["publish", "public", "--json"]
    about.write_text("<about/>")
    link = ["--link", "describedby:{path}.xml only=*.txt", "--versions"]
    assert run([*words, "--url", URL, *link]) == 0
    about.rename(tree / "objects/0002.txt.xml")
    for updated in (2, 0):
        said.readouterr()
        assert run(words) == 0
        assert rows(said)[-1]["updated"] == updated

    lines = (tree / "resourcesync/changelist.xml").read_text().splitlines()
    updates = [re.findall(r'rel="(\w+)"', line) for line in lines if 'change="updated"' in line]
    of_versions = ["memento", "timegate", "timemap"]
    assert updates == [of_versions, ["describedby", *of_versions]]


@contextmanager
def watched(tree: Path, *words: str) -> Iterator[Started]:
    command = ["publish", str(tree), "--watch", "--url", "https://h.example/"]
    with Started(*command, *words, cwd=tree.parent) as process:
        wait_until((tree / ".well-known/resourcesync").exists, 30)
        yield process


def _lists(tree: Path, *words: str) -> Callable[[], bool]:
    path = tree / "resourcesync/changelist.xml"
    return lambda: all(word in path.read_text() for word in words)


def test_changes_are_listed_within_seconds_also_those_in_new_folders(tmp_path: Path) -> None:
    pytest.importorskip("watchfiles", reason="the extra 'watch' is not installed")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.txt").write_text("a")
    with watched(tree) as process:
        (tree / "b.txt").write_text("b")
        wait_until(_lists(tree, "b.txt"))  # two seconds if the machine has nothing else to do
        for depth in ("x", "x/y", "x/y/z"):
            (tree / depth).mkdir()
            for number in range(40):
                (tree / depth / f"{number}.txt").write_text(f"{depth} {number}")
        names = [f"{depth}/{n}.txt<" for depth in ("x", "x/y", "x/y/z") for n in range(40)]
        wait_until(_lists(tree, *names), 30)
        (tree / "a.txt").unlink()
        wait_until(_lists(tree, "deleted"), 20)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)

    assert (process.returncode, errors) == (0, ""), output
    assert output.splitlines()[-1] == "Stopped   no longer watched"


TEXT = """
[source.museum]
path = "public"
url = "https://museum.example/"
exclude = ["*.key"]
rotate = "1d"
keep = "90d"
max_entries = 5
sitemap = true

[source.prints]
path = "prints"
url = "https://prints.example/"
change_lists = "per-run"
out = "lists"
"""


@pytest.fixture
def sources(tree: Path) -> Path:
    (tree / "secret.key").write_text("s3cret")
    prints = tree.parent / "prints"
    prints.mkdir()
    (prints / "a.txt").write_text("a")
    (tree.parent / "resourcesync.toml").write_text(TEXT)
    return tree.parent


def test_the_file_counts_in_each_run_and_the_command_line_stands_above_it(
    sources: Path, said: Said
) -> None:
    run(["publish", "museum"])
    file = sources / "resourcesync.toml"
    file.write_text(TEXT.replace("sitemap = true", "sitemap = false").replace("1d", "2d"))

    assert run(["publish", "museum", "-o", "max_entries=50", "--rebase"]) == 0
    assert "<urlset" in (sources / "public/resourcesync/resourcelist.xml").read_text()


@pytest.mark.parametrize("name", ["sources.prints", "Source.prints", "mirorr.x"])
def test_a_table_of_an_unknown_name_is_refused_and_nothing_is_published(
    name: str, sources: Path, said: Said
) -> None:
    put(TEXT.replace("[source.prints]", f"[{name}]"))

    assert run(["publish", "--all"]) == run(["publish", "museum"]) == 2

    assert f"unknown key `{name.partition('.')[0]}`" in said.readouterr().err
    assert not (sources / "public/resourcesync").exists()


def test_a_catalogue_is_a_source_of_the_file_too(
    sources: Path,
    said: Said,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file = (sources / "resourcesync.toml").resolve()
    put(
        TEXT
        + '[source.loans]\npath = "catalogue:loans.db"\nurl = "https://loans.example/"\n'
        + 'out = "loans"\nrebase_every = "7d"\n'
    )
    Catalogue("loans.db").fill([Resource(uri="https://loans.example/a", length=3)])
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))

    assert run(["publish", "--all", "--config", str(file), "--json"]) == 0

    assert {row["name"] for row in rows(said)[-1]["sources"]} == {"museum", "prints", "loans"}
    listed = file.parent / "loans/resourcesync/resourcelist.xml"
    assert "https://loans.example/a" in listed.read_text()


BASE = "https://museum.example/"


@pytest.fixture
def hub() -> Iterator[Listener]:
    with Listener() as found:
        yield found


def test_a_catalogue_notifies_as_a_folder_does(here: Path, hub: Listener) -> None:
    Path("all.ndjson").write_text(f'{{"uri": "{BASE}a", "length": 1}}\n')
    assert run(["catalogue", "import", "c.db", "all.ndjson", "-q"]) == 0
    options = ["--url", BASE, "--out", "out", "--hub", hub.origin, "-o", "notify=true", "-q"]
    assert run(["publish", "catalogue:c.db", *options]) == 0
    Path("post.ndjson").write_text(f'{{"change": "created", "uri": "{BASE}b", "length": 1}}\n')
    assert run(["catalogue", "post", "c.db", "post.ndjson", "-q"]) == 0
    hub.answer = lambda _: (500, b"")
    assert run(["publish", "catalogue:c.db", "-q"]) == 0
    hub.answer = lambda _: (204, b"")
    assert run(["publish", "catalogue:c.db", "--notify-only", "-q"]) == 0
    assert f"{BASE}b".encode() in hub.posts()[-2].body + hub.posts()[-1].body


@pytest.mark.founding("DSpace: Version", "The Source is of version 0.6", "`-o dialect=0.6`")
@pytest.mark.parametrize("version", ["1.0", "0.9", "0.6"])
def test_a_source_of_an_older_version_is_as_that_version_says(version: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.txt").write_text("a")
    way = ["--change-lists", "per-run", "--dumps", "all", "-q"]
    first = ["--url", "https://museum.example", "-o", f"dialect={version}"]
    assert run(["publish", str(tree), *first, *way]) == 0
    (tree / "b.txt").write_text("b")
    (tree / "a.txt").unlink()
    assert run(["publish", str(tree), "--dumps", "all", "-q"]) == 0

    assert run(["validate", str(tree), "--profile", f"rs-{version}", "--fail-on", "warning"]) == 0
    assert run(["validate", str(tree), "-q"]) == (0 if version == "1.0" else 1)


def test_the_command_that_begins_anew_gives_the_address_that_only_the_catalogue_had(
    tree: Path, said: Said
) -> None:
    assert run(["publish", str(tree), "--url", URL, "-q"]) == 0
    shutil.rmtree(tree / ".resourcesync")
    assert run(["status", str(tree)]) == 8
    _, command = said.readouterr().err.replace("https://HOST", URL).split("anew: resourcesync ")

    assert run(command.splitlines()[0].split()) == 0


def test_what_publish_can_be_given_is_a_key_of_its_table_but_for_what_one_run_does() -> None:
    options = {param.name for param in command.params} - {"tree", "option"}
    of_one_run = {"all", "dry_run", "initialise", "update", "rebase", "notify_only", "watch"}
    of_any_command = {"config", "json", "quiet", "verbose", "progress", "log_file"}

    assert options - source_keys().keys() == of_one_run | of_any_command
    assert {"allow_empty", "every", "rescan", "max_package", "dumps"} < source_keys().keys()
