"""JSON Patch: the operations of RFC 6902, in the hand in which the version before is written."""

import io
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.documents.patches.json_patch import apply, apply_operations
from resourcesync.documents.patches.limits import MAX_BYTES
from resourcesync.errors import PatchError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
HANDS: list[dict[str, Any]] = [
    {"indent": None, "separators": (",", ":")},
    {"indent": None, "separators": (", ", ": ")},
    {"indent": 2},
    {"indent": 4},
    {"indent": "\t"},
]


def patched(before: bytes, patch: object, limit: int = 1 << 20) -> bytes:
    data = patch if isinstance(patch, bytes) else json.dumps(patch).encode()
    result = io.BytesIO()
    apply(io.BytesIO(before), io.BytesIO(data), result, limit)
    return result.getvalue()


# RFC 6902, appendix A.
@pytest.mark.parametrize(
    ("document", "operations", "expected"),
    [
        ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "q"}], {"foo": "bar", "baz": "q"}),
        ({"foo": [1, 2]}, [{"op": "add", "path": "/foo/1", "value": 9}], {"foo": [1, 9, 2]}),
        ({"baz": 1, "foo": 2}, [{"op": "remove", "path": "/baz"}], {"foo": 2}),
        ({"foo": [1, 2, 3]}, [{"op": "remove", "path": "/foo/1"}], {"foo": [1, 3]}),
        ({"baz": 1}, [{"op": "replace", "path": "/baz", "value": 2}], {"baz": 2}),
        (
            {"foo": {"bar": 1, "w": 2}, "q": {"c": 3}},
            [{"op": "move", "from": "/foo/w", "path": "/q/t"}],
            {"foo": {"bar": 1}, "q": {"c": 3, "t": 2}},
        ),
        (
            {"foo": [1, 2, 3, 4]},
            [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
            {"foo": [1, 3, 4, 2]},
        ),
        ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": [1]}], {"foo": ["bar", [1]]}),
        ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
        (
            {"a": [{"b": 1, "c": 2}]},
            [{"op": "test", "path": "/a", "value": [{"c": 2, "b": 1}]}],
            {"a": [{"b": 1, "c": 2}]},
        ),
        ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": [7]}], [7]),
        ({"": 1}, [{"op": "replace", "path": "/", "value": 2}], {"": 2}),
    ],
)
def test_an_operation_does_what_the_standard_says(
    document: Any, operations: Any, expected: Any
) -> None:
    assert apply_operations(document, operations) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/gone"},
        {"op": "remove", "path": ""},
        {"op": "remove", "path": "/text/0"},
        {"op": "move", "from": "/one/a", "path": "/list/0"},
        {"op": "replace", "path": "/gone", "value": 1},
        {"op": "add", "path": "/list/3", "value": 1},
        {"op": "add", "path": "/list/01", "value": 1},
        {"op": "add", "path": "/list/-1", "value": 1},
        {"op": "add", "path": "/text/0", "value": 1},
        {"op": "add", "path": "no-slash", "value": 1},
        {"op": "add", "path": "/list"},
        {"op": "copy", "path": "/list"},
        {"op": "move", "from": "/list", "path": "/list/0"},
        {"op": "test", "path": "/one", "value": True},
        {"op": "test", "path": "/list", "value": [1]},
        {"op": "test", "path": "/text", "value": "x"},
        {"op": "test", "path": "", "value": {"list": [1, 2], "text": "y", "one": 2}},
        {"op": "explode", "path": "/one"},
        {"op": ["add"], "path": "/one", "value": 1},
        {"path": "/one", "value": 1},
        "add",
        7,
    ],
)
def test_an_operation_that_does_not_fit_is_refused_by_its_number(operation: object) -> None:
    document = {"list": [1, 2], "text": "y", "one": 1}
    with pytest.raises(PatchError, match="operation 2"):
        apply_operations(document, [{"op": "test", "path": "/one", "value": 1}, operation])


@given(before=JSON, after=JSON, hand=st.sampled_from(HANDS), end=st.sampled_from(["", "\n"]))
def test_the_result_is_written_in_the_hand_of_the_version_before(
    before: Any, after: Any, hand: dict[str, Any], end: str
) -> None:
    frame = {"kept": ["é", {"x": 1}], "changed": before}
    wanted = {"kept": ["é", {"x": 1}], "changed": after}

    def written(value: object) -> bytes:
        return (json.dumps(value, ensure_ascii=False, **hand) + end).encode("utf-8", "replace")

    patch = [{"op": "replace", "path": "/changed", "value": after}]
    assert patched(written(frame), json.dumps(patch).encode()) == written(wanted)


def test_escapes_beyond_ascii_are_kept_as_escapes() -> None:
    before = b'{"a": "\\u00e9", "b": 1}'
    after = patched(before, [{"op": "replace", "path": "/b", "value": "ü"}])
    assert after == b'{"a": "\\u00e9", "b": "\\u00fc"}'


@pytest.mark.parametrize(
    "before",
    [
        b'{"a" : 1}',
        b'{"a": 1.50}',
        b'{"a": 1, "a": 2}',
        b'{"a": NaN}',
        b'\xef\xbb\xbf{"a": 1}',
        b'{"a": 1',
        b"\xff",
        b"[" * 100_000 + b"]" * 100_000,
    ],
)
def test_what_cannot_be_written_again_byte_for_byte_is_not_patched(before: bytes) -> None:
    with pytest.raises(PatchError):
        patched(before, [{"op": "test", "path": "", "value": 1}])


@pytest.mark.parametrize("patch", [b"{}", b"7", b"", b"[", b'["', b"[NaN]"])
def test_a_patch_that_is_none_is_refused(patch: bytes) -> None:
    with pytest.raises(PatchError):
        patched(b'{"a":1}', patch)


def test_copies_of_copies_end_at_a_budget() -> None:
    doubling = [{"op": "copy", "from": "", "path": f"/{n}"} for n in range(64)]
    with pytest.raises(PatchError, match="copies or moves too much"):
        patched(b'{"a":[1,2,3]}', doubling)


def test_many_insertions_into_a_long_list_end_at_a_budget() -> None:
    before = b"[" + b",".join([b"1"] * 1_000_000) + b"]"
    many = [{"op": "add", "path": "/0", "value": 1}] * 2_000
    with pytest.raises(PatchError, match="copies or moves too much"):
        patched(before, many)


def test_more_operations_than_allowed_are_refused() -> None:
    with pytest.raises(PatchError, match="10,000"):
        apply_operations({}, [{"op": "test", "path": "", "value": {}}] * 10_001)


def test_a_result_over_the_limit_is_not_written() -> None:
    result = io.BytesIO()
    patch = io.BytesIO(b'[{"op":"add","path":"/a","value":"xxxxxxxxxx"}]')
    with pytest.raises(PatchError, match="longer than listed"):
        apply(io.BytesIO(b"{}"), patch, result, 10)
    assert result.getvalue() == b""


def test_a_version_before_over_the_bound_is_not_read_into_memory() -> None:
    before = b'{"a":"' + b"x" * MAX_BYTES + b'"}'
    with pytest.raises(PatchError, match="more than"):
        patched(before, [{"op": "remove", "path": "/a"}])


POINTERS = st.sampled_from(["", "/", "/a", "/a/0", "/a/-", "/a/1", "/b", "/b/c", "/~0", "x"])
ANY_OPERATION = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "?"])},
    optional={"path": POINTERS | JSON, "from": POINTERS | JSON, "value": JSON},
)


@given(operations=st.lists(ANY_OPERATION | JSON, max_size=5) | JSON)
def test_whatever_is_asked_a_patch_is_done_or_refused(operations: Any) -> None:
    before = b'{"a":[1,2],"b":{"c":null},"":"x"}'
    with suppress(PatchError):
        json.loads(patched(before, json.dumps(operations).encode()))


@given(before=st.binary(max_size=40), patch=st.binary(max_size=40))
def test_bytes_of_any_kind_are_refused_or_taken(before: bytes, patch: bytes) -> None:
    with suppress(PatchError):
        patched(before, patch)
