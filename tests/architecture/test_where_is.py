"""Twenty questions of somebody who is new here have answers that exist in the code."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.support.source_files import module_path

QUESTIONS = tomllib.loads(Path(__file__).with_name("where_is.toml").read_text("utf-8"))["question"]
ANSWERS = sorted({answer for question in QUESTIONS for answer in question["answers"]})


def definitions(nodes: list[ast.stmt], owner: str = "") -> Iterator[str]:
    """Yield the names of what is defined, those in a class as ``Class.method``."""
    for node in nodes:
        match node:
            case ast.ClassDef(name=name, body=body):
                yield f"{owner}{name}"
                yield from definitions(body, f"{owner}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield f"{owner}{name}"
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield f"{owner}{name}"
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield f"{owner}{name}"
            case _:
                pass


def test_an_answer_is_a_definition_in_the_code_or_a_file_of_it() -> None:
    for answer in ANSWERS:
        module, name = answer.split(":")
        file = module_path(module)
        if not (file / name).is_file():
            code = file.with_suffix(".py").read_text("utf-8")
            assert name in set(definitions(ast.parse(code).body)), answer
