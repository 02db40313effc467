"""The tree of errors: drawn as it is, told apart by code, each with an exit code."""

import inspect
import re

from resourcesync import errors
from resourcesync.errors import ResourceSyncError

CLASSES = [
    it
    for _, it in inspect.getmembers(errors, inspect.isclass)
    if issubclass(it, ResourceSyncError) and it.__module__ == errors.__name__
]


def drawn_tree() -> dict[str, str]:
    """Each error of the drawing and its parent there."""
    parents: dict[str, str] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"    ([│├└─ ]*)(\w+Error)\b", line):
            depth = len(found[1]) // 4
            del above[depth:]
            parents[found[2]] = above[-1] if above else ""
            above.append(found[2])
    return parents


def test_the_drawing_is_the_tree() -> None:
    real = {it.__name__: it.__mro__[1].__name__ for it in CLASSES}
    real["ResourceSyncError"] = ""

    assert drawn_tree() == real


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [it.__dict__["default_code"] for it in CLASSES]

    assert sorted(codes) == sorted(set(codes))


def test_codes_are_words_for_programs() -> None:
    assert [it for it in CLASSES if not re.fullmatch(r"[a-z]+(-[a-z]+)*", it.default_code)] == []


def test_every_error_says_what_it_means() -> None:
    assert [
        it
        for it in CLASSES
        if not re.match(r"[A-Z0-9].*[^.]\.$", (it.__doc__ or "").split("\n")[0])
    ] == []
