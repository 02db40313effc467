"""A link of the root that comes after the entries has one meaning, however long the list is."""

from tests.support.documents.text import document, tell, url

LATE = '<rs:ln rel="up" href="http://a/late"/>'


def test_a_late_link_counts_in_a_long_document_as_in_a_short_one() -> None:
    short, long = (
        tell(document(*(url(f"http://a/{n}") for n in range(count)), LATE)) for count in (1, 5000)
    )

    assert short.header.links == long.header.links == ()
