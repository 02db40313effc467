"""``resourcesync serve``: serve a published tree and its documents over HTTP."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from resourcesync import app
from resourcesync.cli import options
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import QUIET, CommandOutcome, Job, OutputOptions, Screen, TextLine
from resourcesync.errors import StorageError
from resourcesync.ports import Clock

if TYPE_CHECKING:
    from starlette.types import ASGIApp


_STDOUT = Path("-")
_LEAST_SHARE = 8


@click.command("serve", cls=SectionedCommand)
@click.argument(
    "tree", metavar="[DIR]", default=".", type=click.Path(file_okay=False, path_type=Path)
)
@option(
    "--bind",
    type=options.BINDING,
    metavar="HOST:PORT",
    default="127.0.0.1:8080",
    show_default=True,
    help="The address to listen on; port 0 means a free port.",
)
@option("--url", metavar="BASE", help="The public address, if a proxy is in front of this server.")
@option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the documents, if publish --out wrote them outside DIR.",
)
@option(
    "--hub",
    is_flag=True,
    help="Also run the WebSub hub that the lists name, for subscriptions to changes.",
)
@option(
    "--private-callbacks",
    is_flag=True,
    help="With --hub, for closed networks: also notify subscribers on this machine and in private"
    " networks, and accept secrets over plain HTTP.",
)
@option(
    "--admin",
    type=options.BINDING,
    metavar="HOST:PORT",
    help="The address of the operators' page, /livez, /readyz and /metrics; not for the public.",
)
@option(
    "--connections",
    type=click.IntRange(8, 100_000),
    metavar="N",
    default=400,
    show_default=True,
    help="Connections at a time; one client may have a quarter of them.",
)
@option(
    "--trusted-proxy",
    "proxies",
    type=options.NETWORK,
    metavar="ADDRESS",
    multiple=True,
    help="The address or network of a proxy in front: its X-Forwarded-For tells the client.",
)
@option(
    "--access-log",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Append a line for each answer to FILE, in the combined format of web servers, or as JSON"
    " if its name ends in .json, .jsonl or .ndjson; - for standard output.",
)
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Serve a tree and its lists over HTTP, and print the address to pull from.

    DIR is a published tree; by default the current folder. Stop with Ctrl-C (exit 0). Of the folder
    of a site (-o site of publish) all sets are served, unless --hub, --admin or --out is given.

    Files that publish would list, new ones too, and robots.txt are served: no hidden files, and
    none that --include and --exclude of publish left out when serve started.

    --hub runs a hub for this tree only, at the address below --url that publish --hub gave. Its
    state is in DIR/.resourcesync, so it continues after a restart.
    """
    tree: Path = values["tree"]
    if values["private_callbacks"] and not values["hub"]:
        raise click.UsageError("--private-callbacks needs --hub")
    if values["access_log"] == _STDOUT and output.json:
        raise click.UsageError("--access-log - and --json exclude each other: both write to stdout")

    return Job(
        acts=True,
        work=lambda screen: _serve(tree, values, screen),
        render=_render,
        subject=tree.name,
        fields={"tree": str(tree)},
    )


def _serve(tree: Path, values: Mapping[str, Any], screen: Screen) -> CommandOutcome:
    clock, hub, second, most = screen.clock, None, None, values["connections"]
    limits = app.applications.ConnectionLimits(
        connections=most, share=max(_LEAST_SHARE, most // 4), proxies=values["proxies"]
    )
    is_alone = values["hub"] or values["admin"] is not None
    found = app.site.find(tree, values["out"], alone=is_alone, port=values["bind"][1] or 8080)
    if isinstance(found, app.site.PublishedSite):
        application: ASGIApp = found.application(clock)
    else:
        hub = found.own_hub(clock, private=values["private_callbacks"]) if values["hub"] else None
        counts = [] if hub is None else [hub.figures]
        application = served = found.application(clock, hub=hub)
        if values["admin"] is not None:
            host, port = values["admin"]
            board = found.board(clock, hub, served.metrics, *counts)
            second = app.applications.ServerThread(board, host=host, port=port, limits=limits)

    def ready(uri: str, admin: str = "") -> None:
        address = values["url"] or uri
        if _address_parts(address)[0] == _address_parts(uri)[0]:
            address = uri  # no proxy is in front: below another path there is nothing
        is_same = _address_parts(found.base) == _address_parts(address)
        # A pull from another address than that of the lists would be refused.
        fields = {"uri": uri, "pull": address if is_same else "", "tree": str(tree)}
        screen.report("ready", fields | ({"admin": admin} if admin else {}))
        if not is_same:
            screen.report("warning", _address_warning(tree, found.base, address))

    running = nullcontext() if hub is None else hub.running()
    with running, _access_log(application, clock, values, screen) as logged:
        app.applications.serve_forever(
            logged, *values["bind"], on_ready=ready, limits=limits, aside=second
        )
    return CommandOutcome(closing=(TextLine("no longer served", "Stopped", QUIET),))


@contextmanager
def _access_log(
    application: "ASGIApp", clock: Clock, values: Mapping[str, Any], screen: Screen
) -> "Iterator[ASGIApp]":
    from resourcesync.cli.log_file import is_json  # noqa: PLC0415 - help stays quick

    path: Path | None = values["access_log"]
    if path is None:
        yield application
        return
    file = None if path == _STDOUT else path
    with app.applications.AccessLog(application, file, clock, is_json=is_json(path)) as log:
        try:
            log.check()
        except StorageError as error:
            fields = {"code": error.code, "message": error.message, "hint": error.hint}
            screen.report("warning", fields)
        yield log


def _render(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    if event == "ready":
        yield TextLine(f"{fields['tree']} at {fields['uri']}", "Serving", QUIET)
        address = fields["pull"]
        pull = (
            f"resourcesync pull {address}"
            if address
            else "not from here: the lists name another address"
        )
        yield TextLine(pull, "Pull", QUIET)
        if "admin" in fields:
            yield TextLine(str(fields["admin"]), "Admin", QUIET)


def _address_warning(tree: Path, base: str, address: str) -> dict[str, object]:
    server, path = _address_parts(base)
    hint = f"resourcesync publish {tree} --url {address}"
    if server == _address_parts(address)[0]:  # its own: a site has sets below paths
        hint = f"move it to SITE{path}: resourcesync publish SITE{path} --url {base} -o site=SITE"
        hint += "; then: resourcesync serve SITE"
    else:
        hint += f", or behind a proxy: resourcesync serve {tree} --url {base}"
    return {
        "code": "published-elsewhere",
        "message": "the lists of this tree name another address than the one it is served at",
        "evidence": (
            ("lists", f"{base}, for which the tree was published"),
            ("served", f"{address}: the lists send its clients to the other address"),
        ),
        "hint": hint,
    }


def _address_parts(address: str) -> tuple[tuple[str, str, int | None], str]:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ("", address, None), ""
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return (parts.scheme, host, port or default), parts.path.rstrip("/")
