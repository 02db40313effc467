"""Findings of ``validate`` as workflow commands of GitHub, which annotate files."""

import sys
from typing import Final

from resourcesync.cli.output import write_line
from resourcesync.cli.render.validate import ValidationTally, cut_short_message
from resourcesync.validator.events import CutShort, ValidationEvent
from resourcesync.validator.rule import RuleFinding, Severity
from resourcesync.validator.sample import Unreached

_COMMANDS: Final = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.ADVICE: "notice",
}


class GithubFindingsWriter:
    """A writer of one workflow command for each finding."""

    def add(self, event: ValidationEvent) -> None:
        """Write a finding."""
        if isinstance(event, RuleFinding):
            write_line(sys.stdout, github_command(event))
        elif isinstance(event, Unreached):
            title = f"title={_property(event.error.code)}"
            text = _data(f"{event.uri}: {event.error.message}")
            write_line(sys.stdout, f"::error {title}::{text}")
        elif isinstance(event, CutShort):
            text = _data(f"{event.uri}: {cut_short_message(event)}")
            write_line(sys.stdout, f"::warning title=cut-short::{text}")

    def end(self, tally: ValidationTally) -> None:
        """Write the summary, for the log."""
        write_line(sys.stdout, tally.sentence())


def github_command(finding: RuleFinding) -> str:
    """Return the workflow command that marks a finding."""
    properties = [f"file={_property(finding.uri)}"]
    if finding.line:
        properties.append(f"line={finding.line}")
    if finding.column:
        properties.append(f"col={finding.column}")
        properties.append(f"endColumn={finding.column + max(finding.length, 1)}")
    properties.append(f"title={_property(finding.rule.code)}")
    text = f"{finding.message}. {finding.rule.fix}"
    return f"::{_COMMANDS[finding.severity]} {','.join(properties)}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
