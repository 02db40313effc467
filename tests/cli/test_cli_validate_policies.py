"""What each policy publishes is judged by our validator, with nothing to complain of."""

import time
from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving.applications import LateApplication, find_tree
from resourcesync.cli.main import run
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.source.plan import PublicationStep
from resourcesync.source.publication_options import PublishRequest
from tests.support.commands.command_line import Said, rows

POLICIES: dict[str, dict[str, object]] = {
    "ages": {"rotate": 0.01, "archive": 9e5, "sitemap": True, "max_entries": 3, "robots": True},
    "dropped": {"rotate": 0.01, "keep": 0.05, "archive": 9e5},
    "per-run": {"change_lists": "per-run", "archive": 9e5},
    "archive": {"change_lists": "archive"},
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_live_source_of_each_policy_breaks_no_rule(name: str, tmp_path: Path, said: Said) -> None:
    tree, clock = tmp_path / "tree", SystemClock()
    tree.mkdir()
    for number in range(5):
        (tree / f"{number}.txt").write_text(f"{number}")
    application = LateApplication()
    with ServerThread(application) as server:
        publish_tree(tree, {"url": server.uri, **POLICIES[name]}, clock=clock)
        for number in range(4):
            time.sleep(0.03)
            (tree / f"{number}.txt").write_text(f"anew {number}")
            publish_tree(tree, {}, clock=clock, asked=PublishRequest(step=PublicationStep.REBASE))
        application.application = find_tree(tree).application(clock)

        code = run(["validate", server.uri, "--live", "--json"])

    told = rows(said)
    found = [row for row in told if row["type"] == "finding" and row["severity"] != "advice"]
    assert found == []
    assert code == 0
    assert told[-1]["documents"] >= 4
