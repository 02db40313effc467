"""JSON Patch (RFC 6902) with the bytes that the Source would have written.

A JSON value can be written in many ways, and a digest fits only one. So the version before is
written again first: only if that gives its very bytes is the Source's style known, and the result
is written in it.
"""

import json
import re
from itertools import product
from typing import Any, BinaryIO, Final, NamedTuple

from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointer, JsonPointerException

from resourcesync.documents.patches.limits import MAX_BYTES, MAX_OPERATIONS, read_all
from resourcesync.errors import PatchError

_MAX_VALUES: Final = 1 << 20
"""Values that the operations of one patch may copy in all, those that they bring too."""
_MAX_REASON: Final = 200
"""Characters of a reason: that of a test repeats both values."""
_INDENT: Final = re.compile(r"\n([ \t]{1,16})\S")

Json = Any


def apply(previous: BinaryIO, patch: BinaryIO, result: BinaryIO, limit: int) -> None:
    """Write the version that a patch leads to."""
    before = read_all(previous, MAX_BYTES, "the version before")
    wanted = read_all(patch, MAX_BYTES, "the patch")
    try:
        document, operations = _loads(before), _loads(wanted)
        written = _style_of(before, document, wanted).write(apply_operations(document, operations))
    except (ValueError, RecursionError) as error:
        raise PatchError(f"the version before or the patch is not usable JSON: {error}") from (
            error
        )
    if len(written) > limit:
        raise PatchError("the patched version is longer than listed")
    result.write(written)


class _JsonStyle(NamedTuple):
    indent: str | None
    separators: tuple[str, str]
    ascii_only: bool
    end: str

    def write(self, value: Json) -> bytes:
        text = json.dumps(
            value,
            indent=self.indent,
            separators=self.separators,
            ensure_ascii=self.ascii_only,
            allow_nan=False,
        )
        return (text + self.end).encode()


def _loads(data: bytes) -> Json:
    return json.loads(data.decode(), parse_constant=_no_constant)


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _style_of(before: bytes, document: Json, patch: bytes) -> _JsonStyle:
    """Return how the version before is written, proven by writing it again."""
    text = before.decode()
    body = text.rstrip("\r\n")
    indented = _INDENT.search(body)
    escapes = body.isascii() and ("\\u" in body or b"\\u" in patch)
    seconds = (": ", ":") if indented or '": ' in body else (":", ": ")
    firsts = (",",) if indented else (", ", ",")
    indent, end = indented[1] if indented else None, text[len(body) :]
    for separators in product(firsts, seconds):
        for ascii_only in (True, False) if escapes else (False,):
            hand = _JsonStyle(indent, separators, ascii_only, end)
            if hand.write(document) == before:
                return hand
    raise PatchError("the version before is formatted in an unsupported way")


def apply_operations(document: Json, operations: Json) -> Json:
    """Return the document after all operations; the document itself may be changed."""
    if not isinstance(operations, list) or len(operations) > MAX_OPERATIONS:
        raise PatchError(f"a JSON Patch is a list of at most {MAX_OPERATIONS:,} operations")
    budget = _MAX_VALUES
    for number, operation in enumerate(operations, 1):
        try:
            step = JsonPatch([operation])
            budget -= _cost(document, operation)
            if budget < 0:
                raise PatchError("the patch copies or moves too much")
            document = step.apply(document, in_place=True)
        except (JsonPatchException, JsonPointerException, TypeError) as error:
            reason = str(error)[:_MAX_REASON]
            raise PatchError(f"operation {number} of the JSON Patch: {reason}") from error
    return document


def _cost(document: Json, operation: dict[str, Json]) -> int:
    name = operation["op"]
    if name == "test":
        return 0
    cost = _size(operation["value"]) if name in ("add", "replace") and "value" in operation else 0
    if name == "replace":
        return cost
    for pointer in (operation["path"], operation.get("from", "")):
        holder, _ = JsonPointer(pointer).to_last(document)
        cost += len(holder) >> 10 if isinstance(holder, list) else 0
    if name == "copy" and "from" in operation:
        cost += _size(JsonPointer(operation["from"]).resolve(document))
    return cost


def _size(value: Json) -> int:
    if isinstance(value, str):
        return 1 + (len(value) >> 6)
    items = value.values() if isinstance(value, dict) else value
    return 1 + sum(map(_size, items)) if isinstance(value, (dict, list)) else 1
