"""Laws: any list that one of the two libraries writes, both read alike, to the last digit."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.sources.side_by_side import OURS, REAL, Library, needs_resync, values

pytestmark = needs_resync

# Our reader refuses blanks and invisible characters in addresses, resync does not.
words = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FFF, categories=("L", "N", "P", "S")),
    min_size=1,
    max_size=12,
)
uris = words.map("http://a.example/".__add__)
times = st.one_of(
    st.integers(0, 4_000_000_000),
    st.integers(0, 4_000_000_000_000_000).map(lambda number: number / 1_000_000),
)


def digests(length: int) -> st.SearchStrategy[str]:
    return st.text("0123456789abcdef", min_size=length, max_size=length)


links = st.fixed_dictionaries(
    {"rel": st.sampled_from(["up", "describedby", "duplicate", "x y"]), "href": uris},
    optional={
        "pri": st.integers(1, 999_999),
        "length": st.integers(0, 2**60),
        "type": st.just("text/html"),
        "path": words.map("/".__add__),
        "modified": st.just("2024-01-01T00:00:00Z"),
        "hash": digests(32).map("md5:".__add__),
    },
)
resources = st.fixed_dictionaries(
    {"uri": uris},
    optional={
        "timestamp": times,
        "length": st.integers(0, 2**62),
        "mime_type": st.just("text/plain"),
        "md5": digests(32),
        "sha1": digests(40),
        "sha256": digests(64),
        "ln": st.lists(links, min_size=1, max_size=3),
    },
)
changes = st.builds(
    lambda resource, kind, time: {**resource, "change": kind, "ts_datetime": time},
    resources,
    st.sampled_from(["created", "updated", "deleted"]),
    times,
)


def copied(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [dict(link) for link in told]


def said(library: Library, name: tuple[str, str], text: str) -> tuple[Any, ...]:
    """Return what a document says, without the times that only ours writes."""
    found = getattr(getattr(library, name[0]), name[1])()
    found.parse(str_data=text)
    md, ln, entries = values(found)
    shown = {key: value for key, value in md.items() if key not in ("md_at", "md_from")}
    return shown, ln, entries, [each.ts_datetime for each in found]


def check(name: tuple[str, str], rows: list[dict[str, Any]], ln: list[dict[str, Any]]) -> None:
    texts = []
    for library in (REAL, OURS):
        made = getattr(getattr(library, name[0]), name[1])()
        made.ln = copied(ln)
        for row in rows:
            own = {**row, "ln": copied(row["ln"])} if "ln" in row else row
            made.add(library.resource.Resource(**own))
        texts.append(made.as_xml())

    expected, *others = (said(library, name, text) for text in texts for library in (REAL, OURS))

    assert [other for other in others if other != expected] == []


@given(
    st.lists(resources, max_size=4, unique_by=lambda row: str(row["uri"])),
    st.lists(links, max_size=2),
)
def test_a_resource_list_of_either_is_read_alike_by_both(
    rows: list[dict[str, Any]], ln: list[dict[str, Any]]
) -> None:
    check(("resource_list", "ResourceList"), rows, ln)


@given(st.lists(changes, max_size=4), st.lists(links, max_size=2))
def test_a_change_list_of_either_is_read_alike_by_both(
    rows: list[dict[str, Any]], ln: list[dict[str, Any]]
) -> None:
    check(("change_list", "ChangeList"), rows, ln)
