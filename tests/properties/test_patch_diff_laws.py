"""A patch that we compute leads to the very bytes that it was computed for (§14.4)."""

import io
import json
import random
from collections.abc import Callable
from typing import Any, BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.documents.patches import json_diff, json_patch, xml_diff, xml_patch
from resourcesync.documents.patches.limits import MAX_BYTES
from resourcesync.errors import PatchError

LARGE = 1 << 30
Computer = Callable[[BinaryIO, BinaryIO, BinaryIO, int], None]

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


def computed(compute: Computer, before: bytes, after: bytes, limit: int = LARGE) -> bytes:
    patch = io.BytesIO()
    compute(io.BytesIO(before), io.BytesIO(after), patch, limit)
    return patch.getvalue()


def text_of(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


# --- JSON ----------------------------------------------------------------------------------------


@settings(max_examples=75)
@given(values, values)
def test_a_json_patch_makes_one_value_of_any_other_down_to_the_order_of_members(
    before: Any, after: Any
) -> None:
    patch = computed(json_diff.compute, text_of(before).encode(), text_of(after).encode())

    patched = json_patch.apply_operations(json.loads(text_of(before)), json.loads(patch))

    assert text_of(patched) == text_of(after)


def edited(value: Any, chance: random.Random) -> Any:
    """The same value with one thing changed somewhere."""
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

    patch = computed(json_diff.compute, before, after)
    result = io.BytesIO()
    json_patch.apply(io.BytesIO(before), io.BytesIO(patch), result, len(after))

    assert result.getvalue() == after
    assert len(patch) < len(after) / 4


def test_a_member_that_comes_between_others_is_followed_by_those_after_it() -> None:
    before = {name: [name * 90] for name in "abcd"}
    after = {**{name: before[name] for name in "ab"}, "bb": 1, **{n: before[n] for n in "cd"}}

    patch = computed(json_diff.compute, text_of(before).encode(), text_of(after).encode())

    assert text_of(json_patch.apply_operations(before, json.loads(patch))) == text_of(after)
    assert len(patch) < 300


# --- XML -----------------------------------------------------------------------------------------

SPACES = ' xmlns:x="http://x.example/" xmlns="http://d.example/"'
Node = Any


def node(chance: random.Random, depth: int = 0) -> Node:
    name = chance.choice(["a", "b", "x:c", "d"])
    marks = chance.sample(["k", "l", "x:m"], chance.randrange(3))
    attributes = "".join(f' {mark}="{chance.choice(["1", "2", "é", "&amp;"])}"' for mark in marks)
    if depth > 3 or chance.random() < 0.2:
        return [name, attributes, []]
    inner: list[Node] = []
    is_pretty = chance.random() < 0.6
    for _ in range(chance.randrange(5)):
        inner += ["\n" + " " * depth] * is_pretty + [node(chance, depth + 1)]
        if not is_pretty and chance.random() < 0.3:
            inner.append(
                chance.choice(["text", "<!-- c -->", " ", "&lt;", "<![CDATA[<]]>", "<?p?>"])
            )
    inner += ["\n"] * is_pretty
    return [name, attributes, inner or [chance.choice(["v1", "v2", "long text " * 9])]]


def written(item: Node) -> str:
    if isinstance(item, str):
        return item
    name, attributes, inner = item
    if not inner:
        return f"<{name}{attributes}/>"
    return f"<{name}{attributes}>{''.join(map(written, inner))}</{name}>"


def altered(item: Node, chance: random.Random) -> Node:
    if isinstance(item, str):
        return chance.choice(["v9", "n n", item])
    name, attributes, inner = item
    inner, kind = list(inner), chance.random()
    at = chance.randrange(len(inner) + 1)
    if at < len(inner) and kind < 0.6:
        inner[at] = altered(inner[at], chance)
    elif kind < 0.75:
        del inner[at : at + chance.choice([1, 2])]
    elif kind < 0.92:
        inner[at:at] = chance.choice([[node(chance, 3)], ["\n ", node(chance, 3)]])
    else:
        attributes = attributes.replace('"1"', '"77"')
    return [name, attributes, inner]


@settings(max_examples=75)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_an_xml_patch_leads_to_the_very_bytes(seed: int, times: int) -> None:
    chance = random.Random(seed)
    old = ["root", SPACES, [node(chance) for _ in range(chance.randrange(1, 4))]]
    new: Node = old
    for _ in range(times):
        new = altered(new, chance)
    before, after = (f"<?xml version='1.0'?>\n{written(item)}\n".encode() for item in (old, new))

    patch = computed(xml_diff.compute, before, after)
    result = io.BytesIO()
    xml_patch.apply(io.BytesIO(before), io.BytesIO(patch), result, LARGE)

    assert result.getvalue() == after


RECORDS = [f'<record id="{n}"><title>Title {n}</title></record>' for n in range(200)]


@pytest.mark.parametrize(
    ("changed", "most"),
    [
        ([*RECORDS[:7], RECORDS[7].replace("Title", "Name"), *RECORDS[8:]], 120),
        ([*RECORDS[:7], *RECORDS[8:]], 100),
        ([*RECORDS[:7], "<record/>", *RECORDS[7:]], 120),
        ([RECORDS[0].replace('"0"', '"one &quot; two"'), *RECORDS[1:]], 120),
        ([*RECORDS, "<record/>"], 120),
        (["<record/>", *RECORDS], 120),
    ],
)
def test_a_small_change_of_many_records_is_a_small_patch(changed: list[str], most: int) -> None:
    before, after = ("<r>\n" + "\n".join(item) + "\n</r>" for item in (RECORDS, changed))

    patch = computed(xml_diff.compute, before.encode(), after.encode())
    result = io.BytesIO()
    xml_patch.apply(io.BytesIO(before.encode()), io.BytesIO(patch), result, LARGE)

    assert result.getvalue() == after.encode()
    assert len(patch) < most


def test_a_patch_binds_the_prefixes_of_what_it_brings() -> None:
    before, after = (
        f"<p:r{SPACES} xmlns:p='http://p.example/'>{name}</p:r>" for name in ("", "<x:a/>")
    )

    patch = computed(xml_diff.compute, before.encode(), after.encode())

    assert b'xmlns:x="http://x.example/"' in patch
    assert patch.startswith(b'<pp:patch xmlns:pp="urn:ietf:rfc:7351">')


# --- what cannot be compared ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compute", "before", "after"),
    [
        (json_diff.compute, b"{", b"{}"),
        (json_diff.compute, b"\xff", b"{}"),
        (json_diff.compute, b"[" * 100_000, b"{}"),
        (json_diff.compute, b"[]", b"[NaN]"),
        (json_diff.compute, b"0" * (MAX_BYTES + 1), b"{}"),
        (xml_diff.compute, b"<a>", b"<a/>"),
        (xml_diff.compute, b"<!DOCTYPE a><a/>", b"<a/>"),
        (xml_diff.compute, b"<a/>", b"<!-- new --><a/>"),
        (xml_diff.compute, b"<a>" * 300 + b"</a>" * 300, b"<a/>"),
        (xml_diff.compute, b"<a/>" + b" " * MAX_BYTES, b"<a/>"),
    ],
)
def test_versions_that_cannot_be_compared_have_no_patch(
    compute: Computer, before: bytes, after: bytes
) -> None:
    with pytest.raises(PatchError):
        computed(compute, before, after)


@pytest.mark.parametrize(
    ("compute", "before", "after"),
    [(json_diff.compute, b"[1]", b'["other"]'), (xml_diff.compute, b"<a>1</a>", b"<a>other</a>")],
)
def test_a_patch_is_never_larger_than_asked_for(
    compute: Computer, before: bytes, after: bytes
) -> None:
    size = len(computed(compute, before, after))

    assert len(computed(compute, before, after, size)) == size
    with pytest.raises(PatchError, match="too large"):
        computed(compute, before, after, size - 1)


def test_long_lists_that_differ_in_length_are_written_as_a_whole_rather_than_compared() -> None:
    before, after = list(range(2_000)), list(range(5_000, 8_000))

    patch = computed(json_diff.compute, text_of(before).encode(), text_of(after).encode())

    assert json.loads(patch) == [{"op": "replace", "path": "", "value": after}]
