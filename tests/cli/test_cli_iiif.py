"""``publish --iiif`` and ``publish iiif:…``: options, words, exit codes."""

from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app import plugins
from resourcesync.app.serving import applications
from resourcesync.cli.main import run
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.commands.command_line import Said, rows


def test_the_command_says_what_it_wrote_and_remembers_the_types(said: Said) -> None:
    manifest = Path("tree/manifest.json")
    manifest.parent.mkdir()
    manifest.write_text("{}")
    assert run(["publish", "tree", "--url", "https://h.example/", "--iiif", "Manifest"]) == 0
    assert "tree/resourcesync/activities.json" in said.readouterr().out
    manifest.write_text("{1}")
    assert run(["publish", "tree", "--json"]) == 0
    written = [row for row in rows(said) if row["type"] == "written"]
    assert [(row["capability"], row["entries"]) for row in written] == [
        ("activities", 2),
        ("changelist", 1),
        ("resourcelist", 1),
    ]
    assert run(["publish", "tree", "--iiif", "not a type"]) == 2
    assert "'not a type' is not the type of an object" in said.readouterr().err
    assert run(["publish", "tree", "--iiif", ""]) == 0
    assert not Path("tree/resourcesync/activities.json").exists()


@pytest.mark.skipif(
    "iiif" not in plugins.names(plugins.ACCOUNTS),
    reason="this installation is older than iiif: run pip install -e . again",
)
def test_the_command_follows_a_stream(said: Said) -> None:
    late = applications.LateApplication()
    with ServerThread(late) as server:
        for number in range(3):
            path = Path(f"tree/{number}/manifest.json")
            path.parent.mkdir(parents=True)
            path.write_text("{}")
        assert run(["publish", "tree", "--url", server.uri, "--iiif", "Manifest"]) == 0
        late.application = applications.find_tree(Path("tree")).application(SystemClock())
        stream = f"iiif:{server.uri}resourcesync/activities.json"
        words = ["publish", stream, "--url", server.uri, "--out", "out"]
        said.readouterr()
        assert run([*words, "--with", "types=Manifest"]) == 0
        assert "3 resources" in said.readouterr().out
        assert run([*words, "--with", "kinds=Manifest"]) == 2
        assert "iiif: has no option kinds" in said.readouterr().err
        assert run([*words, "--with", "types=Collection"]) == 2
        assert "--allow-empty" in said.readouterr().err
