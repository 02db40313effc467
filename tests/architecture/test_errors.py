"""The tree of errors: drawn as it is, told apart by code, each with an exit code."""

import inspect
import re

from resourcesync import errors
from resourcesync.errors import ResourceSyncError

CLASSES = [
    item
    for _, item in inspect.getmembers(errors, inspect.isclass)
    if issubclass(item, ResourceSyncError) and item.__module__ == errors.__name__
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
    real = {class_.__name__: class_.__mro__[1].__name__ for class_ in CLASSES}
    real["ResourceSyncError"] = ""

    assert drawn_tree() == real


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [class_.__dict__["default_code"] for class_ in CLASSES]

    assert sorted(codes) == sorted(set(codes))


def test_every_error_says_what_it_means() -> None:
    assert [
        class_
        for class_ in CLASSES
        if not re.match(r"[A-Z0-9].*[^.]\.$", (class_.__doc__ or "").split("\n")[0])
    ] == []
