"""``publish``: what it writes, says and remembers."""

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.cli.formatting import QUIET
from resourcesync.cli.main import run
from resourcesync.cli.render.publish import conclude
from resourcesync.source.publication_options import PublicationResult
from resourcesync.source.publication_settings import CATALOGUE, PublicationSettings
from resourcesync.source.publisher import Publication
from resourcesync.source.scan import LeftFile, ScanReport
from tests.support.commands.command_line import Said, rows
from tests.support.commands.settings_file import put

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
    assert run(["publish", "public"]) == 2, "there is no catalogue in the folder"


def test_the_documents_of_a_tree_published_inside_the_tree_are_no_resources(tree: Path) -> None:
    put("not a publication", str(tree / "rooms/resourcesync/floor.txt"))
    put("page", str(tree / "inner/page.html"))
    run(["publish", "public/inner", "--url", "https://museum.example/inner"])

    assert run(["publish", "public", "--url", "https://museum.example"]) == 0

    listed = Path("public/resourcesync/resourcelist.xml").read_text()
    assert "inner/resourcesync" not in listed
    assert "/inner/page.html<" in listed
    assert "/rooms/resourcesync/floor.txt<" in listed


def test_a_tree_that_is_being_published_is_locked(tree: Path, said: Said) -> None:
    run(["publish", "public", "--url", "https://museum.example"])
    code = (
        "import sys; from pathlib import Path\n"
        "from resourcesync.catalogue.database import SourceCatalogue\n"
        "from resourcesync.adapters.system import SystemClock\n"
        "held = SourceCatalogue(Path(sys.argv[1]), SystemClock()); print('held', flush=True)\n"
        "sys.stdin.read()"
    )
    held = [sys.executable, "-c", code, "public/.resourcesync/catalogue.db"]
    with subprocess.Popen(held, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        said.readouterr()

        assert run(["publish", "public"]) == 9

        other.communicate("")
    assert said.readouterr().err.startswith("error[locked]")


def test_a_file_that_cannot_be_read_is_left_for_the_next_run(tree: Path, said: Said) -> None:
    os.symlink("/etc/hostname", tree / "out.txt")

    assert run(["publish", "public", "--url", "https://museum.example"]) == 0

    captured = said.readouterr()
    assert "warning[omitted]: out.txt is not published" in captured.err
    assert ".resourcesync" not in captured.err


@pytest.mark.parametrize(("changing", "unreadable"), [(1, 0), (0, 1)])
def test_files_that_are_left_for_the_next_run_make_this_one_partial(
    changing: int, unreadable: int
) -> None:
    left = LeftFile(code="unreadable-file", reason="public/a cannot be read: Permission denied")
    done = PublicationResult(
        settings=PublicationSettings(url="https://museum.example"),
        scan=ScanReport(files=2, changing=changing, unreadable=unreadable, left=(left,)),
        publication=Publication(),
    )

    outcome = conclude(done)

    assert outcome.exit == 3
    quiet = [line.text.strip() for line in outcome.closing if line.level == QUIET]
    assert "1 file not published: unreadable, or changed while being read" in quiet
    assert left.reason in quiet, "cron mails what -q shows"


def test_damaged_settings_in_the_catalogue_are_told(tree: Path, said: Said) -> None:
    run(["publish", "public", "--url", "https://museum.example"])
    with closing(SourceCatalogue(tree / CATALOGUE, SystemClock())) as catalogue:
        catalogue.write_notes({"publish.settings": "{"})

    assert run(["publish", "public"]) == 8
    assert "the publisher's note 'settings' in the catalogue is damaged" in said.readouterr().err
