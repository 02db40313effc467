"""The page on nightly publishing is true: its lines are run as cron and systemd run them."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.commands.run import environment, script

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "publish-every-night.md"
HOME = "/opt/resourcesync/bin"
LINE = re.compile(r"(?:\S+ ){4}\S+  (.+)")


def blocks(kind: str, folder: Path) -> list[str]:
    """Return the blocks of the page, with the folders of this machine."""
    text = PAGE.read_text("utf-8").replace(HOME, str(script("resourcesync").parent))
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
