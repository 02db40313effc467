"""The library's ``Catalogue``: what a program may post, and what it is told of its mistakes."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from resourcesync import Catalogue, Change, ChangeKind, Digest, Resource
from resourcesync.documents import DocumentChange
from resourcesync.errors import ChangesLostError, ConfigurationError, DiscontinuityError

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


def test_a_resource_that_is_given_twice_is_a_mistake_of_the_caller(catalogue: Catalogue) -> None:
    with pytest.raises(ConfigurationError, match="jug occurs twice") as wrong:
        catalogue.fill([JUG, BOWL, JUG])

    assert wrong.value.hint == "give each resource once"


def test_changes_are_posted_and_not_filled_in(catalogue: Catalogue) -> None:
    change: Any = Change(kind=ChangeKind.DELETED, resource=JUG)

    with pytest.raises(ConfigurationError, match="is no resource"):
        catalogue.fill([change])


def test_lost_changes_do_not_come_back_by_themselves() -> None:
    assert issubclass(ChangesLostError, DiscontinuityError)
    assert not ChangesLostError.transient
    assert ChangesLostError("gone").code == "changes-lost"


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
