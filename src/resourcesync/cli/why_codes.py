"""Explanations of the rules of the standard, and of the codes of errors, for ``resourcesync why``.

The codes that errors and warnings carry besides those of their kinds, and what they mean.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from resourcesync import errors
from resourcesync.cli.exit_codes import ExitCode, exit_code_for
from resourcesync.cli.output import (
    QUIET,
    CommandOutcome,
    Job,
    Screen,
    TextLine,
    clause_of,
    read_tables,
)
from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.model.leniencies import LENIENCIES, Leniency

if TYPE_CHECKING:
    from resourcesync.validator.rule import Rule


def explanation_job(code: str) -> Job:
    """Return the job that explains a code, or the rules whose codes begin so."""
    return Job(work=lambda screen: _explain(code, screen), render=_render_rule, fields={"id": code})


DOCS: Final = "docs"
"""Address of the pages of the documentation: a folder of the project, until a site has them."""


def page_of(code: str) -> str:
    """Return the address of the page about the code of a rule or an error."""
    if code.startswith("RS"):
        return f"{DOCS}/reference/rules/{code[:3]}.md#{code.lower()}"
    return f"{DOCS}/reference/errors.md"


def _explain(name: str, screen: Screen) -> CommandOutcome:
    from resourcesync.validator.rule import RULES, find_rule  # noqa: PLC0415 - help stays fast

    rule, start = find_rule(name), name.strip().lower()
    found: list[Rule] = []
    if rule is not None:
        found = [rule]
        screen.report("rule", _rule_fields(rule))
    elif error := _find_error(name):
        screen.report("error-code", error)
    elif start in WORDS:
        screen.report("word", {"word": start, "meaning": WORDS[start]})
    elif start in LENIENCIES:
        broken, meaning = LENIENCIES[Leniency(start)]
        broken = f" It breaks {RULES[broken].code}." if broken else ""
        screen.report("word", {"word": start, "meaning": f"Tolerated: {meaning}.{broken}"})
    else:
        found = [rule for rule in RULES.values() if rule.code.lower().startswith(start)]
        found = found or [rule for rule in RULES.values() if rule.id.lower().startswith(start)]
        if not found or not start:
            raise _unknown(name)
        for item in found:
            screen.report("rule", {**_rule_fields(item), "brief": True})
    return CommandOutcome(fields={"rules": len(found)})


def _unknown(name: str) -> Exception:
    from difflib import get_close_matches  # noqa: PLC0415 - rarely needed

    from resourcesync.validator.rule import FAMILIES  # noqa: PLC0415 - rarely needed

    near = get_close_matches(name.lower(), [*CODES, *_kinds()], n=1, cutoff=_NEAR)
    likely = f"did you mean {near[0]}? resourcesync why {near[0]}; " if near else ""
    family = name[:3].upper() if name[:3].upper() in FAMILIES else "RS4"
    return ConfigurationError(
        f"there is no rule and no error of the code {name[:64]!r}",
        evidence=tuple(("family", f"{family}  {what}") for family, what in FAMILIES.items()),
        hint=f"{likely}the rules of a family: resourcesync why {family}; for a resource:"
        " resourcesync why MIRROR URI",
    )


def _rule_fields(rule: "Rule") -> dict[str, object]:
    return {
        "code": rule.code,
        "id": rule.id,
        "level": rule.level.value,
        "severity": rule.severity.value,
        "clause": rule.clause,
        "document": rule.document,
        "sentence": rule.sentence,
        "why": rule.why,
        "fix": rule.fix,
        "profiles": sorted(rule.profiles),
        "checked": rule.checked.value,
        "reason": rule.reason,
        "page": page_of(rule.code),
    }


def _find_error(code: str) -> dict[str, object] | None:
    name = code.strip().lower()
    known, kind = CODES.get(name), _kinds().get(name, ResourceSyncError)
    if known is not None:
        kind, meaning = getattr(errors, known.kind, ResourceSyncError), known.meaning
    elif kind.default_code == name:
        meaning = f"{(kind.__doc__ or '').partition(chr(10))[0]} {_FIXES.get(name, '')}".rstrip()
    else:
        return None
    end = _ENDS.get(name) or exit_code_for(kind(""))
    end_meaning, passes = end.meaning, kind.transient
    if known is not None and known.kind == "warning" and name not in _ENDS:
        end, passes = ExitCode.OK, False
        end_meaning = "a warning: it does not change how the run ends"
    return {
        "code": name,
        "meaning": meaning,
        "exit_code": int(end),
        "exit_meaning": end_meaning,
        "passes": passes,
        "page": page_of(name),
    }


def _kinds() -> dict[str, type[ResourceSyncError]]:
    kinds: list[type[ResourceSyncError]] = [ResourceSyncError]
    for kind in kinds:  # it grows meanwhile
        kinds += kind.__subclasses__()
    # A private kind of another module has the code of its parent, which comes first and counts.
    return {kind.default_code: kind for kind in reversed(kinds)}


def _render_rule(event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
    if event == "error-code":
        yield TextLine(f"{fields['code']}  {fields['meaning']}", level=QUIET)
        yield TextLine(f"  exit    {fields['exit_code']}: {fields['exit_meaning']}", level=QUIET)
        if fields["passes"]:
            yield TextLine("  again   it may pass: run the command again", level=QUIET)
        yield TextLine(f"  page    {fields['page']}", level=QUIET)
    elif event == "word":
        yield TextLine(f"{fields['word']}  {fields['meaning']}", level=QUIET)
    elif event == "rule" and fields.get("brief"):
        head = f"{fields['code']}  {fields['id']:<5}  {fields['severity']:<7}"
        yield TextLine(f"{head}  {fields['sentence']}", level=QUIET)
    elif event == "rule":
        yield from _render_page(fields)


def _render_page(fields: Mapping[str, Any]) -> Iterator[TextLine]:
    level, severity = fields["level"], fields["severity"]
    where = f"{fields['document']}, {clause_of(fields['clause'])}"
    yield TextLine(f"{fields['code']} ({fields['id']})  {level}, {severity}  {where}", level=QUIET)
    yield TextLine(f"  rule      {fields['sentence']}", level=QUIET)
    yield TextLine(f"  why       {fields['why']}", level=QUIET)
    yield TextLine(f"  fix       {fields['fix']}", level=QUIET)
    yield TextLine(f"  profiles  {', '.join(fields['profiles'])}", level=QUIET)
    checked = _CHECKED[fields["checked"]]
    if fields["reason"]:
        checked = f"{checked}: {fields['reason']}"
    yield TextLine(f"  checked   {checked}", level=QUIET)
    yield TextLine(f"  page      {fields['page']}", level=QUIET)


_NEAR: Final = 0.8
"""Similarity above which an unknown code is a misspelt known one, from 0 to 1."""
_ENDS: Final = dict.fromkeys(
    ("unreadable-file", "mended-row", "not-understood", "cut-list", "old-lists", "old-part"),
    ExitCode.PARTIAL,
)
"""How a run ends that goes on without what an error or a warning is about."""


class CodeMeaning(NamedTuple):
    """What a code means, and what to do, with the class of its errors; ``warning`` for none."""

    kind: str
    meaning: str


_SECTIONS: Final = read_tables(Path(__file__).with_name("codes.txt"))
WORDS: Final = _SECTIONS.pop("word")
"""What the words of the lines at the end of a run mean, which are no codes."""
_FIXES: Final = _SECTIONS.pop("fix")
"""What to do about the kinds of errors, after what they mean."""
_CHECKED: Final = _SECTIONS.pop("checked")
CODES: Final = {
    code: CodeMeaning(kind, meaning)
    for kind, codes in _SECTIONS.items()
    for code, meaning in codes.items()
}
"""What each code means that is not the code of a kind of error."""
