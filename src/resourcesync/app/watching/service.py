"""Composition of the service: the loop over the mirrors, and the server of its operators' pages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from resourcesync.ports import Clock
from resourcesync.server.admin import AdminApplication, MetricsSource, OperationsApplication
from resourcesync.server.dashboard.views import MirrorOperations, Views
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.watch.loop import JobRunner, OnJobEnd, WatchLoop
from resourcesync.watch.scheduler import Scheduler


def open_loop(run: JobRunner, report_done: OnJobEnd, clock: Clock, parallel: int) -> WatchLoop:
    """Return the loop that runs the jobs of mirrors when they are due.

    Args:
        run: Runs one job.
        report_done: Receives each finished job.
        clock: Time.
        parallel: Jobs at a time.
    """
    scheduler = Scheduler(Random())  # noqa: S311 - jitter
    return WatchLoop(scheduler, run, report_done, clock, parallel)


@contextmanager
def serve_operators(
    address: tuple[str, int],
    views: Views,
    status: Callable[[], bytes],
    figures: MetricsSource,
    check_health: Callable[[], None],
    operator: tuple[str, MirrorOperations] | None = None,
) -> Iterator[str]:
    """Serve the operators' pages, their status as JSON and the metrics, while the block runs.

    Args:
        address: The host and port to listen on.
        views: The data of the pages.
        status: Returns the status as JSON.
        figures: Returns the metrics.
        check_health: Raises if the service is stuck.
        operator: The token of operators, and what they may do; ``None``: the pages only read.

    Yields:
        The address of the pages.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """
    from resourcesync.server.dashboard.app import Dashboard  # noqa: PLC0415 - only with --admin
    from resourcesync.server.dashboard.operator_actions import (  # noqa: PLC0415 - the same
        OperatorApplication,
    )

    host, port = address
    health = OperationsApplication(look=check_health, counts=[figures])
    actions = None if operator is None else OperatorApplication(*operator)
    application = AdminApplication(status, Dashboard(views, health, operator=actions))
    with ServerThread(application, host=host, port=port) as server:
        yield server.uri
