"""Documents that another catalogue wrote are not overwritten by a publication."""

import shutil
from pathlib import Path

import pytest

from resourcesync.app.serving.applications import find_tree
from resourcesync.cli.main import run
from tests.support.commands.command_line import Said

MUSEUM, OTHER = "https://museum.example", "https://other.example"


@pytest.fixture
def museum(here: Path, said: Said) -> Path:
    """Return a published folder, beside another one that is not."""
    for name in ("museum", "archive"):
        Path(name).mkdir()
        Path(name, "page.txt").write_text(name)
    assert run(["publish", "museum", "--url", MUSEUM]) == 0
    said.readouterr()
    return Path("museum")


def files_of(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("url", [MUSEUM, OTHER])
@pytest.mark.parametrize("dry", [[], ["-n"]])
def test_the_documents_of_another_source_are_not_overwritten(
    museum: Path, url: str, dry: list[str], said: Said
) -> None:
    before = files_of(museum)

    assert run(["publish", "archive", "--url", url, "--out", "museum", *dry]) == 2

    told = said.readouterr().err
    assert "resourcelist.xml already exists, and this catalogue did not write it" in told
    assert "--out DIR, or --initialise" in told
    assert files_of(museum) == before
    assert not Path("archive/.resourcesync").exists()


def test_a_catalogue_that_is_lost_does_not_begin_again_without_a_word(
    museum: Path, said: Said
) -> None:
    shutil.rmtree(museum / ".resourcesync")
    before = files_of(museum)

    assert run(["publish", "museum", "--url", MUSEUM]) == 2
    assert "restore the catalogue" in said.readouterr().err
    assert files_of(museum) == before

    assert run(["publish", "museum", "--url", MUSEUM, "--initialise"]) == 0


def test_a_source_begins_again_at_its_own_address_only(museum: Path, said: Said) -> None:
    before = files_of(museum)

    assert run(["publish", "archive", "--url", OTHER, "--out", "museum", "--initialise"]) == 2

    told = said.readouterr().err
    assert f"{MUSEUM}/resourcesync/capabilitylist.xml" in told
    assert "remove the documents" in told
    assert files_of(museum) == before


def test_documents_that_move_leave_a_warning_and_are_found_by_the_server(
    museum: Path, said: Said
) -> None:
    assert run(["publish", "museum", "--out", "lists"]) == 0
    warning = said.readouterr().err
    message = "the documents in the published folder are no longer written"
    assert f"warning[out-changed]: {message}" in warning

    (museum / "resourcesync").rename("former")
    (museum / ".well-known").rename("former/.well-known")
    assert find_tree(museum).out.resolve() == Path("lists").resolve()
    assert run(["publish", "museum"]) == 0
    assert "out-changed" not in said.readouterr().err
