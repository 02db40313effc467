"""The `resync` client follows what we publish under each policy, list by list, or anew."""

import re
from pathlib import Path

import pytest

from tests.support.commands.peers import needs_resync
from tests.support.commands.run import files_of, free_port, resourcesync, run, running, script

pytestmark = needs_resync


def _sync(home: Path, url: str, folder: str, *words: str) -> None:
    ran = run(script("resync-sync"), *words, f"{url}/", folder, cwd=home)
    assert "FatalError" not in ran.said, ran.said
    assert "Traceback" not in ran.said, ran.said


def _lists(tree: Path, head: str) -> list[str]:
    """The Change Lists in order, as an index or an archive tells; the head if it is one itself."""
    text = (tree / "resourcesync" / head).read_text()
    return re.findall(r"<loc>[^<]*/(changelist[-_][^<]*)</loc>", text) or [head]


@pytest.mark.parametrize(
    ("head", "options", "version"),
    [
        ("changelist.xml", ["-o", "dialect=1.0"], "1.0"),
        ("changelist.xml", ["-o", "max_entries=2"], "1.1"),
        ("changelist.xml", ["--change-lists", "per-run"], "1.1"),
        ("changelistarchive.xml", ["--change-lists", "archive"], "1.1"),
    ],
)
def test_resync_follows_the_lists_and_starts_from_the_newest_resource_list(
    tmp_path: Path, head: str, options: list[str], version: str
) -> None:
    tree, home = tmp_path / "tree", tmp_path / "home"
    home.mkdir()
    tree.mkdir()
    (tree / "a.txt").write_text("a")
    (tree / "b.txt").write_text("b")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    first = resourcesync("publish", tree, "--url", url, *options, cwd=home)
    assert first.code == 0, first.said
    with running(
        script("resourcesync"), "serve", tree, "--bind", f"127.0.0.1:{port}", port=port, cwd=home
    ):
        _sync(home, url, "old", "--baseline")
        steps: list[list[str]] = [["--update"], ["--rebase"]]
        read: set[str] = set()
        for number, step in enumerate(steps):
            (tree / f"new {number}.txt").write_text(f"{number}")
            (tree / "a.txt").write_text(f"a {number}")
            assert resourcesync("publish", tree, *step, cwd=home).code == 0
            lists = [f"{url}/resourcesync/{name}" for name in _lists(tree, head)]
            for uri in lists:
                if uri not in read:
                    words = ("--incremental", "--delete", "--spec-version", version)
                    _sync(home, url, "old", *words, "--changelist-uri", uri)
            read |= set(lists[:-1])
        expected = {
            name.replace(" ", "%20"): content
            for name, content in files_of(tree).items()
            if "resourcesync" not in name
        }
        assert files_of(home / "old") == expected
        resourcesync("publish", tree, "--rebase", cwd=home)
        _sync(home, url, "late", "--baseline")
        assert files_of(home / "late") == expected
