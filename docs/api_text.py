"""The public names as Markdown: what stands in their docstrings, for readers without Sphinx."""

import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from textwrap import dedent

import msgspec

from resourcesync.settings.schema import fields_of

NAMES: dict[str, tuple[str, ...]] = {
    "api-mirrors": (
        "resourcesync.Mirror",
        "resourcesync.MirrorOptions",
        "resourcesync.Network",
        "resourcesync.Credentials",
        "resourcesync.Event",
    ),
    "api-reports": (
        "resourcesync.RunReport",
        "resourcesync.Failing",
        "resourcesync.Mode",
        "resourcesync.MirrorState",
        "resourcesync.MirrorStatus",
        "resourcesync.FailedRun",
        "resourcesync.AuditReport",
        "resourcesync.AuditRolling",
        "resourcesync.AuditFinding",
        "resourcesync.FindingKind",
        "resourcesync.Explanation",
    ),
    "api-changes-of-a-mirror": ("resourcesync.MirroredResource", "resourcesync.MirrorChange"),
    "api-publishing": (
        "resourcesync.Publisher",
        "resourcesync.PublisherOptions",
        "resourcesync.Published",
        "resourcesync.Catalogue",
        "resourcesync.Posted",
        "resourcesync.WrittenDocument",
        "resourcesync.LeftFile",
    ),
    "api-serving": ("resourcesync.server.create_app", "resourcesync.server.create_operations_app"),
    "api-looking-at-a-source": (
        "resourcesync.discover",
        "resourcesync.offered_sets",
        "resourcesync.Source",
        "resourcesync.SourceLists",
        "resourcesync.OfferedSet",
    ),
    "api-judging": (
        "resourcesync.validate",
        "resourcesync.RuleFinding",
        "resourcesync.Rule",
        "resourcesync.Level",
        "resourcesync.Severity",
    ),
    "api-documents": (
        "resourcesync.documents.read",
        "resourcesync.documents.write",
        "resourcesync.documents.Document",
        "resourcesync.documents.Header",
        "resourcesync.documents.Limits",
        "resourcesync.documents.Tolerated",
        "resourcesync.documents.RefusedEntry",
    ),
    "api-entries": (
        "resourcesync.documents.Resource",
        "resourcesync.documents.Change",
        "resourcesync.documents.Part",
        "resourcesync.documents.Package",
        "resourcesync.documents.CapabilityEntry",
        "resourcesync.documents.DocumentChange",
        "resourcesync.documents.Link",
    ),
    "api-words-and-values": (
        "resourcesync.documents.Capability",
        "resourcesync.documents.ChangeKind",
        "resourcesync.documents.Relation",
        "resourcesync.documents.Dialect",
        "resourcesync.documents.Digest",
        "resourcesync.documents.parse_digests",
        "resourcesync.documents.format_digests",
        "resourcesync.documents.parse_time",
        "resourcesync.documents.format_time",
    ),
}
"""The parts of the page, each with its names."""

RESULTS = {
    f"resourcesync.{name}"
    for name in (
        *("RunReport", "Failing", "MirrorStatus", "FailedRun", "AuditReport", "AuditFinding"),
        *("MirroredResource", "MirrorChange", "Published", "Posted", "WrittenDocument"),
        *("LeftFile", "Source", "SourceLists", "OfferedSet", "RuleFinding", "Rule", "Event"),
        "Explanation",
    )
}
"""Values that calls return: nobody makes one, so the arguments of the class are left out."""

FEW = 4

SECTIONS = {
    "Args": "Arguments",
    "Attributes": "Attributes",
    "Raises": "Raises",
    "Returns": "Returns",
    "Yields": "Yields",
}
EXAMPLE = re.compile(r"^Example:\n((?:    .*\n|\n)+)", re.MULTILINE)
ITEM = re.compile(r"(?P<names>\*{0,2}[A-Za-z_][\w.]*(?:, \*{0,2}[A-Za-z_]\w*)*): (?P<text>.*)")


def part(name: str) -> str:
    """Return one part of the page."""
    return "\n".join(described(name) for name in NAMES[name])


def described(name: str) -> str:
    """Return a public name as a section."""
    home, _, own = name.rpartition(".")
    item = getattr(importlib.import_module(home), own)
    lines = [f"### {own}\n"]
    if inspect.isclass(item):
        if issubclass(item, enum.Enum):
            text = words(item)
            lines += [text, *([] if "**Attributes**" in text else [f"{values(item)}\n"])]
            return "\n".join(lines)
        if is_mapping(item):
            lines.append(keywords(item))
            return "\n".join(lines)
        if name not in RESULTS:
            lines.append(code(f"class {own}{arguments(item)}"))
        lines += [words(item), *settings_of(item), *members(item)]
    else:
        lines += [code(f"{own}{arguments(item)}"), words(item)]
    return "\n".join(lines)


def settings_of(item: type) -> list[str]:
    """Return the fields of a class that are settings, with their descriptions."""
    found = fields_of(item).values() if issubclass(item, msgspec.Struct) else ()
    units = {"duration": " In seconds.", "size": " In bytes."}
    rows = [
        f"- `{field.name}`: {field.setting.help}{units.get(field.form.name, '')}\n"
        for field in found
    ]
    return [f"**Settings**\n\n{''.join(rows)}".replace("``", "`")] if rows else []


def keywords(item: type) -> str:
    """Return what keyword arguments are for, and their names."""
    names = ", ".join(f"`{name}`" for name in item.__annotations__)
    summary = words(item).partition("\n\n")[0]
    return f"{summary}\n\n{names}\n"


def code(text: str) -> str:
    """Return a signature as a block of code."""
    return f"```python\n{text}\n```\n"


def is_mapping(item: type) -> bool:
    """Whether a class only names keyword arguments (``TypedDict``)."""
    return hasattr(item, "__total__")


def arguments(item: object) -> str:
    """Return the arguments of something that can be called, without their types' modules."""
    try:
        signature = inspect.signature(item)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    kept = [p.replace(annotation=p.empty) for n, p in signature.parameters.items() if n != "self"]
    text = str(signature.replace(parameters=kept, return_annotation=inspect.Signature.empty))
    text = re.sub(r"<factory>|<object object at 0x[0-9a-f]+>", "...", text)
    text = re.sub(r"<(\w+)\.(\w+): [^>]*>", r"\1.\2", text)
    # A set has no order of its own, and would be written in another one each time.
    return re.sub(
        r"(?<=frozenset\(\{)[^}]*", lambda match: ", ".join(sorted(match[0].split(", "))), text
    )


def values(enum: type[enum.Enum]) -> str:
    """Return the members of an enumeration and their values."""
    return ", ".join(f"`{member.name}` (`{member.value}`)" for member in enum)


def members(item: type) -> Iterator[str]:
    """Yield the methods and properties of a class, its own and those of our bases.

    What several classes of the page have from one base is said at the first of them.
    """
    fields = set(item.__struct_fields__) if issubclass(item, msgspec.Struct) else set()
    fields |= set(getattr(item, "_fields")) if issubclass(item, tuple) else set()  # noqa: B009
    repeated: dict[str, list[str]] = {}
    properties, methods = [], []
    for name, kind, home, member in inspect.classify_class_attrs(item):
        ours = getattr(member, "__doc__", None) and not name.startswith("_")
        if not ours or name in fields or is_inherited(item, name):
            continue
        if (first := first_with(home)) is not item:
            repeated.setdefault(first.__name__, []).append(name)
        elif kind == "property":
            properties.append(f"- `{name}`: {' '.join(words(member).split())}\n")
        elif kind in {"method", "class method", "static method"}:
            plain = getattr(item, name)
            head = f"#### {item.__name__}.{name}\n\n{code(name + arguments(plain))}"
            methods.append(f"{head}\n{words(plain)}")
    if properties:
        yield f"**Properties**\n\n{''.join(properties)}"
    yield from methods
    for first_name, names in repeated.items():
        few = names if len(names) < FEW else [names[0], "…", names[-1]]
        shown = ", ".join(f"`{name}`" for name in few).replace("`…`", "…")
        yield f"As `{first_name}` has them: {shown}.\n"


def first_with(home: type) -> type:
    """Return the first class of the page that has the members of a base."""
    for names in NAMES.values():
        for name in names:
            module, _, own = name.rpartition(".")
            item = getattr(importlib.import_module(module), own)
            if inspect.isclass(item) and home in item.__mro__:
                return item
    return home


def is_inherited(item: type, name: str) -> bool:
    """Whether a member comes from a class that is not of this package."""
    home = next(base for base in item.__mro__ if name in vars(base))
    return not home.__module__.startswith("resourcesync")


def fenced(example: re.Match[str]) -> str:
    """Return an example as a block of code."""
    return f"**Example**\n\n```pycon\n{dedent(example[1]).strip()}\n```\n"


def attributes_of_bases(item: type) -> str:
    """Return what our bases of a class say of its attributes."""
    texts = [
        (inspect.getdoc(base) or "").partition("\nAttributes:\n")[2].partition("\n\n")[0]
        for base in reversed(item.__mro__[1:])
        if base.__module__.startswith("resourcesync")
    ]
    return "".join(f"{text}\n" for text in texts if text)


def words(entry: object) -> str:
    """Return a docstring as Markdown."""
    text = inspect.getdoc(entry) or ""
    if inspect.isclass(entry):
        text = text.replace("Attributes:\n", f"Attributes:\n{attributes_of_bases(entry)}", 1)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    text = EXAMPLE.sub(fenced, text + "\n").rstrip("\n")
    out: list[str] = []
    section = ""
    for line in text.splitlines():
        head = line.rstrip(":")
        if line.endswith(":") and head in SECTIONS:
            section = head
            out += [f"**{SECTIONS[head]}**", ""]
        elif section and line and not line.startswith(" "):
            section = ""
            out.append(line)
        elif section:
            out.append(item(line))
        else:
            out.append(line)
    return "\n".join(out) + "\n"


def item(line: str) -> str:
    """Return a line of a section: an item of a list, or what goes on with one."""
    found = ITEM.fullmatch(line.strip())
    if found is None or len(line) - len(line.lstrip()) > len("    "):
        return f"  {line.strip()}" if line.strip() else ""
    names = ", ".join(f"`{name}`" for name in found["names"].split(", "))
    return f"- {names}: {found['text']}"
