"""A survey counts what documents list."""

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.discovery.tree import DocumentSurvey
from resourcesync.model.digests import parse_digests, usable
from resourcesync.model.entries import Resource
from resourcesync.model.timestamps import from_microseconds

TIMES = st.integers(10**15, 2 * 10**15).map(from_microseconds)
HASHES = st.sampled_from(
    [
        "",
        "md5:" + "0" * 32,
        "sha256:" + "a" * 64,
        "SHA-256:" + "A" * 64,
        f"md5:{'1' * 32} sha-256:{'b' * 64}",
        f"md5:{'1' * 31} sha-256:{'b' * 64}",
        "sha-256:" + "z" * 64,
        "sha-256:" + "0" * 63,
        "odd:x",
    ]
)
RESOURCES = st.builds(
    Resource,
    uri=st.just("http://h.example/a"),
    lastmod=st.none() | TIMES,
    length=st.none() | st.integers(0, 2**40),
    digests=HASHES.map(parse_digests),
    media_type=st.sampled_from(["", "text/html", "image/jpeg"]),
)


@given(st.lists(RESOURCES, max_size=10), st.lists(RESOURCES, max_size=10))
def test_surveys_add_up(left: list[Resource], right: list[Resource]) -> None:
    whole, survey, other = DocumentSurvey(), DocumentSurvey(), DocumentSurvey()
    for resource in left:
        whole.add_entry(resource)
        survey.add_entry(resource)
    for resource in right:
        whole.add_entry(resource)
        other.add_entry(resource)

    survey.add(other)

    assert survey == whole


@given(st.text("md5:sha-26 \tA0f", max_size=80) | HASHES)
def test_a_hash_counts_where_verification_could_use_it(text: str) -> None:
    found = DocumentSurvey()
    digests = usable(parse_digests(text))

    found.add_entry(Resource(uri="http://h.example/a", digests=parse_digests(text)))

    assert dict(found.algorithms) == dict.fromkeys((digest.algorithm for digest in digests), 1)
    assert (found.hashed, found.unprovable) == (bool(digests), bool(text.strip()) and not digests)
