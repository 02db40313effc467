"""The specification's own examples, converted to 1.1: no MUST is broken that was kept before."""

from pathlib import Path
from typing import Final

import pytest

from resourcesync.cli.main import run
from resourcesync.documents import read
from resourcesync.model.resources import Change
from resourcesync.validator.examining import validate_document
from resourcesync.validator.rule import Level, Profile

CORPUS: Final = Path(__file__).parents[2].parent / "shared" / "corpus"
FOLDERS: Final = {
    "spec-0.9": Profile.RS_1_1,
    "spec-1.0": Profile.RS_1_0,
    "spec-1.1": Profile.RS_1_1,
    "archives-1.0": Profile.RS_1_0,
}
pytestmark = pytest.mark.skipif(
    not (CORPUS / "spec-1.1").is_dir(), reason="the specification's examples are not here"
)


def broken(path: Path, profile: Profile) -> set[str]:
    """Return the rules of level MUST that a document breaks."""
    found = validate_document([path.read_bytes()], uri=path.name, profile=profile)
    return {it.rule.id for it in found if it.rule.level is Level.MUST}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_converted_example_breaks_nothing_that_the_original_keeps(
    folder: str, tmp_path: Path
) -> None:
    paths = sorted((CORPUS / folder).glob("*.xml"))
    assert len(paths) >= 7
    for path in paths:
        target = tmp_path / path.name

        assert run(["convert", str(path), "--to", "1.1", "--out", str(target), "-q"]) == 0, path
        new = broken(target, Profile.RS_1_1) - broken(path, FOLDERS[folder])
        assert new == set(), path.name


@pytest.mark.parametrize("dialect", ["0.5", "0.6", "0.9", "0.9.1", "1.0"])
def test_the_change_lists_of_1_1_go_there_and_back_with_all_their_changes(
    dialect: str, tmp_path: Path
) -> None:
    names = [f"resourcesync_ex_{number}.xml" for number in (3, 21, 25, 26, 28)]
    for name in names:
        there, back = tmp_path / "there.xml", tmp_path / "back.xml"

        words = ["convert", str(CORPUS / "spec-1.1" / name), "--to", dialect, "--out", str(there)]
        assert run([*words, "-q"]) == 0, name
        assert run(["convert", str(there), "--to", "1.1", "--out", str(back), "-q"]) == 0, name
        assert changes(back) == changes(CORPUS / "spec-1.1" / name), name


def changes(path: Path) -> list[tuple[str, str, object, object]]:

    with path.open("rb") as stream:
        entries = list(read(stream, uri="http://example.com/list.xml").entries())
    assert all(isinstance(entry, Change) for entry in entries)
    return [
        (it.kind, it.resource.uri, it.time, it.resource.digests)
        for it in entries
        if isinstance(it, Change)
    ]
