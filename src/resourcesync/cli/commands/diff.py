"""``resourcesync diff``: compare the resources of two Sources, lists or mirrors."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from resourcesync.cli import formatting, options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import DETAIL, NORMAL, QUIET, TextLine
from resourcesync.cli.options import SectionedCommand
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.cli.target_options import SourceAccess, source_options

if TYPE_CHECKING:
    from resourcesync.app.checks.comparisons import ResourceComparison
    from resourcesync.discovery.listing import ListingSummary

SHOWN_FINDINGS: Final = 1000
"""Findings that are shown one by one unless ``-v`` is given; the counts are complete."""


@click.command("diff", cls=SectionedCommand)
@click.argument("a")
@click.argument("b")
@source_options
@options.output_options
def command(output: OutputOptions, asking: SourceAccess, **values: Any) -> Job:
    """Compare the resources of two Sources, lists or mirrors.

    A and B are each the address of a Source or of a list, a file or folder of documents, or a
    mirror, also by its name in the configuration file. A Source is read from its Resource List and
    the changes since then. Resources with the same URI are compared by hash, or without one by
    length and lastmod; no resource is fetched. A mirror is what its state has recorded: no copy is
    read, see audit.
    Symbols: + only in B, - only in A, * different, ? not verifiable by a hash.
    Exit 0 when both are the same, 1 when not.

    \b
    resourcesync diff ./museum https://museum.example
    resourcesync diff monday/resourcelist.xml tuesday/resourcelist.xml
    """  # noqa: D301 - click's mark for lines that are not to be filled
    a, b = asking.mirror_or_place(values["a"]), asking.mirror_or_place(values["b"])
    asking.check_one_source((a, b))

    def work(screen: Screen) -> CommandOutcome:
        return _diff(a, b, asking, screen)

    return Job(
        command="diff",
        output=output,
        work=work,
        render=DiffRenderer(),
        subject="diff",
        fields={"a": a, "b": b},
        resume_command=f"resourcesync diff {a} {b}",
    )


def _diff(a: str, b: str, asking: SourceAccess, screen: Screen) -> CommandOutcome:
    from resourcesync.app import machine  # noqa: PLC0415 - help stays quick
    from resourcesync.app.checks import comparisons  # noqa: PLC0415 - help stays quick

    clock = machine.system_clock()
    began = clock.monotonic()
    network = asking.network(a if "://" in a else b)
    with comparisons.open_comparison(a, b, network=network, clock=clock) as comparison:
        for name, target, listing in (("a", a, comparison.a), ("b", b, comparison.b)):
            screen.report("account", {"name": name, "target": target, **_side_fields(listing)})
        for found in comparison.findings():
            fields = {"kind": found.sign.value, "uri": found.uri, "reason": found.reason}
            screen.report("finding", fields)
    return _conclude(comparison, clock.monotonic() - began)


def _side_fields(listing: "ListingSummary") -> dict[str, object]:
    from resourcesync.model.timestamps import from_microseconds  # noqa: PLC0415 - help stays quick

    return {
        "documents": listing.documents,
        "at": None if listing.at is None else from_microseconds(listing.at),
        "entries": listing.entries,
        "changes": listing.changes,
        "refused": listing.refused,
        "gap": listing.gap,
    }


def _conclude(found: "ResourceComparison", seconds: float) -> CommandOutcome:
    counts = (
        (found.only_a, "only in A"),
        (found.only_b, "only in B"),
        (found.different, "different"),
        (found.same, "the same"),
    )
    said = [f"{formatting.count(number)} {what}" for number, what in counts if number]
    label = "Same" if found.is_equal else "Different"
    lines = [
        TextLine(f"{', '.join(said) or 'nothing'}  {formatting.duration(seconds)}", label, QUIET)
    ]
    if found.unproven:
        text = f"{formatting.counted(found.unproven, 'resource')} without a hash in common"
        lines.insert(0, TextLine(f"{text}; compared by length and lastmod", "?"))
    return CommandOutcome(
        exit=ExitCode.OK if found.is_equal else ExitCode.FINDINGS,
        closing=tuple(lines),
        fields={
            "same": found.same,
            "unproven": found.unproven,
            "different": found.different,
            "only_a": found.only_a,
            "only_b": found.only_b,
        },
    )


class DiffRenderer:
    """A renderer of the events of a comparison as lines."""

    def __init__(self) -> None:
        self._findings = 0

    def __call__(self, event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
        """Yield the lines for one event."""
        if event == "account":
            yield from _render_side(fields)
        elif event == "finding":
            yield from self._finding(fields)

    def _finding(self, fields: Mapping[str, Any]) -> Iterator[TextLine]:
        line = TextLine(f"{fields['uri']}   {fields['reason']}", str(fields["kind"]))
        if line.label == "?":
            yield line._replace(level=DETAIL)
            return
        self._findings += 1
        yield line._replace(level=NORMAL if self._findings <= SHOWN_FINDINGS else DETAIL)
        if self._findings == SHOWN_FINDINGS + 1:
            yield TextLine("  more findings are not shown; -v or --json has them all")


def _render_side(fields: Mapping[str, Any]) -> Iterator[TextLine]:
    parts = [fields["target"]]
    if fields["at"] is not None:
        parts.append(f"at {formatting.moment(fields['at'])}")
    number = fields["entries"] - fields["changes"]
    parts.append(formatting.counted(number, "resource"))
    if fields["changes"]:
        parts.append(f"{formatting.counted(fields['changes'], 'change')} since")
    if fields["refused"]:
        parts.append(f"{formatting.count(fields['refused'])} unusable")
    yield TextLine("  ".join(parts), str(fields["name"]).upper().ljust(formatting.LABEL_WIDTH - 1))
    if fields["gap"]:
        yield TextLine(
            "          its Change Lists begin after its Resource List: changes may be missing"
        )
