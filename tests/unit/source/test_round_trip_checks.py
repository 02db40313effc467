"""What a glance finds plain is understood when it is written and read."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.model.digests import ALGORITHMS, Digest
from resourcesync.model.entries import Link, Resource
from resourcesync.source.round_trip import find_fault, find_round_trip_fault

TEXTS = st.text(st.characters(codec="utf-8", max_codepoint=0x2FF), max_size=6) | st.text(
    st.sampled_from("<>&\"' \t\n;]"), max_size=4
)
TIMES = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=3)), None]))
DIGESTS = st.builds(
    lambda name, size: Digest(name, "a" * size),
    st.sampled_from([*ALGORITHMS, "odd", ""]),
    st.sampled_from([0, *ALGORITHMS.values()]),
)
USUAL = Resource(
    uri="https://h.example/a%20b?x=1&y=2",
    lastmod=datetime(2026, 1, 2, tzinfo=UTC),
    length=3,
    digests=(Digest("md5", "0" * 32),),
    media_type="text/html;charset=utf-8",
)
LINKS = st.builds(lambda href: (Link(rel="up", href=href),), TEXTS)
ODD = st.one_of(
    st.builds(lambda text: replace(USUAL, uri=USUAL.uri + text), TEXTS),
    st.builds(lambda text: replace(USUAL, uri=text), TEXTS),
    st.builds(lambda time: replace(USUAL, lastmod=time), TIMES),
    st.builds(
        lambda size: replace(USUAL, length=size),
        st.sampled_from([None, -1, 0, 1 << 61, 1 << 64, True, 1.5]),
    ),
    st.builds(lambda text: replace(USUAL, media_type=text), TEXTS),
    st.builds(lambda found: replace(USUAL, digests=tuple(found)), st.lists(DIGESTS, max_size=8)),
    st.builds(lambda found: replace(USUAL, links=found), LINKS),
)


@given(ODD)
@example(replace(USUAL, digests=USUAL.digests * 17))
@example(replace(USUAL, digests=(Digest("md5", "a b"),)))
@example(replace(USUAL, length=-1))
@example(replace(USUAL, length=1 << 64))
@settings(max_examples=150)
def test_who_only_glances_finds_no_fault_less(resource: Resource) -> None:
    assert bool(find_fault([resource])) is bool(find_round_trip_fault([resource]))
