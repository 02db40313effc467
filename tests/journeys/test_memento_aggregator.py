"""An aggregator of archives reads our TimeMaps and TimeGates: MemGator, of Old Dominion University.

It puts the whole address of a page behind the prefixes of each archive that it knows. The test runs
where the program ``memgator`` is installed.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving import applications
from tests.support.in_memory import ManualClock

_PROGRAM = shutil.which("memgator")
_VERSIONS = "resourcesync/versions"

pytestmark = pytest.mark.skipif(_PROGRAM is None, reason="memgator is not installed")


def _publish_versions(root: Path, address: str, texts: tuple[str, ...]) -> None:
    """Publish a file once for each text, an hour apart."""
    clock = ManualClock()
    for text in texts:
        (root / "a b.html").write_text(text)
        modified = clock.now().timestamp() - 60
        os.utime(root / "a b.html", (modified, modified))
        publish_tree(root, {"url": address, "versions": True}, clock=clock)
        clock.advance(hours=1)


def _ask_memgator(folder: Path, server: str, *words: str) -> dict[str, Any]:
    """Return what the aggregator found at our server, as it prints it in JSON."""
    archives = folder / "archives.json"
    place = f"{server}/{_VERSIONS}"
    archive = {
        "id": "museum",
        "name": "Museum",
        "timemap": f"{place}/timemap/",
        "timegate": f"{place}/timegate/",
    }
    archives.write_text(json.dumps([archive]))
    assert _PROGRAM is not None
    ended = subprocess.run(
        [_PROGRAM, "--arcs", str(archives), "--format", "JSON", *words],
        capture_output=True,
        timeout=60,
        check=True,
    )
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def test_memgator_finds_all_our_mementos_and_the_one_of_a_moment(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    late = applications.LateApplication()
    with applications.ServerThread(late) as running:
        _publish_versions(root, running.uri, ("one", "two", "three"))
        late.application = applications.find_tree(root).application(SystemClock())
        address = f"{running.uri.rstrip('/')}/a%20b.html"
        server = running.uri.rstrip("/")

        every = _ask_memgator(tmp_path, server, address)["mementos"]
        moment = every["list"][1]["datetime"].translate(str.maketrans("", "", "-T:Z"))
        around = _ask_memgator(tmp_path, server, address, moment)["mementos"]

    uris = [memento["uri"] for memento in every["list"]]
    assert len(uris) == len(set(uris)) == 3
    assert all(uri.startswith(f"{server}/{_VERSIONS}/") for uri in uris)
    assert (every["first"]["uri"], every["last"]["uri"]) == (uris[0], uris[-1])
    assert around["closest"]["uri"] == uris[1]
