"""The library's ``Catalogue`` and ``Publisher``: what they take, and what is told of mistakes."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from resourcesync import Catalogue, Change, ChangeKind, Digest, Publisher, Resource
from resourcesync.documents import DocumentChange
from resourcesync.errors import ConfigurationError

JUG = Resource("https://h.example/jug", length=5)
BOWL = Resource("https://h.example/bowl", length=6)


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return Catalogue(tmp_path / "catalogue.db")


def test_a_change_whose_kind_is_a_string_is_of_that_kind(catalogue: Catalogue) -> None:
    catalogue.fill([JUG, BOWL])

    posted = catalogue.post([Change(kind="deleted", resource=JUG)])  # type: ignore[arg-type]  # as a caller may

    assert posted.deleted == 1
    assert list(catalogue.resources()) == [BOWL]


@pytest.mark.parametrize("kind", ["removed", "Deleted", "", None, 1])
def test_there_is_no_change_of_another_kind(kind: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid ChangeKind"):
        Change(kind=kind, resource=JUG)
    with pytest.raises(ValueError, match="is not a valid ChangeKind"):
        DocumentChange(uri="https://h.example/changelist.xml", kind=kind)


def test_a_resource_that_is_given_twice_or_a_change_in_its_place_is_a_mistake(
    catalogue: Catalogue,
) -> None:
    change: Any = Change(kind=ChangeKind.DELETED, resource=JUG)

    with pytest.raises(ConfigurationError, match="jug occurs twice") as wrong:
        catalogue.fill([JUG, BOWL, JUG])
    assert wrong.value.hint == "give each resource once"
    with pytest.raises(ConfigurationError, match="is no resource"):
        catalogue.fill([change])


@pytest.mark.parametrize(
    "wrong",
    [
        {"digests": (Digest("sha256", "a" * 64),)},
        {"digests": (Digest("sha-256", "a" * 40),)},
        {"digests": (Digest("sha-256", ""),)},
        {"digests": (Digest("blake3", ""),)},
        {"lastmod": datetime(2026, 1, 1)},  # noqa: DTZ001 - this is the fault
        *({"length": length} for length in (5.5, "5", True)),
    ],
)
def test_a_value_that_no_reader_could_use_is_refused_with_its_resource(
    catalogue: Catalogue, wrong: dict[str, Any]
) -> None:
    resource = Resource(JUG.uri, **wrong)

    with pytest.raises(ConfigurationError, match=JUG.uri) as refused:
        catalogue.fill([resource])
    assert "length" not in wrong or "whole number" in refused.value.hint
    with pytest.raises(ConfigurationError, match=JUG.uri):
        catalogue.post([Change(kind=ChangeKind.CREATED, resource=resource)])

    assert list(catalogue.resources()) == []


def test_a_digest_of_an_algorithm_that_we_do_not_know_stays_as_it_is(catalogue: Catalogue) -> None:
    known = Resource(JUG.uri, digests=(Digest("blake3", "ab" * 32),))

    catalogue.fill([known])

    assert list(catalogue.resources()) == [known]


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


def test_a_step_or_a_policy_that_does_not_exist_is_refused_and_nothing_is_written(
    tree: Path,
) -> None:
    with pytest.raises(ConfigurationError, match="step='all' must be one of due,"):
        Publisher(tree, url=URL).publish(step="all")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="change_lists='daily' must be one of append,"):
        Publisher(tree, url=URL, change_lists="daily")  # type: ignore[arg-type]
    assert not (tree / "resourcesync").exists()
