"""A JSON Patch (RFC 6902) that leads from one version to the next.

The patch is small, not the smallest there is. Members keep the order that the next version has
them in, since its bytes depend on that: a member that came between others is followed by those
after it.
"""

import json
from difflib import SequenceMatcher
from typing import Any, BinaryIO, Final

from resourcesync.documents.patches.limits import MAX_BYTES, MAX_OPERATIONS, read_all
from resourcesync.errors import PatchError

_MOST_PAIRS: Final = 250_000
"""Pairs of items of two lists that are compared; beyond that the list is written as a whole."""
_MAX_DEPTH: Final = 64
"""Below that, values are written as a whole."""
_SMALL: Final = 80
"""Characters of a value that is rather written again than moved twice."""

Json = Any


def compute(previous: BinaryIO, current: BinaryIO, patch: BinaryIO, limit: int) -> None:
    """Write a patch that leads from one version to another."""
    before = read_all(previous, MAX_BYTES, "the version before")
    after = read_all(current, MAX_BYTES, "the new version")
    try:
        values = json.loads(before.decode()), json.loads(after.decode())
        # Escapes in the patch show the style of the Source; see ``json_patch``.
        differ = _JsonDiffer(ascii_only=after.isascii())
        differ.compare(*values, "", 0)
    except (ValueError, RecursionError) as error:
        raise PatchError(f"one of the versions is not usable JSON: {error}") from error
    text = f"[{','.join(differ.operations)}]".encode()
    if len(text) > limit or len(differ.operations) > MAX_OPERATIONS:
        raise PatchError("the patch would be too large")
    patch.write(text)


class _JsonDiffer:
    def __init__(self, *, ascii_only: bool) -> None:
        self.operations: list[str] = []
        self._ascii_only = ascii_only

    def compare(self, before: Json, after: Json, path: str, depth: int) -> None:
        start = len(self.operations)
        if depth < _MAX_DEPTH and isinstance(before, dict) and isinstance(after, dict):
            self._compare_objects(before, after, path, depth)
        elif depth < _MAX_DEPTH and isinstance(before, list) and isinstance(after, list):
            self._compare_lists(before, after, path, depth)
        elif self._text(before) != self._text(after):
            self._add("replace", path, after)
            return
        cost = sum(map(len, self.operations[start:]))
        if cost > len(path) and cost > len(self._text(after)) + len(path):
            del self.operations[start:]
            self._add("replace", path, after)

    def _compare_objects(
        self, before: dict[str, Json], after: dict[str, Json], path: str, depth: int
    ) -> None:
        for name in before:
            if name not in after:
                self._do("remove", _below(path, name))
        kept, wanted = [name for name in before if name in after], list(after)
        in_place = 0
        while in_place < min(len(kept), len(wanted)) and kept[in_place] == wanted[in_place]:
            in_place += 1
        for name in wanted[:in_place]:
            self.compare(before[name], after[name], _below(path, name), depth + 1)
        for name in wanted[in_place:]:
            self._put_last(before, after, name, path, depth)

    def _put_last(
        self, before: dict[str, Json], after: dict[str, Json], name: str, path: str, depth: int
    ) -> None:
        place = _below(path, name)
        if name in before and len(self._text(before[name])) > _SMALL:
            aside = name + "-"
            while aside in before or aside in after:
                aside += "-"
            self._move(place, _below(path, aside))
            self._move(_below(path, aside), place)
            self.compare(before[name], after[name], place, depth + 1)
            return
        if name in before:
            self._do("remove", place)
        self._add("add", place, after[name])

    def _compare_lists(self, before: list[Json], after: list[Json], path: str, depth: int) -> None:
        olds, news = list(map(self._text, before)), list(map(self._text, after))
        blocks = _blocks(olds, news)
        if blocks is None:
            self._add("replace", path, after)
            return
        # From the end on, so that the rest keeps its positions.
        for i, i_end, j, j_end in reversed(blocks):
            pairs = min(i_end - i, j_end - j)
            for at in reversed(range(i + pairs, i_end)):
                self._do("remove", f"{path}/{at}")
            for at in reversed(range(j + pairs, j_end)):
                self._add("add", f"{path}/{i + pairs}", after[at])
            for step in range(pairs):
                if olds[i + step] != news[j + step]:
                    self.compare(before[i + step], after[j + step], f"{path}/{i + step}", depth + 1)

    def _text(self, value: Json) -> str:
        return json.dumps(
            value, separators=(",", ":"), ensure_ascii=self._ascii_only, allow_nan=False
        )

    def _add(self, name: str, path: str, value: Json) -> None:
        self.operations.append(
            f'{{"op":"{name}","path":{self._text(path)},"value":{self._text(value)}}}'
        )

    def _do(self, name: str, path: str) -> None:
        self.operations.append(f'{{"op":"{name}","path":{self._text(path)}}}')

    def _move(self, start: str, path: str) -> None:
        self.operations.append(
            f'{{"op":"move","from":{self._text(start)},"path":{self._text(path)}}}'
        )


def _below(path: str, name: str) -> str:
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"


def _blocks(olds: list[str], news: list[str]) -> list[tuple[int, int, int, int]] | None:
    if len(olds) == len(news):
        return [(0, len(olds), 0, len(news))]
    start = _common(olds, news)
    end = _common(olds[start:][::-1], news[start:][::-1])
    old, new = olds[start : len(olds) - end], news[start : len(news) - end]
    if len(old) * len(new) > _MOST_PAIRS:
        return None
    found = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [
        (i + start, i_end + start, j + start, j_end + start)
        for tag, i, i_end, j, j_end in found
        if tag != "equal"
    ]


def _common(item: list[str], other: list[str]) -> int:
    count = 0
    for a, b in zip(item, other, strict=False):
        if a != b:
            break
        count += 1
    return count
