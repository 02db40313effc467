import pytest

from resourcesync.model.vocabulary import (
    Dialect,
)
from tests.support.documents.text import (
    CHANGE_LIST,
    document,
    tell,
    url,
)


@pytest.mark.parametrize(
    ("children", "dialect"),
    [
        (["<lastmod>2013-01-03T12:00:00Z</lastmod><rs:md change='updated'/>"], Dialect.V1_0),
        (["<rs:md change='updated' datetime='2013-01-03T12:00:00Z'/>"], Dialect.V1_1),
        (["<rs:md change='updated'/>"], Dialect.V1_1),
        ([], Dialect.V1_1),
    ],
)
def test_only_the_times_of_changes_tell_1_0_from_1_1(children: list[str], dialect: Dialect) -> None:
    assert tell(document(*(url("http://a/1", c) for c in children), md=CHANGE_LIST)).dialect is (
        dialect
    )
