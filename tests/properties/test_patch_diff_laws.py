"""A patch that we compute leads to the very bytes that it was computed for (§14.4)."""

import io
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.documents.patches import json_diff, json_patch
from resourcesync.documents.patches.limits import MAX_BYTES
from resourcesync.errors import PatchError

LARGE = 1 << 30

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 1.0, -0.0, 1e300, 10**30]),
    st.sampled_from(["", "x", "é", "~1/~", "a long text " * 9]),
)
names = st.sampled_from(["a", "b", "c", "a-", "/", "~", "", "é"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(names, inner, max_size=5),
    max_leaves=14,
)


def computed(before: bytes, after: bytes, limit: int = LARGE) -> bytes:
    patch = io.BytesIO()
    json_diff.compute(io.BytesIO(before), io.BytesIO(after), patch, limit)
    return patch.getvalue()


def text_of(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


@settings(max_examples=75)
@given(values, values)
def test_a_json_patch_makes_one_value_of_any_other_down_to_the_order_of_members(
    before: Any, after: Any
) -> None:
    patch = computed(text_of(before).encode(), text_of(after).encode())

    patched = json_patch.apply_operations(json.loads(text_of(before)), json.loads(patch))

    assert text_of(patched) == text_of(after)


def edited(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict) and value:
        name = chance.choice(list(value))
        return {**value, name: edited(value[name], chance)}
    if isinstance(value, list) and value:
        at = chance.randrange(len(value))
        kind = chance.random()
        if kind < 0.3:
            return value[:at] + value[at + 1 :]
        if kind < 0.6:
            return [*value[:at], "new", *value[at:]]
        return [*value[:at], edited(value[at], chance), *value[at + 1 :]]
    return "changed"


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([None, 2]), st.booleans())
def test_a_small_change_of_a_large_json_text_is_a_small_patch_with_its_very_bytes(
    seed: int, indent: int | None, ascii_only: bool
) -> None:
    chance = random.Random(seed)
    value = {f"k{n}": [{"id": i, "text": "Ärger " * 5} for i in range(9)] for n in range(9)}
    before, after = (
        json.dumps(fields, indent=indent, ensure_ascii=ascii_only).encode()
        for fields in (value, edited(value, chance))
    )

    patch = computed(before, after)
    result = io.BytesIO()
    json_patch.apply(io.BytesIO(before), io.BytesIO(patch), result, len(after))

    assert result.getvalue() == after
    assert len(patch) < len(after) / 4


def test_a_member_that_comes_between_others_is_followed_by_those_after_it() -> None:
    before = {name: [name * 90] for name in "abcd"}
    after = {**{name: before[name] for name in "ab"}, "bb": 1, **{n: before[n] for n in "cd"}}

    patch = computed(text_of(before).encode(), text_of(after).encode())

    assert text_of(json_patch.apply_operations(before, json.loads(patch))) == text_of(after)
    assert len(patch) < 300


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"{", b"{}"),
        (b"\xff", b"{}"),
        (b"[" * 100_000, b"{}"),
        (b"[]", b"[NaN]"),
        (b"0" * (MAX_BYTES + 1), b"{}"),
    ],
)
def test_versions_that_cannot_be_compared_have_no_patch(before: bytes, after: bytes) -> None:
    with pytest.raises(PatchError):
        computed(before, after)


def test_a_patch_is_never_larger_than_asked_for() -> None:
    before, after = b"[1]", b'["other"]'
    size = len(computed(before, after))

    assert len(computed(before, after, size)) == size
    with pytest.raises(PatchError, match="too large"):
        computed(before, after, size - 1)


def test_long_lists_that_differ_in_length_are_written_as_a_whole_rather_than_compared() -> None:
    before, after = list(range(2_000)), list(range(5_000, 8_000))

    patch = computed(text_of(before).encode(), text_of(after).encode())

    assert json.loads(patch) == [{"op": "replace", "path": "", "value": after}]
