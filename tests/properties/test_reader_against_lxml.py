"""Our reader and an independent one on lxml say the same of every document.

The second reader is `fuzz.second_reader`; it shares no code with ours. ``python -m
fuzz.differential --count 100000`` compares them on as many documents as wanted.
"""

from pathlib import Path
from typing import Final

import pytest

from fuzz.differential import difference, document
from tests.support.documents.examples import Example, examples

lxml = pytest.importorskip("lxml.etree", reason="the second reader needs lxml")
second_reader = pytest.importorskip("fuzz.second_reader", reason="the second reader needs lxml")
theirs = second_reader.theirs

COUNT: Final = 1_500
WRITERS: Final = Path(__file__).parents[1] / "data" / "writers"


# The second reader knows no dialect before 1.0.
@pytest.mark.parametrize("example", examples("1.0", "1.1", "archives"), ids=str)
def test_the_readers_agree_on_an_example(example: Example) -> None:
    assert difference(example.path.read_bytes(), theirs) == ""


@pytest.mark.parametrize("path", sorted(WRITERS.glob("*.xml")), ids=lambda path: path.stem)
def test_the_readers_agree_on_what_other_writers_make(path: Path) -> None:
    assert difference(path.read_bytes(), theirs) == ""


def test_the_readers_agree_on_generated_documents() -> None:
    documents = enumerate(document("every run", number) for number in range(COUNT))
    found = {number: told for number, text in documents if (told := difference(text, theirs))}

    assert found == {}
