"""``resourcesync rule``: explain a rule of the standard, or the code of an error."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from resourcesync.cli import options
from resourcesync.cli.job import Job
from resourcesync.cli.output import CommandOutcome, OutputOptions, Screen
from resourcesync.cli.words import QUIET, TextLine

if TYPE_CHECKING:
    from resourcesync.validator.rule import Rule


@click.command("rule")
@click.argument("name", metavar="ID")
@options.output_options
def command(output: OutputOptions, name: str) -> Job:
    """Explain a rule or the code of an error.

    ID is a rule's code (RS402) or its row in the table of requirements (CH05); the beginning of
    one (RS4, CH) lists all that begin so. The code of an error (hash-mismatch) is explained too.

    \b
    resourcesync rule RS402
    resourcesync rule RS4
    """  # noqa: D301 - click's mark for lines that are not to be filled

    def work(screen: Screen) -> CommandOutcome:
        return _explain(name, screen)

    return Job(command="rule", output=output, work=work, render=_render_rule, fields={"id": name})


def _explain(name: str, screen: Screen) -> CommandOutcome:
    from resourcesync.validator.rules import RULES, find_rule  # noqa: PLC0415 - help stays quick

    rule = find_rule(name)
    if rule is not None:
        screen.report("rule", rule_fields(rule))
        return CommandOutcome(fields={"rules": 1})
    error = _find_error(name)
    if error is not None:
        screen.report("error-code", error)
        return CommandOutcome(fields={"rules": 0})
    start = name.strip().lower()
    found = [it for it in RULES.values() if it.code.lower().startswith(start)]
    found = found or [it for it in RULES.values() if it.id.lower().startswith(start)]
    if not found or not start:
        raise _unknown(name)
    for it in found:
        screen.report("rule", {**rule_fields(it), "brief": True})
    return CommandOutcome(fields={"rules": len(found)})


def _unknown(name: str) -> Exception:
    from difflib import get_close_matches  # noqa: PLC0415 - seldom needed

    from resourcesync.errors import ConfigurationError  # noqa: PLC0415 - seldom needed
    from resourcesync.validator.rules import BY_CODE, FAMILIES  # noqa: PLC0415 - seldom needed

    near = get_close_matches(name.upper(), BY_CODE, n=1) or ["RS402"]
    return ConfigurationError(
        f"there is no rule and no error of the code {name[:64]!r}",
        evidence=tuple(("family", f"{family}  {what}") for family, what in FAMILIES.items()),
        hint=f"resourcesync rule {near[0]}",
    )


def rule_fields(rule: "Rule") -> dict[str, object]:
    """Return a rule as the fields of its event."""
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
        "profiles": sorted(profile.value for profile in rule.profiles),
        "checked": rule.checked.value,
        "reason": rule.reason,
    }


def _find_error(code: str) -> dict[str, object] | None:
    """Return what is known of the code of an error; ``None`` when there is no such code."""
    from resourcesync import errors  # noqa: PLC0415 - help stays quick
    from resourcesync.cli.error_codes import CODES  # noqa: PLC0415 - help stays quick
    from resourcesync.cli.exit_codes import exit_code_for  # noqa: PLC0415 - help stays quick

    known = CODES.get(code.strip().lower())
    if known is not None:
        return _code_fields(code.strip().lower(), *known)
    waiting: list[type[errors.ResourceSyncError]] = [errors.ResourceSyncError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.default_code == code.strip().lower():
            bare = kind.__new__(kind)
            exit_code = exit_code_for(bare)
            return {
                "code": kind.default_code,
                "meaning": (kind.__doc__ or "").partition("\n")[0],
                "exit_code": int(exit_code),
                "exit_meaning": exit_code.meaning,
                "passes": kind.transient,
            }
    return None


def _code_fields(code: str, kind: str, meaning: str) -> dict[str, object]:
    """Return what is known of a code that errors of a kind, or warnings, may carry."""
    from resourcesync import errors  # noqa: PLC0415 - help stays quick
    from resourcesync.cli.exit_codes import ExitCode, exit_code_for  # noqa: PLC0415 - as above

    fields: dict[str, object] = {"code": code, "meaning": meaning}
    if kind == "warning":
        words = "a warning: it does not change how the run ends"
        return {**fields, "exit_code": int(ExitCode.OK), "exit_meaning": words, "passes": False}
    class_: type[errors.ResourceSyncError] = getattr(errors, kind)
    exit_code = exit_code_for(class_.__new__(class_))
    return {
        **fields,
        "exit_code": int(exit_code),
        "exit_meaning": exit_code.meaning,
        "passes": class_.transient,
    }


_CHECKED = {
    "document": "in each document",
    "together": "between documents: resourcesync validate ADDRESS --live",
    "delivery": "over HTTP: resourcesync validate ADDRESS --live --sample 20",
    "message": "not by validate, which sees no message of a hub; programs may hand them over",
    "package": "in a package: resourcesync validate PACKAGE.zip",
    "partly": "in part",
    "live": "not by validate",
}


def clause_of(text: str) -> str:
    """Return a clause as people say it: ``section 12.1``, or the name of another document."""
    return f"section {text}" if text[:1].isdigit() else text


def _render_rule(event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
    if event == "error-code":
        yield TextLine(f"{fields['code']}  {fields['meaning']}", level=QUIET)
        yield TextLine(f"  exit    {fields['exit_code']}: {fields['exit_meaning']}", level=QUIET)
        if fields["passes"]:
            yield TextLine("  again   it may pass: run the command again", level=QUIET)
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
