"""JSON Patch: the operations of RFC 6902, in the hand in which the version before is written."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.documents.patches.json_patch import apply
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


@pytest.mark.parametrize("patch", [b"{}", b"7", b"", b"[", b'["', b"[NaN]"])
def test_a_patch_that_is_none_is_refused(patch: bytes) -> None:
    with pytest.raises(PatchError):
        patched(b'{"a":1}', patch)


def test_copies_of_copies_end_at_a_budget() -> None:
    doubling = [{"op": "copy", "from": "", "path": f"/{n}"} for n in range(64)]
    with pytest.raises(PatchError, match="copies or moves too much"):
        patched(b'{"a":[1,2,3]}', doubling)


def test_a_version_before_over_the_bound_is_not_read_into_memory() -> None:
    before = b'{"a":"' + b"x" * MAX_BYTES + b'"}'
    with pytest.raises(PatchError, match="more than"):
        patched(before, [{"op": "remove", "path": "/a"}])
