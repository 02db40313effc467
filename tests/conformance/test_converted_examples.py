"""Examples of every version, converted to 1.1: no MUST is broken that was kept before."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from resourcesync.documents import read
from resourcesync.model.resources import Change
from resourcesync.validator.examination import validate_document
from resourcesync.validator.rule import Level, RuleProfile
from tests.support.documents.examples import PROFILES, Example, examples


def broken(path: Path, profile: RuleProfile) -> set[str]:
    """Return the rules of level MUST that a document breaks."""
    found = validate_document([path.read_bytes()], uri=path.name, profile=profile)
    return {finding.rule.id for finding in found if finding.rule.level is Level.MUST}


@pytest.mark.parametrize("example", examples(), ids=str)
def test_a_converted_example_breaks_nothing_that_the_original_keeps(
    example: Example, tmp_path: Path
) -> None:
    target = tmp_path / "converted.xml"

    assert run(["convert", str(example.path), "--to", "1.1", "--out", str(target), "-q"]) == 0
    new = broken(target, RuleProfile.RS_1_1) - broken(example.path, PROFILES[example.version])
    assert new == set()


@pytest.mark.parametrize("dialect", ["0.5", "0.6", "0.9", "0.9.1", "1.0"])
def test_the_change_lists_of_1_1_go_there_and_back_with_all_their_changes(
    dialect: str, tmp_path: Path
) -> None:
    names = {"closed-change-list", "change-list-part"}
    names |= {"link-alternate", "link-canonical", "link-describedby"}
    lists = [example.path for example in examples("1.1") if example.name in names]
    assert len(lists) >= len(names)
    for path in lists:
        there, back = tmp_path / "there.xml", tmp_path / "back.xml"

        words = ["convert", str(path), "--to", dialect, "--out", str(there)]
        assert run([*words, "-q"]) == 0, path
        assert run(["convert", str(there), "--to", "1.1", "--out", str(back), "-q"]) == 0, path
        assert changes(back) == changes(path), path


def changes(path: Path) -> list[tuple[str, str, object, object]]:

    with path.open("rb") as stream:
        entries = list(read(stream, uri="http://example.com/list.xml").entries())
    assert all(isinstance(entry, Change) for entry in entries)
    return [
        (entry.kind, entry.resource.uri, entry.time, entry.resource.digests)
        for entry in entries
        if isinstance(entry, Change)
    ]
