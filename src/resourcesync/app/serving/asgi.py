"""A published folder as an ASGI application."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from resourcesync.adapters.system import SystemClock
from resourcesync.app.serving import applications
from resourcesync.app.serving.applications import CurrentApplication

Asgi = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[MutableMapping[str, Any]]],
        Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ],
    Awaitable[None],
]


def create_app(
    folder: str | Path,
    *,
    out: str | Path | None = None,
    links: Callable[[str], Sequence[str]] | None = None,
) -> CurrentApplication:
    """Return an ASGI application that serves a published folder and its documents.

    It writes nothing. Run it with any ASGI server, or mount it in Starlette, FastAPI or Django at
    the address that the folder is published for; the command line serves by the same.

    Args:
        folder: A folder that was published.
        out: The folder of the documents, when they were published to another one.
        links: Returns the values of further ``Link`` fields for a path, such as
            ``resourcesync/changelist.xml``; the same each time. Hubs that the folder was published
            with are linked in any case.

    Raises:
        ConfigurationError: The folder was not published.
        DocumentError: Its Source Description cannot be read.
        StorageError: The same, because of the disk.
    """
    tree = applications.find_tree(Path(folder), None if out is None else Path(out))
    return tree.application(SystemClock(), links=links or (lambda _: ()))


def create_operations_app(folder: str | Path, *served: CurrentApplication) -> Asgi:
    """Return an ASGI application with ``/livez``, ``/readyz`` and ``/metrics`` for a folder.

    Serve it where the public does not reach it.

    Args:
        folder: A folder that was published.
        served: The applications that serve the folder, whose requests are counted.

    Raises:
        ConfigurationError: The folder was not published.
        DocumentError: Its Source Description cannot be read.
        StorageError: The same, because of the disk.
    """
    tree = applications.find_tree(Path(folder))
    return tree.operations(*(application.metrics for application in served))
