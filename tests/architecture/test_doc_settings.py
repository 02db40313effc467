"""What the pages say of settings is true: tables of configuration, extras, globs."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.app.tables import TABLES
from resourcesync.cli.configured_mirrors import MirrorConfiguration
from resourcesync.discovery.uris import normalise
from resourcesync.model.globs import parse_glob
from resourcesync.settings import files

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("[!_]*/*.md"))]
GLOBS = ROOT / "docs" / "how-to" / "choose-what-is-mirrored.md"


def shown_tables() -> Iterator[tuple[str, str]]:
    """Each block of a page that is a configuration file of ours."""
    for page in PAGES:
        for block in re.findall(
            r"^ *```toml\n(.*?)^ *```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
        ):
            if not tomllib.loads(block).keys() - set(TABLES):
                yield page.relative_to(ROOT).as_posix(), block


SHOWN = list(shown_tables())


@pytest.mark.parametrize(("page", "block"), SHOWN, ids=[page for page, _ in SHOWN])
def test_a_table_of_configuration_that_a_page_shows_is_understood(
    page: str, block: str, tmp_path: Path
) -> None:
    path = tmp_path / files.NAME
    path.write_text(block, "utf-8")
    configuration = MirrorConfiguration(files.find(path))

    for name in configuration.names:
        assert configuration.mirror(name).name == name, page


def test_an_extra_that_a_page_names_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for page in PAGES:
        for names in re.findall(r"resourcesync\[([a-z0-9,]+)\]", page.read_text("utf-8")):
            assert set(names.split(",")) <= project["optional-dependencies"].keys(), page


def rows(heading: str) -> Iterator[tuple[str, str, bool]]:
    """Yield glob, path and whether it fits, as a section of the page says."""
    section = GLOBS.read_text("utf-8").partition(f"## {heading}")[2].partition("\n## ")[0]
    for glob, fits, fits_not in re.findall(
        r"^\| `(.+?)` \| (.*?) \| (.*?) ?\|$", section, re.MULTILINE
    ):
        yield from ((glob, path, True) for path in re.findall("`(.+?)`", fits))
        yield from ((glob, path, False) for path in re.findall("`(.+?)`", fits_not))


@pytest.mark.parametrize(("glob", "path", "fits"), list(rows("Globs")))
def test_a_glob_of_a_mirror_fits_what_the_page_says(
    glob: str,
    path: str,
    fits: bool,
) -> None:
    uri = normalise(f"https://museum.example{path}").removeprefix("https://museum.example")
    name, question, query = uri.partition("?")
    assert parse_glob(glob).matches(name, query if question else None) is fits
