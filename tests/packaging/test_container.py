"""The image of the service: its recipe is sound, and it is built where a builder works."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.commands.run import program

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "Containerfile"
HADOLINT = Path(sys.executable).parent / "hadolint"


def builder() -> str | None:
    for name in ("podman", "buildah", "docker"):
        if shutil.which(name) and not program(name, "info").code:
            return name
    return None


@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint is not installed")
def test_the_recipe_has_no_fault() -> None:
    ran = program(HADOLINT, RECIPE)

    assert (ran.code, ran.stdout) == (0, "")


def test_the_image_has_pinned_requirements_and_a_user_who_is_not_root() -> None:
    text = RECIPE.read_text("utf-8")

    assert "--require-hashes -r requirements/image.txt" in text
    assert re.search(r"^USER [1-9]\d+:[1-9]\d+$", text, re.MULTILINE)
    assert "/livez" in text
    assert text.count("\nFROM ") == 2


def test_the_image_can_watch_mirrors_and_folders() -> None:
    pins = [
        set((ROOT / "requirements" / name).read_text("utf-8").splitlines())
        for name in ("main.txt", "image.txt")
    ]

    assert pins[0] <= pins[1]
    assert any(line.startswith("watchfiles==") for line in pins[1])  # for publish --watch


def test_what_the_recipe_copies_is_sent_to_the_builder() -> None:
    sent = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }

    assert {"annexes", "src", "share", "pyproject.toml", "hatch_build.py", "README.md"} <= sent
    assert [name for name in sent if not (ROOT / name).exists()] == []


@pytest.mark.timeout(600)
def test_the_image_is_built_and_shows_its_version() -> None:
    name = builder()
    if name is None:
        pytest.skip("no program that builds images works here")
    tag = "localhost/resourcesync-test"
    built = program(name, "build", "-t", tag, "-f", RECIPE, ROOT)
    assert built.code == 0, built.stderr
    assert program(name, "run", "--rm", tag, "--version").stdout.startswith("resourcesync ")
