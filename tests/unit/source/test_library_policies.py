"""The library's ``Publisher``: policies, steps, and what cannot be."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync import Publisher
from resourcesync.errors import ConfigurationError

URL = "https://h.example/"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("a")
    return tmp_path


def names(tree: Path) -> list[str]:
    return sorted(path.name for path in (tree / "resourcesync").iterdir())


def test_a_folder_is_published_by_a_policy_and_in_steps(tree: Path) -> None:
    publisher = Publisher(tree, url=URL, change_lists="archive", dialect="0.6", sitemap=True)

    assert publisher.publish(step="initialise").first
    (tree / "b.txt").write_text("b")
    updated = Publisher(tree).publish(step="update")
    rebased = Publisher(tree, archive=86_400.0).publish(step="rebase")

    assert updated.created == 1
    lists = [written.name for written in rebased.written]
    assert "resourcesync/resourcelist.xml" in lists
    assert "resourcelistarchive.xml" in names(tree)
    assert len([name for name in names(tree) if name.startswith("changelist_")]) == 2
    assert (tree / "resourcesync-sitemap.xml").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"change_lists": "daily"}, "change_lists='daily' must be one of append,"),
        ({"dialect": "2.0"}, "dialect='2.0' must be one of"),
        ({"dialect": "0.9"}, "has no open Change Lists"),
        ({"rotate": -1.0}, "rotate=-1.0 is negative"),
        ({"step": "all"}, "step='all' must be one of due,"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_and_nothing_is_written(
    tree: Path, options: dict[str, Any], complaint: str
) -> None:
    asked = {"step": options.pop("step")} if "step" in options else {}
    with pytest.raises(ConfigurationError) as caught:
        Publisher(tree, url=URL, **options).publish(**asked)

    assert complaint in str(caught.value)
    assert not (tree / "resourcesync").exists()
