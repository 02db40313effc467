"""Laws of splicing: a document that was changed as bytes is the one that is written anew."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.documents import splice, writer
from resourcesync.documents.splice import EntryEdit, EntrySlices
from resourcesync.model.entries import Header, Link, Resource
from resourcesync.model.vocabulary import Capability

HEADER = Header(capability=Capability.RESOURCE_LIST, at=datetime(2026, 1, 1, tzinfo=UTC))
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=4)
NAMES = st.one_of(
    st.integers(0, 40).map(str),
    st.sampled_from(["<url><loc>", "&amp;", "&", "\x80", "é", "\U0001f600", "￿x"[1:], '"', "\t\n"]),
    TEXT,
)
URIS = NAMES.map(lambda name: f"https://h/{name}")
RESOURCES = st.builds(
    lambda length, text: (length, text), st.integers(0, 10**9), st.sampled_from(["", "a", "<url>"])
)
LISTS = st.dictionaries(URIS, RESOURCES, max_size=40)
EDITS = st.dictionaries(URIS, st.none() | RESOURCES, max_size=40)


def resource(uri: str, told: tuple[int, str]) -> Resource:
    length, text = told
    links = (Link(rel="describedby", href=f"https://h/{text}<url><loc>"),) if text else ()
    return Resource(uri=uri, length=length, links=links, extra=(("note", text),) if text else ())


def document(told: dict[str, tuple[int, str]]) -> bytes:
    return b"".join(writer.write(HEADER, [resource(*item) for item in sorted(told.items())]))


def body(told: dict[str, tuple[int, str]]) -> bytes:
    whole = document(told)
    return whole[len(writer.opening(HEADER)) : -len(writer.closing(HEADER))]


def edits_of(told: dict[str, tuple[int, str] | None]) -> list[EntryEdit]:
    return [
        EntryEdit(uri, b"" if new is None else writer.rows([resource(uri, new)], HEADER)[0])
        for uri, new in sorted(told.items())
    ]


def joined(entries: EntrySlices) -> bytes:
    text = b"".join(entries.chunks())
    assert entries.size == len(text)
    return text


@given(LISTS, EDITS)
def test_splicing_gives_the_bytes_of_the_document_written_anew(
    before: dict[str, tuple[int, str]], edits: dict[str, tuple[int, str] | None]
) -> None:
    changed = {**before, **edits}
    after = {uri: told for uri, told in changed.items() if told is not None}

    spliced = splice.splice(splice.entries_of(document(before), len(before)), edits_of(edits))

    assert joined(spliced) == body(after)
    assert spliced.count == len(after)


@given(LISTS, EDITS, st.integers(1, 50), st.integers(1, 5_000))
def test_a_cut_is_between_entries_and_takes_as_many_as_it_may(
    before: dict[str, tuple[int, str]],
    edits: dict[str, tuple[int, str] | None],
    count: int,
    size: int,
) -> None:
    entries = splice.splice(splice.entries_of(document(before), len(before)), edits_of(edits))
    after = sorted({**before, **edits}.items())
    kept = [(uri, told) for uri, told in after if told is not None]

    left, right = entries.cut(count, size)

    assert joined(left) == body(dict(kept[: left.count]))
    assert joined(right) == body(dict(kept[left.count :]))
    assert left.count + right.count == len(kept)
    assert left.count <= 1 or (left.count <= count and left.size <= size)
    if right.count:
        assert left.count
        assert right.first_uri() == kept[left.count][0]
        assert left.count + 1 > count or len(body(dict(kept[: left.count + 1]))) > size
    assert joined(left + right) == joined(entries)
    assert (left + right).count == entries.count
