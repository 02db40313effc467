"""Fills the generated parts of the pages from the code's own tables; ``--check`` only compares.

A page marks such a part with ``<!-- generated: NAME -->`` and ``<!-- end: NAME -->``. A row of a
table that begins with a module and a number has the number of its lines. Pictures are whole files.
"""

import argparse
import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, partial
from pathlib import Path

import click

from resourcesync import errors
from resourcesync.app.configured_mirrors import mirror_keys
from resourcesync.app.configured_sources import source_keys
from resourcesync.cli import main
from resourcesync.cli.exit_codes import ExitCode, exit_code_for
from resourcesync.cli.why_codes import CODES
from resourcesync.model.settings import Section
from resourcesync.settings.environment import PREFIX
from resourcesync.settings.schema import Field
from resourcesync.validator.rule import FAMILIES, RULES, CheckScope, Level, Rule, Severity

DOCS = Path(__file__).parent
ROOT = DOCS.parent
OTHERS = (
    ROOT / "tests" / "founding.md",
    ROOT / "annexes" / "simulator" / "scenarios.md",
    ROOT / "src" / "README.md",
)
"""Pages with generated parts for few readers, outside the site."""
WIDTH = 88
MOST_SHOWN = 300

sys.path.insert(0, str(ROOT))  # the examples of rules are the cases of their tests
from docs import (  # noqa: E402 - as above
    architecture_text,
    concept_drawings,
    founding_text,
    keywords_text,
    manual_text,
    producers_text,
    reading_text,
    report_text,
    scenario_text,
)
from docs.api_text import NAMES, part  # noqa: E402 - as above

from tests.support.rules.cases import CASES  # noqa: E402 - as above
from tests.support.rules.source import EDITS, SOURCE  # noqa: E402 - as above

PART = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("|" + "|".join(line) + "|\n" for line in lines)


def first_line(item: object) -> str:
    """Return the first line of a docstring, for Markdown."""
    return (inspect.getdoc(item) or "").split("\n", 1)[0].replace("``", "`")


# --- conformance -------------------------------------------------------------------------------


def marks(node: ast.FunctionDef) -> Iterator[str]:
    """Yield the rules that a test says it proves."""
    for call in node.decorator_list:
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.conformance":
            yield from (str(ast.literal_eval(arg)) for arg in call.args)


@cache
def proofs() -> dict[str, list[str]]:
    """Return for each rule the files with tests that are marked with it, without importing them."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "mark.conformance" in text else ():
            if isinstance(node, ast.FunctionDef):
                where = f"`{path.relative_to(ROOT / 'tests')}`"
                for rule in marks(node):
                    files = found.setdefault(rule, [])
                    files += [] if where in files else [where]
    return found


CHECKS = {
    CheckScope.DOCUMENT: "",
    CheckScope.TOGETHER: " Checked between documents.",
    CheckScope.DELIVERY: " Checked in answers.",
    CheckScope.PACKAGE: " Checked in packages.",
}


def check_of(rule: Rule) -> str:
    """Return where the validator looks for a rule, or why it looks for part of it or nothing."""
    if rule.checked in CHECKS:
        return CHECKS[rule.checked]
    how = "Checked in part" if rule.checked is CheckScope.PARTLY else "Not checked"
    return f" {how}: {rule.reason}"


def code_link(rule: Rule) -> str:
    """Return a rule's code as a link to its explanation."""
    return f"[{rule.code}](rules/{rule.family}.md#{rule.code.lower()})"


def conformance() -> str:
    """Return for each kind of document how many rules there are, and which."""
    tested = proofs()
    listed = list(RULES.values())
    proved = sum(1 for rule in listed if tests_of(rule, tested))
    checked = sum(1 for rule in listed if rule.checked is not CheckScope.LIVE)
    head = (
        f"The validator looks for {checked} of {len(listed)} rules; each of these has a test with "
        "a case that breaks it and one that keeps it. "
        f"That we keep them ourselves is proved for {proved} by a test.\n"
    )
    rows = []
    for document in dict.fromkeys(rule.document for rule in listed):
        about = [rule for rule in listed if rule.document == document]
        counts = Counter(rule.level for rule in about)
        numbers = (str(counts[level] or "") for level in Level)
        rows.append((document, *numbers, " ".join(map(code_link, about))))
    names = (level.value for level in Level)
    return f"{head}\n{table(('Document', *names, 'Rules'), rows)}"


def tests_of(rule: Rule, tested: Mapping[str, list[str]]) -> list[str]:
    """Return the files of the tests that are marked with a rule, or with all of its letters."""
    return tested.get(rule.id, tested.get(rule.id.rstrip("abc"), []))


def shown(mark: str, tags: Sequence[str]) -> str:
    """Return pieces of a document as lines of a difference, long ones cut."""
    lines = "".join(tags).strip().splitlines()
    cut = [f"{line[:MOST_SHOWN]}..." if len(line) > MOST_SHOWN else line for line in lines]
    return "".join(f"{mark} {line.strip()}\n" for line in cut if line.strip())


def example(rule: Rule) -> str:
    """Return the tags of a document that break a rule, and those that keep it, if it has some."""
    for good, broken in documents(rule):
        old, new = different(good, broken)
        if old or new:
            return f"```diff\n{shown('-', new)}{shown('+', old)}```\n"
    return ""


def documents(rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield documents that keep a rule, each with one that breaks it: the cases of its test."""
    yield from ((case.good, case.broken) for case in CASES if case.rule == rule.id)
    for edit in EDITS:
        if edit.rule == rule.id and edit.old:
            yield SOURCE[edit.uri], edit.applied()[edit.uri]


TAG = re.compile(r"<[^>]*>|[^<]+")


def different(good: str, broken: str) -> tuple[list[str], list[str]]:
    """Return the tags and texts that only one of two documents has."""
    item, other = TAG.findall(good), TAG.findall(broken)
    old, new = [], []
    for tag, from_, to, from_other, to_other in SequenceMatcher(None, item, other).get_opcodes():
        if tag != "equal":
            old += item[from_:to]
            new += other[from_other:to_other]
    return old, new


def clause_of(rule: Rule) -> str:
    """Return a clause of the standard with its sign, or the name of another document."""
    return f"§{rule.clause}" if rule.clause[0].isdigit() else rule.clause


def explained(rule: Rule, tested: Mapping[str, list[str]]) -> str:
    """Return the explanation of one rule."""
    names = set(rule.profiles)
    versions = "" if {"rs-1.1", "rs-1.0"} <= names else f" in {', '.join(sorted(names))}"
    softened = "" if rule.severity is not Severity.WARNING or not rule.softened else ", a warning"
    files = tests_of(rule, tested)
    proof = f" Test: {', '.join(files)}." if files else ""
    return (
        f"## {rule.code}\n\n**{rule.sentence}**\n\n"
        f"{rule.document}, {rule.level}{softened}{versions}, {clause_of(rule)}, {rule.id}."
        f"{check_of(rule)}{proof}\n\n"
        f"*Why.* {rule.why}\n\n*Fix.* {rule.fix}\n\n{example(rule)}"
    ).replace("\n\n\n", "\n\n")


def family(prefix: str) -> str:
    """Return the explanations of one family of codes."""
    tested = proofs()
    rules = sorted(
        (rule for rule in RULES.values() if rule.family == prefix), key=lambda rule: rule.code
    )
    return "\n".join(explained(rule, tested) for rule in rules)


# --- errors ------------------------------------------------------------------------------------


def error_codes() -> str:
    """Return the table of errors."""
    classes = [
        var
        for var in vars(errors).values()
        if inspect.isclass(var) and issubclass(var, errors.ResourceSyncError)
    ]
    return "".join(
        f"- `{class_.default_code}`, `{class_.__name__}`, exit "
        f"{exit_code_for(class_('')).value}: {first_line(class_)}"
        f"{' *Passes by itself.*' if class_.transient else ''}\n"
        for class_ in classes
    )


def codes() -> str:
    """Return the codes that are more specific than those of the classes, by classes."""
    parts = []
    for kind in dict.fromkeys(kind for kind, _ in CODES.values()):
        name = "Warnings" if kind == "warning" else f"`{kind}`"
        rows = [f"- `{code}`: {meaning}" for code, (of, meaning) in CODES.items() if of == kind]
        parts.append(f"**{name}**\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


# --- the command line --------------------------------------------------------------------------


def exit_codes() -> str:
    """Return the table of exit codes."""
    rows = [
        (str(exit_code.value), exit_code.name.lower(), exit_code.meaning) for exit_code in ExitCode
    ]
    return table(("Code", "Name", "Meaning"), rows)


Row = tuple[str, str]
SHARED = 3
"""An option that so many commands have, with the same help, is described once."""


def rows_of(command: click.Command, context: click.Context) -> dict[Section, list[Row]]:
    """Return the options of a command by their sections, as its help shows them."""
    rows: dict[Section, list[Row]] = {section: [] for section in Section}
    for option in command.get_params(context):
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is not None:
            rows[getattr(option, "section", Section.OUTPUT)].append(record)
    return rows


def block(write: Callable[[click.HelpFormatter], None]) -> str:
    """Return what is written to a formatter of help as a block of text."""
    formatter = click.HelpFormatter(width=WIDTH, max_width=WIDTH)
    write(formatter)
    return f"```text\n{formatter.getvalue().strip()}\n```\n"


def write_rows(formatter: click.HelpFormatter, rows: Mapping[Section, Sequence[Row]]) -> None:
    """Write the options by their sections."""
    for section, found in rows.items():
        if found:
            with formatter.section(section.value):
                formatter.write_dl(found)


def commands() -> str:
    """Return each command with its help, and the options of several commands once."""
    group = click.Context(main.cli, info_name="resourcesync", auto_envvar_prefix=PREFIX)
    contexts = {}
    for name in main.cli.list_commands(group):
        command = main.cli.get_command(group, name)
        assert command is not None
        contexts[name] = click.Context(command, parent=group, info_name=name)
    rows = {name: rows_of(context.command, context) for name, context in contexts.items()}
    counts = Counter(
        (section, row) for found in rows.values() for section in found for row in found[section]
    )
    shared = {one for one, count in counts.items() if count >= SHARED}
    once: dict[Section, list[Row]] = {
        section: [row for found, row in counts if found is section and (section, row) in shared]
        for section in Section
    }
    parts = [f"## Options of several commands\n\n{block(partial(write_rows, rows=once))}"]
    parts += [
        f"## resourcesync {name}\n\n{block(partial(write_help, context, rows[name], shared))}"
        for name, context in contexts.items()
    ]
    return "\n".join(parts)


def write_help(
    context: click.Context,
    rows: Mapping[Section, list[Row]],
    shared: Collection[tuple[Section, Row]],
    formatter: click.HelpFormatter,
) -> None:
    """Write the help of a command, and only the names of what it shares with others."""
    context.command.format_usage(context, formatter)
    context.command.format_help_text(context, formatter)
    own = {
        section: [row for row in found if (section, row) not in shared]
        for section, found in rows.items()
    }
    write_rows(formatter, own)
    if isinstance(context.command, click.Group):
        context.command.format_commands(context, formatter)
    names = [
        row[0].partition(" / ")[0].split()[0 if row[0].startswith("--") else -1]
        for section, found in rows.items()
        for row in found
        if (section, row) in shared and section is not Section.OUTPUT
    ]
    also = [*names, *(["those of Output"] if rows[Section.OUTPUT] else [])]
    if also:
        formatter.write_paragraph()
        formatter.write_text(f"Also: {', '.join(also)}")


def configuration_keys(keys: Mapping[str, Field], command: str) -> str:
    """Return the keys of a table in the configuration file; of options the names."""
    group = click.Context(main.cli)
    shown = main.cli.get_command(group, command)
    assert shown is not None
    options = {option.help for option in shown.params if isinstance(option, click.Option)}
    told = [f"`{name}`" for name, field in keys.items() if field.setting.help in options]
    rows = [f"As the options of `{command}`, without the dashes: {', '.join(told)}.\n\n"]
    for name, field in keys.items():
        kind = " or ".join(field.choices or [field.form.name])
        several = "list of " if field.is_many else ""
        form = f"{several}{'true or false' if field.is_flag else kind}"
        usual = f", built in `{field.setting.shown}`" if field.setting.shown else ""
        if field.setting.help not in options:
            rows.append(f"- `{name}` ({form}{usual}): {field.setting.help}\n")
    return "".join(rows)


def modules() -> str:
    """Return every module with what it says of itself, and the names it gives, by folders."""
    found: dict[Path, list[str]] = {}
    home = ROOT / "src" / "resourcesync"
    for path in sorted(home.rglob("*.py"), key=lambda path: (path.parent, path.name)):
        code = ast.parse(path.read_text("utf-8"))
        said = (ast.get_docstring(code) or "").split("\n\n", 1)[0].replace("\n", " ")
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        names = [node.name for node in code.body if isinstance(node, kinds)]
        line = said.replace("``", "`")
        if path.stem != "__init__":
            public = (f"`{name}`" for name in names if not name.startswith("_"))
            line = f"- `{path.name}`: {line} {' '.join(public)}".rstrip()
        found.setdefault(path.parent, []).append(line)
    named = {folder.relative_to(home.parent).as_posix(): rows for folder, rows in found.items()}
    return "\n\n".join(f"## {folder}\n\n" + "\n".join(rows) for folder, rows in named.items())


PARTS: dict[str, Callable[[], str]] = {
    "modules": modules,
    **{f"rules-{prefix}": partial(family, prefix) for prefix in FAMILIES},
    **{name: partial(part, name) for name in NAMES},
    "conformance": conformance,
    "founding": founding_text.tables,
    "errors": error_codes,
    "codes": codes,
    "commands": commands,
    "exit-codes": exit_codes,
    "producers": producers_text.rows,
    "configuration": partial(configuration_keys, mirror_keys(), "pull"),
    "configuration-sources": partial(configuration_keys, source_keys(), "publish"),
    **{f"results-{name}": partial(report_text.results, name) for name in report_text.REPORTS},
    "scenario-keys": scenario_text.keys,
    "scenario-events": scenario_text.events,
    "scenario-figures": scenario_text.figures,
}


def filled(text: str) -> str:
    """Return a page with its generated parts as they should be."""
    text = PART.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n{found[3]}", text)
    return reading_text.with_sizes(text)


def files() -> Iterator[tuple[Path, str, str]]:
    """Yield each page and picture as it is, and as it should be."""
    for page in [*sorted(DOCS.rglob("*.md")), *OTHERS]:
        text = page.read_text("utf-8")
        yield page, text, filled(text)
    for name, text in manual_text.pages():
        manual = ROOT / name
        yield manual, manual.read_text("utf-8") if manual.exists() else "", text
    module = ROOT / keywords_text.MODULE
    yield module, module.read_text("utf-8"), keywords_text.module()
    for name, draw in {**architecture_text.PICTURES, **concept_drawings.PICTURES}.items():
        picture = DOCS / name
        yield picture, picture.read_text("utf-8") if picture.exists() else "", draw()


def run() -> int:
    """Write the files, or with ``--check`` name those that are not as they should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    stale = 0
    for path, text, right in files():
        if right == text:
            continue
        stale += 1
        sys.stdout.write(f"{'stale' if check else 'written'}  {path.relative_to(ROOT)}\n")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(right, "utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(run())
