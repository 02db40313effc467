"""The public names as Markdown: what stands in their docstrings, for readers without Sphinx."""

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterator

NAMES: dict[str, tuple[str, ...]] = {
    "api-mirrors": (
        "resourcesync.Mirror",
        "resourcesync.MirrorOptions",
        "resourcesync.Network",
        "resourcesync.Credentials",
        "resourcesync.Event",
    ),
    "api-plans": (
        "resourcesync.Plan",
        "resourcesync.PlannedAction",
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
    ),
    "api-changes-of-a-mirror": (
        "resourcesync.MirrorChange",
        "resourcesync.MirrorChangeKind",
    ),
    "api-publishing": (
        "resourcesync.Publisher",
        "resourcesync.PublisherOptions",
        "resourcesync.Published",
        "resourcesync.Catalogue",
        "resourcesync.Posted",
        "resourcesync.WrittenDocument",
        "resourcesync.LeftFile",
    ),
    "api-serving": (
        "resourcesync.server.create_app",
        "resourcesync.server.create_operations_app",
    ),
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

SECTIONS = {
    "Args": "Arguments",
    "Attributes": "Attributes",
    "Raises": "Raises",
    "Returns": "Returns",
    "Yields": "Yields",
}
ITEM = re.compile(r"(?P<names>\*{0,2}[A-Za-z_][\w.]*(?:, \*{0,2}[A-Za-z_]\w*)*): (?P<text>.*)")


def part(name: str) -> str:
    """Return one part of the page."""
    return "\n".join(described(it) for it in NAMES[name])


def described(name: str) -> str:
    """Return a public name as a section."""
    home, _, own = name.rpartition(".")
    it = getattr(importlib.import_module(home), own)
    lines = [f"### {own}\n"]
    if inspect.isclass(it):
        if issubclass(it, enum.Enum):
            lines += [words(it), "\n".join(values(it)), ""]
            return "\n".join(lines)
        if not is_mapping(it):
            lines.append(code(f"class {own}{arguments(it)}"))
        lines += [words(it), *members(it)]
    else:
        lines += [code(f"{own}{arguments(it)}"), words(it)]
    return "\n".join(lines)


def code(text: str) -> str:
    """Return a signature as a block of code."""
    return f"```python\n{text}\n```\n"


def is_mapping(it: type) -> bool:
    """Whether a class only names keyword arguments (``TypedDict``)."""
    return hasattr(it, "__total__")


def arguments(it: object) -> str:
    """Return the arguments of something that can be called, without their types' modules."""
    try:
        signature = inspect.signature(it)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    kept = [p.replace(annotation=p.empty) for n, p in signature.parameters.items() if n != "self"]
    text = str(signature.replace(parameters=kept, return_annotation=inspect.Signature.empty))
    text = re.sub(r"<factory>|<object object at 0x[0-9a-f]+>", "...", text)
    text = re.sub(r"<(\w+)\.(\w+): [^>]*>", r"\1.\2", text)
    # A set has no order of its own, and would be written in another one each time.
    return re.sub(r"(?<=frozenset\(\{)[^}]*", lambda it: ", ".join(sorted(it[0].split(", "))), text)


def values(it: type[enum.Enum]) -> Iterator[str]:
    """Yield the members of an enumeration as a list."""
    for member in it:
        yield f"- `{it.__name__}.{member.name}`: `{member.value}`"


def members(it: type) -> Iterator[str]:
    """Yield the methods and properties of a class, its own and those of our bases."""
    fields = (
        {field.name for field in dataclasses.fields(it)} if dataclasses.is_dataclass(it) else set()
    )
    fields |= set(getattr(it, "_fields")) if issubclass(it, tuple) else set()  # noqa: B009
    for name, kind, _, member in inspect.classify_class_attrs(it):
        ours = getattr(member, "__doc__", None) and not name.startswith("_")
        if not ours or name in fields or is_inherited(it, name):
            continue
        if kind == "property":
            yield f"#### {it.__name__}.{name}\n\n{words(member)}"
        elif kind in {"method", "class method", "static method"}:
            plain = getattr(it, name)
            yield f"#### {it.__name__}.{name}\n\n{code(name + arguments(plain))}\n{words(plain)}"


def is_inherited(it: type, name: str) -> bool:
    """Whether a member comes from a class that is not of this package."""
    home = next(base for base in it.__mro__ if name in vars(base))
    return not home.__module__.startswith("resourcesync")


def words(it: object) -> str:
    """Return a docstring as Markdown."""
    text = re.sub(r"``([^`]+)``", r"`\1`", inspect.getdoc(it) or "")
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
