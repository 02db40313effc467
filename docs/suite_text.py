"""The suites of checks as Markdown: what each asks for, and what it proves."""

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise

from resourcesync import testing

_HOW = {True: "must be given", False: "may be given"}


def suites() -> str:
    """Return a section for each suite."""
    return "\n".join(_section(getattr(testing, name)) for name in testing.__all__)


def _section(suite: type) -> str:
    lines = [f"## {suite.__name__}", "", _text(inspect.getdoc(suite) or ""), ""]
    asked = [*_flags(suite), *_methods(suite)]
    lines += ["| Yours | Meaning |", "| --- | --- |", *asked, ""]
    lines += ["| Check | Promise |", "| --- | --- |", *_checks(suite), ""]
    return "\n".join(lines)


def _flags(suite: type) -> Iterator[str]:
    """Yield the values that a subclass may set: a docstring stands after each."""
    (source,) = ast.parse(inspect.getsource(suite)).body
    assert isinstance(source, ast.ClassDef)
    for node, after in pairwise(source.body):
        if isinstance(node, ast.AnnAssign) and isinstance(after, ast.Expr):
            assert isinstance(node.target, ast.Name)
            assert node.value is not None
            assert isinstance(after.value, ast.Constant)
            value = ast.literal_eval(node.value)
            usual = f"{value:_}" if type(value) is int else f"{value}"
            meaning = inspect.cleandoc(str(after.value.value))
            yield f"| `{node.target.id} = {usual}` | {_text(meaning)} |"


def _methods(suite: type) -> Iterator[str]:
    for name, item in vars(suite).items():
        if inspect.isfunction(item) and not name.startswith(("test_", "_")):
            arguments = ", ".join([*inspect.signature(item).parameters][1:])
            how = _HOW[getattr(item, "__isabstractmethod__", False)]
            meaning = _text((inspect.getdoc(item) or "").split("\n\n", 1)[0])
            yield f"| `{name}({arguments})`, {how} | {meaning} |"


def _checks(suite: type) -> Iterator[str]:
    for name, item in vars(suite).items():
        if name.startswith("test_"):
            said = name.removeprefix("test_").replace("_", " ").replace(" uri", " URI")
            yield f"| {said[0].upper()}{said[1:]} | {_text(inspect.getdoc(item) or '')} |"


def _text(docstring: str) -> str:
    return " ".join(docstring.replace("``", "`").split())
