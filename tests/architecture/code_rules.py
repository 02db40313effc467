"""The house rules that no linter knows, each of one file: sizes, names, docstrings, predicates."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final

from tests.support.source_files import ROOT, SOURCES, python_files

MAX_LINES: Final = 400
MAX_FUNCTION_LINES = 40
PACKAGE: Final = ("src",)
EVERYWHERE: Final = ("src", "annexes", "tests", "docs", "benchmarks", "campaigns", "fuzz")

_ANNEX: Final = re.compile(r"^annexes/\w+/")
_NAMELESS: Final = {
    *("base", "common", "helper", "helpers", "manager", "managers", "misc", "util", "utils")
}
_LAYOUT: Final = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_QUESTIONS: Final = re.compile(
    r"(What|How|Where|Which|Whether|Who|Whom|Whose|Why|When|If|It|That|One)\b"
)
_PREDICATE: Final = re.compile(r"_{0,2}(is|has|can|may|should|needs)_")
_WRITES: Final = {
    *("write", "put", "append", "add", "insert", "delete", "remove", "commit", "unlink")
}
_WAITS: Final = {"time.sleep", "sleep", "threading.Timer", "Timer"}
_QUOTED: Final = {"_id", "_index", "_shards", "_source", "_proxy"}
"""Strings of other systems: fields of Elasticsearch, and the end of ``http_proxy``."""
_NOT_OURS: Final = """
anew aside bring brought doubt doubted doubts heed heeding heeds held kept regretted said seldom
settle settled settles tell telling tells told took whereabouts
"""
PRIVATE_WORDS: Final = frozenset(_NOT_OURS.split())
"""Words that no other program of this field uses as names; CONTRIBUTING.md has the better ones."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class CodeFile:
    """A Python file, parsed once and walked once."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.tree = ast.parse(text)
        self.nodes = _nodes(self.tree)

    @property
    def folder(self) -> str:
        """The folder of the project, or of an annex, that it is in, such as ``src``."""
        return _ANNEX.sub("", self.name).partition("/")[0]

    @property
    def module(self) -> str:
        """The name that a module of the package or an annex is imported by."""
        dotted = (
            _ANNEX.sub("", self.name).removeprefix("src/").removesuffix(".py").replace("/", ".")
        )
        return dotted.removesuffix(".__init__")

    @cached_property
    def code(self) -> set[int]:
        """The lines that hold code: no blank lines, no comments."""
        lines: set[int] = set()
        for token in self.tokens():
            if token.type not in _LAYOUT:
                lines.update(range(token.start[0], token.end[0] + 1))
        return lines

    def tokens(self) -> Iterator[tokenize.TokenInfo]:
        """Read its tokens, comments too."""
        return tokenize.generate_tokens(io.StringIO(self.text).readline)

    def size(self) -> int:
        """Count its lines of code: documentation and imports are free."""
        code = set(self.code)
        for node in self.nodes:
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if isinstance(node, ast.stmt) and (
                is_text or isinstance(node, (ast.Import, ast.ImportFrom))
            ):
                code -= _lines(node)
        return len(code)


def files(*folders: str) -> Iterator[CodeFile]:
    """Read the Python files of folders; nothing is kept of one when the next is read."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if ".venv" not in path.parts:
                yield CodeFile(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))


def _nodes(tree: ast.Module) -> list[ast.AST]:
    found: list[ast.AST] = [tree]
    for node in found:
        for value in node.__dict__.values():
            if type(value) is list:
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


def _lines(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def long_module(file: CodeFile) -> Iterator[str]:
    """A module can be read at one sitting."""
    if file.text.count("\n") > MAX_LINES and (size := file.size()) > MAX_LINES:
        yield f"has {size} lines of code"


def long_functions(file: CodeFile) -> Iterator[str]:
    """A function fits on one screen, its docstring left out."""
    for node in file.nodes:
        if isinstance(node, Function) and len(_lines(node)) > MAX_FUNCTION_LINES:
            told = _lines(node.body[0]) if ast.get_docstring(node) is not None else set()
            if (size := len(file.code & _lines(node) - told)) > MAX_FUNCTION_LINES:
                yield f"{node.name} has {size} lines of code"


def nameless(file: CodeFile) -> Iterator[str]:
    """A module has a name of its own."""
    if _NAMELESS.intersection(re.split(r"[/_.]", file.name)):
        yield "has a name that says nothing"


def asking(file: CodeFile) -> Iterator[str]:
    """The docstring of a module begins with the thing itself."""
    if _QUESTIONS.match(ast.get_docstring(file.tree) or ""):
        yield "has a docstring that begins with a question"


def compiled_classes(file: CodeFile) -> Iterator[str]:
    """No class is compiled at import: a dataclass takes a millisecond of each start."""
    if "dataclass" in file.text:
        yield "makes a dataclass"


def private_words(file: CodeFile) -> Iterator[str]:
    """No public definition is named in words that are only ours."""
    for name in _public_names(file.tree):
        if PRIVATE_WORDS & {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)}:
            yield f"names {name} in private words"


def _public_names(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, Function)) and not node.name.startswith("_"):
            yield node.name
            if isinstance(node, ast.ClassDef):
                yield from _public_names(node)


def writing_predicates(file: CodeFile) -> Iterator[str]:
    """A predicate never writes: no attribute, no entry, and nothing that is not its own."""
    for function in file.nodes:
        if isinstance(function, Function) and _PREDICATE.match(function.name):
            yield from (f"{function.name} {written}" for written in _writes(function))


def _writes(function: ast.AST) -> Iterator[str]:
    nodes = list(ast.walk(function))
    names = (node for node in nodes if isinstance(node, ast.Name))
    local = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    for node in nodes:
        match node:
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                yield f"assigns in line {node.lineno}"
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner))) if owner in local:
                pass
            case ast.Call(func=ast.Attribute(attr=name)) if name in _WRITES:
                yield f"calls {name} in line {node.lineno}"


def fixed_waits(file: CodeFile) -> Iterator[str]:
    """Tests wait for events: a fixed time is too long on a fast machine, too short on a slow."""
    is_likely = "sleep(" in file.text or "Timer(" in file.text
    if is_likely and (count := len(list(_waits(file.tree)))):
        yield f"waits {count} times for a fixed time"


def _waits(node: ast.AST) -> Iterator[int]:
    if isinstance(node, ast.While | ast.For):
        return  # a loop looks for an event
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _WAITS:
        yield node.lineno
    for child in ast.iter_child_nodes(node):
        yield from _waits(child)


def private_names(package: set[str]) -> Callable[[CodeFile], Iterator[str]]:
    """Return the rule that tests import nothing private, nor name it in a string to change it."""

    def private(file: CodeFile) -> Iterator[str]:
        found: set[str] = set()
        for node in file.nodes:
            match node:
                case ast.ImportFrom(module=str(module), names=names):
                    found |= {part for part in module.split(".") if part in package}
                    found |= {alias.name for alias in names if alias.name in package}
                case ast.Constant(value=str(text)) if re.fullmatch(r"[\w.]*", text):
                    found |= {text.rpartition(".")[2]} & package
        yield from (f"knows {name}" for name in sorted(found))

    return private


def package_names() -> set[str]:
    """Return every private function, class, module, constant and attribute of the package."""
    found = set()
    for path in python_files(SOURCES):
        found |= {path.stem, *re.findall(r"\b_\w+", path.read_text("utf-8"))}
    return {name for name in found if re.match("_[^_]", name)} - _QUOTED


Rule = Callable[[CodeFile], Iterator[str]]
RULES: Final[tuple[tuple[Rule, tuple[str, ...]], ...]] = (
    (long_module, EVERYWHERE),
    (long_functions, ("src", "annexes", "tests", "docs", "campaigns")),
    (nameless, EVERYWHERE),
    (asking, PACKAGE),
    (compiled_classes, PACKAGE),
    (private_words, PACKAGE),
    (writing_predicates, PACKAGE),
    (fixed_waits, ("tests",)),
    (private_names(package_names()), ("tests",)),
)
"""Each rule with the folders that it is for."""
