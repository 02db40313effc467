"""Whatever a table says from one publication to the next: who follows its lists has that."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resourcesync.source.plan import PublicationStep
from resourcesync.source.publication_options import PublishRequest
from tests.support.accounts.published_table import BASE, PublishedTable, Row

NAMES = st.sampled_from([f"{BASE}{name}" for name in ("a", "b/%C3%A9", "b?x=1&y=2", "c", "d", "e")])
HASHES = st.sampled_from(["", "sha-256:" + "0" * 64, "sha-256:" + "ab" * 32, "md5:" + "1" * 32])
ROWS = st.dictionaries(
    NAMES,
    st.tuples(
        st.none() | st.integers(0, 2 * 10**15),
        st.none() | st.integers(0, 1 << 62),
        HASHES,
        st.sampled_from(["", "text/plain", "text/html; charset=utf-8"]),
    ),
    min_size=1,
)
STEPS = st.sampled_from(
    [
        PublicationStep.DUE,
        PublicationStep.DUE,
        PublicationStep.UPDATE,
        PublicationStep.REBASE,
        PublicationStep.INITIALISE,
    ]
)
TABLES = st.lists(st.tuples(ROWS, STEPS, st.integers(0, 3)), min_size=2, max_size=4)


def rows_of(table: dict[str, tuple[int | None, int | None, str, str]]) -> list[Row]:
    return [(uri, *table[uri]) for uri in sorted(table, reverse=True)]


def same_bytes(row: Row) -> tuple[object, ...]:
    """Return what must be followed of a row: the rest comes with the next Resource List."""
    uri, lastmod, length, digests, _ = row
    return uri, length, digests, None if digests else lastmod


@given(told=TABLES)
@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
def test_who_follows_the_lists_has_what_the_table_says(
    told: list[tuple[dict[str, tuple[int | None, int | None, str, str]], PublicationStep, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = PublishedTable(Path(folder))
        for table, step, seconds in told:
            rows = rows_of(table)
            world.clock.advance(seconds=seconds)
            world.tell(rows)
            asked = PublishRequest(step=step, allow_empty=True)
            world.publish(asked, max_entries=2)

            wanted = sorted(rows)
            followed = world.followed()
            assert [same_bytes(item) for item in followed] == [same_bytes(item) for item in wanted]
            if step in (PublicationStep.REBASE, PublicationStep.INITIALISE):
                assert world.listed()[1] == wanted

            before = world.files()
            again = world.publish(max_entries=2)
            assert again.publication.written == ()
            assert world.files() == before
