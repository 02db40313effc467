"""JSON Patch (RFC 6902) with the bytes that the Source would have written.

A JSON value can be written in many ways, and a digest fits only one. So the version before is
written again first: only if that gives its very bytes is the Source's style known, and the result
is written in it.
"""

import json
import re
from collections.abc import Callable
from itertools import product
from typing import Any, BinaryIO, Final, NamedTuple

from resourcesync.documents.patches.limits import MAX_BYTES, MAX_OPERATIONS, read_all
from resourcesync.errors import PatchError

_MAX_VALUES: Final = 1 << 20
"""Values that the operations of one patch may copy in all: copies of copies double."""
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_INDENT: Final = re.compile(r"\n([ \t]{1,16})\S")

Json = Any


def apply(previous: BinaryIO, patch: BinaryIO, result: BinaryIO, limit: int) -> None:
    """Write the version that a patch leads to.

    Args:
        previous: The version before.
        patch: The patch.
        result: Receives the bytes.
        limit: Bytes that the result may have.

    Raises:
        PatchError: The patch is none, does not fit, or the version before is too large or written
            in a way that we do not know how to go on with.
    """
    before = read_all(previous, MAX_BYTES, "the version before")
    wanted = read_all(patch, MAX_BYTES, "the patch")
    try:
        document, operations = _loads(before), _loads(wanted)
        hand = _style_of(before, document, wanted)
        patched = apply_operations(document, operations)
        written = hand.write(patched)
    except (ValueError, RecursionError) as error:
        raise PatchError(f"the version before or the patch is not usable JSON: {error}") from (
            error
        )
    if len(written) > limit:
        raise PatchError("the patched version is longer than listed")
    result.write(written)


class _JsonStyle(NamedTuple):
    """The formatting of a JSON text."""

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
    """Return the document after all operations; the document itself may be changed.

    Raises:
        PatchError: They are no operations, too many, copy too much, or one does not fit.
    """
    if not isinstance(operations, list) or len(operations) > MAX_OPERATIONS:
        raise PatchError(f"a JSON Patch is a list of at most {MAX_OPERATIONS:,} operations")
    work = _PatchedDocument(document)
    for number, operation in enumerate(operations, 1):
        try:
            work.apply(operation)
        except (KeyError, TypeError) as error:
            raise PatchError(f"operation {number} of the JSON Patch is malformed") from error
        except PatchError as error:
            raise PatchError(f"operation {number} of the JSON Patch: {error.message}") from error
    return work.document


class _PatchedDocument:
    """A document under operations."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self._budget = _MAX_VALUES
        self._deeds: dict[str, Callable[[dict[str, Json], list[str]], None]] = {
            "add": lambda fields, to: self._add(to, fields["value"]),
            "remove": lambda _, at: self._remove(at),
            "replace": lambda fields, at: self._replace(at, fields["value"]),
            "move": self._move,
            "copy": lambda fields, to: self._add(
                to, self._copied(self._get(_tokens(fields["from"])))
            ),
            "test": self._test,
        }

    def apply(self, operation: dict[str, Json]) -> None:
        deed = self._deeds.get(operation["op"])
        if deed is None:
            raise PatchError("it is unknown")
        deed(operation, _tokens(operation["path"]))

    def _get(self, tokens: list[str]) -> Json:
        value = self.document
        for token in tokens:
            value = value[_key(value, token)]
        return value

    def _add(self, tokens: list[str], value: Json) -> None:
        if not tokens:
            self.document = value
            return
        holder, token = self._get(tokens[:-1]), tokens[-1]
        if isinstance(holder, list):
            self._spend(len(holder) >> 10)
            at = len(holder) if token == "-" else _index(token, len(holder))  # noqa: S105 - RFC 6902's word for the end
            holder.insert(at, value)
        elif isinstance(holder, dict):
            holder[token] = value
        else:
            raise PatchError("nothing can be added there")

    def _remove(self, tokens: list[str]) -> Json:
        if not tokens:
            raise PatchError("the whole document cannot be removed")
        holder, token = self._get(tokens[:-1]), tokens[-1]
        self._spend(len(holder) >> 10 if isinstance(holder, list) else 0)
        key = _key(holder, token)  # what is neither an object nor an array has no pop
        return holder.pop(key)

    def _replace(self, tokens: list[str], value: Json) -> None:
        if not tokens:
            self.document = value
            return
        holder, token = self._get(tokens[:-1]), tokens[-1]
        holder[_key(holder, token)] = value

    def _move(self, operation: dict[str, Json], to: list[str]) -> None:
        start = _tokens(operation["from"])
        if to[: len(start)] == start and to != start:
            raise PatchError("it moves a value into itself")
        if to != start:
            self._add(to, self._remove(start))
        else:
            self._get(start)

    def _test(self, operation: dict[str, Json], at: list[str]) -> None:
        if not _equal(self._get(at), operation["value"]):
            raise PatchError("its test fails")

    def _copied(self, value: Json) -> Json:
        self._spend(1 + (len(value) >> 6 if isinstance(value, str) else 0))
        if isinstance(value, dict):
            return {name: self._copied(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._copied(item) for item in value]
        return value

    def _spend(self, effort: int) -> None:
        self._budget -= effort
        if self._budget < 0:
            raise PatchError("the patch copies or moves too much")


def _tokens(pointer: Json) -> list[str]:
    """Return the parts of a JSON Pointer (RFC 6901)."""
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchError("a JSON Pointer begins with a slash")
    return [name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]]


def _key(holder: Json, token: str) -> Any:
    """Return what a token means in a value; it must be there."""
    if isinstance(holder, list):
        return _index(token, len(holder) - 1)
    if not isinstance(holder, dict) or token not in holder:
        raise PatchError("there is nothing at its place")
    return token


def _index(token: str, last: int) -> int:
    if _INDEX.fullmatch(token) is None or int(token) > last:
        raise PatchError("there is nothing at its place")
    return int(token)


def _equal(item: Json, other: Json) -> bool:
    """True if two values are equal as in RFC 6902 §4.6: true is not 1."""
    if isinstance(item, bool) or isinstance(other, bool):
        return item is other
    if isinstance(item, dict) and isinstance(other, dict):
        return item.keys() == other.keys() and all(_equal(item[name], other[name]) for name in item)
    if isinstance(item, list) and isinstance(other, list):
        return len(item) == len(other) and all(map(_equal, item, other))
    return bool(item == other)
