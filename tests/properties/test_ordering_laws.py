"""Laws of the spool, and of several entries of one key."""

import tempfile
from collections.abc import Callable
from operator import itemgetter

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination.external_sort import ExternalSorter

Pair = tuple[str, int]

KEYS = st.one_of(st.text("ab", max_size=3), st.text(max_size=3).filter(lambda text: text.isascii()))
PAIRS = st.lists(st.tuples(KEYS, st.integers(0, 3)), max_size=60)


def dump(pair: Pair) -> bytes:
    return f"{pair[1]}{pair[0]}".encode()


def load(data: bytes) -> Pair:
    return data[1:].decode(), int(data[:1])


def spool(run_length: int) -> ExternalSorter[Pair]:
    return ExternalSorter(
        key=itemgetter(0), dump=dump, load=load, spill=tempfile.TemporaryFile, run_length=run_length
    )


@given(PAIRS, st.integers(1, 70), st.sampled_from([sorted, list, lambda pairs: pairs[::-1]]))
def test_a_spool_sorts_as_python_does(
    pairs: list[Pair], run_length: int, arrange: Callable[[list[Pair]], list[Pair]]
) -> None:
    given_pairs = arrange(pairs)
    with spool(run_length) as ordered:
        for pair in given_pairs:
            ordered.add(pair)

        first, second = list(ordered), list(ordered)

    assert first == sorted(given_pairs, key=itemgetter(0))
    assert second == first


@given(st.lists(st.tuples(st.text("ab", max_size=2), st.integers(0, 3)), min_size=65, max_size=150))
def test_runs_of_one_entry_are_merged_in_passes_and_ties_keep_their_order(
    pairs: list[Pair],
) -> None:
    with spool(1) as ordered:
        for pair in pairs:
            ordered.add(pair)

        assert list(ordered) == sorted(pairs, key=itemgetter(0))


@given(
    st.lists(st.tuples(st.text("abc", max_size=3), st.integers(0, 9)), max_size=60),
    st.integers(1, 70),
    st.sampled_from([sorted, list]),
)
def test_a_spool_takes_many_as_it_takes_each(
    pairs: list[Pair], run_length: int, arrange: Callable[[list[Pair]], list[Pair]]
) -> None:
    half = len(pairs) // 2
    with spool(run_length) as ordered:
        ordered.add_all(arrange(pairs[:half]))
        ordered.add_all(iter(arrange(pairs[half:])))
        found, size = list(ordered), len(ordered)

    assert found == sorted(arrange(pairs[:half]) + arrange(pairs[half:]), key=itemgetter(0))
    assert size == len(pairs)
