"""``publish tables:…``: a table of resources that are too many for a catalogue."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from resourcesync.cli import words
from resourcesync.cli.output import CommandOutcome, Screen
from resourcesync.cli.publish_told import TABLES
from resourcesync.cli.publish_words import fields_of, report
from resourcesync.cli.words import QUIET, TextLine
from resourcesync.errors import ConfigurationError

if TYPE_CHECKING:
    from resourcesync.wiring.inventories import TableSource
    from resourcesync.wiring.publishing import PublicationResult, PublishRequest

_NOT_FOR_TABLES: Final = ("auth", "proxy", "proxy_auth", "ca_file", "rescan")


def is_table_address(target: str) -> bool:
    """Whether what is to be published is named as a table."""
    return target.startswith(TABLES)


def check_engine(target: str, values: Mapping[str, Any]) -> None:
    """Refuse an engine for what is no table.

    Raises:
        ConfigurationError: One is named.
    """
    if values["engine"] is not None:
        raise ConfigurationError(
            f"--engine is for tables, and {target} is none",
            hint="resourcesync publish tables:DIR --engine ENGINE",
        )


def publish_table(
    target: str,
    chosen: Mapping[str, object],
    asked: "PublishRequest",
    values: Mapping[str, Any],
    screen: Screen,
) -> CommandOutcome:
    """Publish a table once.

    Raises:
        ResourceSyncError: As ``wiring.inventories.publish_table`` says.
    """
    from resourcesync.wiring import inventories, machine  # noqa: PLC0415 - help stays quick

    clock = machine.system_clock()
    started = clock.monotonic()
    source = _table_source(target, values)
    told = {name: value for name, value in chosen.items() if name != "out"}
    done = inventories.publish_table(source, told, clock=clock, asked=asked)
    heads = [it for it in done.publication.written if "-sha256-" not in it.name]
    publication = replace(done.publication, written=tuple(heads))
    report(replace(done, publication=publication), screen)
    fields = fields_of(done, clock.monotonic() - started)
    lists = len(done.publication.written) - len(heads)
    return CommandOutcome(
        closing=tuple(_table_lines(done, lists, source)),
        fields={**fields, "written": [it.name for it in heads], "lists": lists},
    )


def _table_source(target: str, values: Mapping[str, Any]) -> "TableSource":
    from resourcesync.wiring import inventories  # noqa: PLC0415 - help stays quick

    if values["watch"]:
        raise ConfigurationError("--watch is for folders and other systems", hint="use cron")
    for name in _NOT_FOR_TABLES:
        if values[name]:
            raise ConfigurationError(
                f"--{name.replace('_', '-')} is for other systems, not for {target}"
            )
    out, state = values["out"], values["state"]
    if out is None:
        raise ConfigurationError(f"{target} needs --out: the folder or the store for the documents")
    if state is None and not isinstance(out, Path):
        raise ConfigurationError(
            f"it is not said where the table of {target} is kept",
            hint=f"with --out {out}: --state DIR",
        )
    return inventories.TableSource(
        address=target,
        values=dict(values["with"]),
        root=Path(out if state is None else state),
        out=out,
        engine=values["engine"] or "",
    )


def _table_lines(
    done: "PublicationResult", lists: int, source: "TableSource"
) -> Iterator[TextLine]:
    publication = done.publication
    if not publication.written:
        yield TextLine("Nothing changed", level=QUIET)
        return
    changes = {
        "created": publication.created,
        "updated": publication.updated,
        "deleted": publication.deleted,
    }
    told = ", ".join(f"{words.count(number)} {name}" for name, number in changes.items() if number)
    text = f"{words.counted(lists, 'list')} of {words.counted(done.scan.files, 'resource')}"
    yield TextLine(f"{text}{': ' if told else ''}{told}", "Wrote", QUIET)
    for it in publication.written:
        if "-sha256-" not in it.name:
            yield TextLine(f"          {source.out}/{it.name}", level=QUIET)
    if publication.first:
        where = f"  resourcesync pull {done.settings.url} ./copy --dry-run"
        yield TextLine(f"upload what is in {source.out}, then check:{where}", "Next")
