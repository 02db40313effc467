"""Packages of resources, for Destinations that start or are behind; ``resourcesync dump``.

`publish --dumps` is the command of today; ``dump`` is its former name, with options of its own.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from resourcesync.cli import formatting, options
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.cli.render import publish as render_publish

if TYPE_CHECKING:
    from resourcesync.source.dumps.dump_publisher import DumpOutcome
    from resourcesync.source.publication_options import PublishRequest


@click.command("dump", cls=SectionedCommand)
@click.argument("tree", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@option("--url", metavar="BASE", help="The address of DIR on the Web; needed once.")
@option(
    "--changes/--no-changes",
    default=False,
    help="Also add the changes since the last run to a Change Dump.",
)
@option(
    "--resources/--no-resources",
    default=True,
    help="Update the Resource Dump: only changed files are packed again.",
)
@option(
    "--max-package",
    type=options.PACKAGE_SIZE,
    help="Most bytes of content in one package; default: 256M.",
)
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Pack the files of a tree into dumps, and publish them, as ``publish --dumps`` does."""
    tree: Path = values["tree"]
    if not (values["resources"] or values["changes"]):
        raise click.UsageError("--no-resources without --changes leaves nothing to do")

    def work(screen: Screen) -> CommandOutcome:
        return _dump(tree, values, screen)

    return Job(
        command="dump",
        acts=True,
        output=output,
        work=work,
        subject=tree.name,
        fields={"tree": str(tree)},
        resume_command=f"resourcesync dump {tree}",
    )


def _dump(tree: Path, values: dict[str, Any], screen: Screen) -> CommandOutcome:
    from resourcesync.app import machine  # noqa: PLC0415 - help stays quick
    from resourcesync.app.publishing import trees  # noqa: PLC0415 - help stays quick
    from resourcesync.source.publication_options import PublishRequest  # noqa: PLC0415 - help stays quick

    request = request_dumps(
        PublishRequest(), resources=values["resources"], changes=values["changes"]
    )
    chosen = {name: values[name] for name in ("url", "max_package") if values[name]}
    clock = machine.system_clock()
    started = clock.monotonic()
    done = trees.publish_tree(tree, chosen, clock=clock, asked=request)
    render_publish.report(done, screen)
    return with_packages(
        render_publish.conclude(done, tree, clock.monotonic() - started), done.dumped, screen
    )


def request_dumps(request: "PublishRequest", *, resources: bool, changes: bool) -> "PublishRequest":
    """Return a request to publish that also makes a Resource Dump, a Change Dump, or both."""
    from resourcesync.source.dumps import dump_publication  # noqa: PLC0415 - help stays quick

    dumps = dump_publication.DumpRequest(resources=resources, changes=changes, may_fork=True)
    return replace(request, dumps=dumps)


def with_packages(
    outcome: CommandOutcome, dumped: "DumpOutcome | None", screen: Screen
) -> CommandOutcome:
    """Report the packages of a publication; return its outcome with their line and fields."""
    assert dumped is not None, "a dump was requested"
    for packed in dumped.packages:
        screen.report(
            "package", {"name": packed.name, "entries": packed.entries, "bytes": packed.length}
        )
    if dumped.lost:
        screen.report("warning", _lost_versions(dumped.lost))
    return CommandOutcome(
        exit=outcome.exit,
        closing=(*outcome.closing, _packed_line(dumped)),
        fields={**outcome.fields, **_packed_fields(dumped)},
    )


def _lost_versions(count: int) -> dict[str, object]:
    changes = formatting.counted(count, "change")
    return {
        "code": "versions-gone",
        "message": f"{changes} cannot be packed: the bytes of these versions no longer exist",
        "evidence": (("kept", "all later changes: the Change Dump begins with them"),),
        "hint": "from now on, changed versions are stored until they are packed",
    }


def _packed_line(dumped: "DumpOutcome") -> TextLine:
    if not dumped.packages:
        text = f"nothing new; {formatting.counted(dumped.reused, 'package')} unchanged"
        return TextLine(text, "Packed", QUIET)
    entries = sum(package.entries for package in dumped.packages)
    size = sum(package.length for package in dumped.packages)
    text = (
        f"{entries:,} {'entry' if entries == 1 else 'entries'} in"
        f" {formatting.counted(len(dumped.packages), 'package')}, {formatting.size(size)}"
    )
    rest = f"; {formatting.counted(dumped.reused, 'package')} unchanged" if dumped.reused else ""
    return TextLine(text + rest, "Packed", QUIET)


def _packed_fields(dumped: "DumpOutcome") -> dict[str, object]:
    return {
        "packages": [package.name for package in dumped.packages],
        "packages_kept": dumped.reused,
        "packed_entries": sum(package.entries for package in dumped.packages),
        "packed_bytes": sum(package.length for package in dumped.packages),
    }
