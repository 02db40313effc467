"""Fills the generated parts of the pages from the code's own tables; ``--check`` only compares.

A page marks such a part with ``<!-- generated: NAME -->`` and ``<!-- end: NAME -->``.
"""

import argparse
import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from resourcesync import config, errors
from resourcesync.adapters.catalogue import database
from resourcesync.adapters.mirror import state
from resourcesync.cli import main
from resourcesync.cli.exit_codes import ExitCode, exit_code_for

DOCS = Path(__file__).parent
ROOT = DOCS.parent
WIDTH = 88
PART = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def first_line(it: object) -> str:
    """Return the first line of a docstring, for Markdown."""
    return (inspect.getdoc(it) or "").split("\n", 1)[0].replace("``", "`")


# --- conformance -------------------------------------------------------------------------------


def rules() -> list[dict[str, str]]:
    """Return the rules of the standard in the order of the page."""
    text = (DOCS / "reference" / "conformance-rules.toml").read_text("utf-8")
    found: list[dict[str, str]] = tomllib.loads(text)["rule"]
    return found


def marks(node: ast.FunctionDef) -> Iterator[str]:
    """Yield the rules that a test says it proves."""
    for call in node.decorator_list:
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.conformance":
            yield from (str(ast.literal_eval(it)) for it in call.args)


def proofs() -> dict[str, list[str]]:
    """Return for each rule the tests that are marked with it, found without importing them."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                where = f"`{path.relative_to(ROOT / 'tests')}` {sentence(node.name)}"
                for rule in marks(node):
                    found.setdefault(rule, []).append(where)
    return found


def sentence(name: str) -> str:
    """Return the name of a test as the sentence that it is."""
    return name.removeprefix("test_").replace("_", " ")


def conformance() -> str:
    """Return the table of rules and the tests that prove them."""
    tested = proofs()
    listed = rules()
    count = sum(1 for rule in listed if rule["id"] in tested)
    parts = [f"{count} of {len(listed)} rules are proved by a test.\n"]
    for document in dict.fromkeys(rule["document"] for rule in listed):
        rows = [
            (
                rule["id"],
                rule["level"],
                rule["clause"],
                rule["sentence"],
                "<br>".join(tested.get(rule["id"], ["not yet"])),
            )
            for rule in listed
            if rule["document"] == document
        ]
        head = ("Rule", "Level", "Clause", "What it asks", "Tested by")
        parts.append(f"## {document}\n\n{table(head, rows)}")
    return "\n".join(parts)


# --- errors and stores -------------------------------------------------------------------------


def error_codes() -> str:
    """Return the table of errors."""
    classes = [
        it
        for it in vars(errors).values()
        if inspect.isclass(it) and issubclass(it, errors.ResourceSyncError)
    ]
    rows = [
        (
            f"`{it.default_code}`",
            f"`{it.__name__}`",
            first_line(it),
            str(exit_code_for(it.__new__(it)).value),
            "yes" if it.transient else "",
        )
        for it in classes
    ]
    return table(("Code", "Error", "Meaning", "Exit", "Passes by itself"), rows)


def sql(*scripts: str) -> str:
    """Return a schema as a block of code."""
    return "".join(f"```sql\n{inspect.cleandoc(script)}\n```\n" for script in scripts)


def state_schema() -> str:
    """Return the schema of a mirror's memory."""
    return sql(state._SCHEMA)  # noqa: SLF001 - documented for readers of the file, not for code


def catalogue_schema() -> str:
    """Return the schema of a Source's catalogue."""
    return sql(*database._MIGRATIONS)  # noqa: SLF001 - as above


# --- the command line --------------------------------------------------------------------------


def exit_codes() -> str:
    """Return the table of exit codes."""
    rows = [(str(it.value), it.name.lower(), it.meaning) for it in ExitCode]
    return table(("Code", "Name", "Meaning"), rows)


def commands() -> str:
    """Return each command with its help, as the program shows it."""
    group = click.Context(main.cli, info_name="resourcesync", auto_envvar_prefix=config.PREFIX)
    parts = []
    for name in main.cli.list_commands(group):
        command = main.cli.get_command(group, name)
        assert command is not None
        context = click.Context(command, parent=group, info_name=name, terminal_width=WIDTH)
        parts.append(f"## resourcesync {name}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


PARTS: dict[str, Callable[[], str]] = {
    "conformance": conformance,
    "errors": error_codes,
    "commands": commands,
    "exit-codes": exit_codes,
    "state-schema": state_schema,
    "catalogue-schema": catalogue_schema,
}


def filled(text: str) -> str:
    """Return a page with its generated parts as they should be."""
    return PART.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n{found[3]}", text)


def run() -> int:
    """Write the pages, or with ``--check`` name those that are not as they should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    stale = 0
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text("utf-8")
        if (right := filled(text)) == text:
            continue
        stale += 1
        sys.stdout.write(f"{'stale' if check else 'written'}  {page.relative_to(ROOT)}\n")
        if not check:
            page.write_text(right, "utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(run())
