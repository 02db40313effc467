"""The recipe for static sites is typed: a generator writes all files anew in each build."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.commands.pages import RECIPES, TypedPage
from tests.support.commands.run import files_of
from tests.support.servers.listening import static

PAGES = {
    "index.html": "<p>a site</p>",
    "about/index.html": "<p>about</p>",
    "llms.txt": "# A site",
    "sitemap.xml": '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>',
}


class Project:
    def __init__(self, folder: Path, address: str, *, empties: bool) -> None:
        self.folder, self.pages, self._empties = folder, dict(PAGES), empties
        self.typed = TypedPage(
            RECIPES / "static-site.md", folder, {"https://site.example": address}
        )
        self._builds = 0

    def build(self) -> None:
        """Write all files, each with a time of this build; some generators empty the folder."""
        public = self.folder / "public"
        if self._empties:
            shutil.rmtree(public, ignore_errors=True)
        public.mkdir(exist_ok=True)
        for path in [path for path in public.rglob("*") if path.is_file()]:
            path.unlink() if path.relative_to(public).as_posix() not in self.pages else None
        self._builds += 1
        (robots,) = self.typed.blocks("text")
        for name, text in {**self.pages, "robots.txt": robots}.items():
            path = public / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            moment = time.time() - 1_000_000 + 1_000 * self._builds
            os.utime(path, (moment, moment))

    def deploy(self) -> None:
        www = self.folder / "www"
        for path in list(www.iterdir()):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.folder / "site", www, dirs_exist_ok=True)

    def publish(self) -> str:
        self.build()
        told = self.typed.succeed(self.typed.blocks("sh")[0])
        self.deploy()
        return told

    def pull(self) -> str:
        return self.typed.succeed(self.typed.blocks("sh")[1])


@pytest.fixture(params=[True, False], ids=["it empties its output", "it writes over it"])
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Project]:
    (tmp_path / "www").mkdir()
    with static(tmp_path / "www") as address:
        yield Project(tmp_path, address, empties=request.param)


@pytest.mark.founding("0.9 §1.1", "A small museum lists its static pages", "`publish DIR`")
def test_the_recipe_does_what_it_says(project: Project) -> None:
    assert f"{len(PAGES) + 1} resources" in project.publish()
    assert "In sync" in project.pull()
    assert not (project.folder / "public/.resourcesync").exists()
    copies = files_of(project.folder / "check")
    assert copies["llms.txt"].decode() == PAGES["llms.txt"]
    assert set(copies) == {*PAGES, "robots.txt"}

    project.pages["about/index.html"] = "<p>new</p>"
    del project.pages["llms.txt"]
    assert "1 updated, 1 deleted" in project.publish()
    told = project.pull()

    assert "1 updated, 1 deleted" in told
    assert set(files_of(project.folder / "check")) == {*project.pages, "robots.txt"}


def test_a_build_that_failed_is_not_published(project: Project) -> None:
    project.publish()
    shutil.rmtree(project.folder / "public")
    (project.folder / "public").mkdir()

    ran = project.typed.type(project.typed.blocks("sh")[0])

    assert ran.code != 0
    listed = (project.folder / "lists/resourcesync/resourcelist.xml").read_text()
    assert listed.count("<url>") == len(PAGES) + 1


def test_a_lost_cache_costs_mirrors_no_file(project: Project) -> None:
    project.publish()
    project.pull()
    for name in ("lists", "state"):
        shutil.rmtree(project.folder / name)
    project.publish()

    ran = project.typed.type(project.typed.blocks("sh")[1])

    told = ran.stdout
    assert (ran.code, ran.stderr.count("\n")) == (0, 1)
    assert "warning[change-gap]" in ran.stderr
    assert "In sync" in told
    assert "created" not in told
    assert "updated" not in told


def test_the_workflow_is_one_and_its_commands_are_those_of_the_page(project: Project) -> None:
    (text,) = project.typed.blocks("yaml")
    workflow: dict[Any, Any] = yaml.safe_load(text)
    steps = workflow["jobs"]["site"]["steps"]
    assert workflow[True] == {"push": {"branches": ["main"]}}  # "on" is true in YAML 1.1
    assert all(("uses" in step) != ("run" in step) for step in steps)
    (cache,) = [step["with"] for step in steps if step.get("uses", "").startswith("actions/cache@")]
    assert cache["path"].split() == ["lists", "state"]
    commands = [step["run"] for step in steps if "run" in step]
    publish, copy = commands[-2:]
    project.build()

    project.typed.succeed(f"{publish}\n{copy}")
    project.deploy()

    assert commands[:2] == ["pip install resourcesync", "make site"]
    assert "all hashes verified" in project.pull()
