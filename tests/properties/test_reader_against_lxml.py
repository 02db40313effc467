"""Our reader and an independent one on lxml say the same of every document.

The second reader is `fuzz.second_reader`; it shares no code with ours. ``python -m
fuzz.differential --count 100000`` compares them on as many documents as wanted.
"""

from pathlib import Path
from typing import Final

import pytest

from fuzz.differential import difference, document
from tests.support.documents.examples import Example, examples
from tests.support.documents.text import CHANGE_LIST, url
from tests.support.documents.text import document as written

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
    found = {number: told for number in range(COUNT) if (told := compared(number))}

    assert found == {}


def compared(number: int) -> str:
    return difference(document("every run", number), theirs)


CHANGED: Final = written(
    url("http://a/1", '<rs:md change="updated" datetime="2013-01-03T11:00:00Z" length="5"/>'),
    md=CHANGE_LIST,
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"http://a/1", b"http://a/2"),
        (b"updated", b"deleted"),
        (b"11:00:00", b"11:00:01"),
        (b'"5"', b'"6"'),
        (b'"5"', b'"-5"'),
        (b"2013-01-03T00", b"2013-01-04T00"),
        (b"</url>", b'<rs:ln rel="via" href="x"/></url>'),
        (b"</url>", b"</url><url><loc>x</loc></url>"),
        (b"urlset", b"rss"),
        (b"</urlset>", b""),
    ],
)
def test_the_comparison_sees_each_thing_that_is_told(old: bytes, new: bytes) -> None:
    other = CHANGED.replace(old, new)
    assert other != CHANGED

    assert difference(CHANGED, theirs) == ""
    assert difference(CHANGED, lambda _: theirs(other)) != ""
