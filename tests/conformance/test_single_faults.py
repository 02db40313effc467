"""``validate`` names each single fault that is put into a sound document, by its rule."""

from pathlib import Path
from typing import Final

import pytest

from resourcesync.validator.examination import validate_document
from tests.support.documents.examples import OURS
from tests.support.rules.documents import GOOD
from tests.support.rules.mutations import FAULTS, Mutation, mutations

SEED: Final = 2026
EACH: Final = 2
"""How many documents each fault is put into, at a place by chance."""
PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "conformance.md"
WRITERS: Final = Path(__file__).parents[1] / "data" / "writers"


def rules(text: str) -> set[str]:
    uri = "https://e.example/list.xml"
    return {finding.rule.id for finding in validate_document([text.encode()], uri=uri)}


def sound() -> dict[str, str]:
    """Return the documents of all kinds in which nothing is found."""
    files = [*sorted((OURS / "1.1").glob("*.xml")), *sorted(WRITERS.glob("*.xml"))]
    texts = {**GOOD, **{path.stem: path.read_text("utf-8") for path in files}}
    return {name: text for name, text in texts.items() if not rules(text)}


MUTATIONS: Final = list(mutations(sound(), seed=SEED, each=EACH))


def test_there_are_more_than_sixty_different_faults_and_the_page_has_the_numbers() -> None:
    assert len(FAULTS) >= 60
    page = PAGE.read_text("utf-8")
    assert f"{len(FAULTS)} kinds of single faults" in page
    assert f"two of {len(sound())} sound documents" in page
    assert f"make {len(MUTATIONS)} documents" in page
    assert len({mutation.text for mutation in MUTATIONS}) > 2 * 60
    assert all(any(set(fault.rule) == set(m.rules) for m in MUTATIONS) for fault in FAULTS)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_single_fault_is_named_by_its_rule(mutation: Mutation) -> None:
    assert mutation.text != mutation.sound
    assert rules(mutation.text) & set(mutation.rules)
