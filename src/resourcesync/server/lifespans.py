"""The start and the end of an application, as ASGI has them."""

from collections.abc import Callable

from anyio import to_thread
from starlette.types import Receive, Send

from resourcesync.errors import ResourceSyncError


async def serve_lifespan(
    receive: Receive, send: Send, start: Callable[[], None], end: Callable[[], None]
) -> None:
    """Go along with a server's start and stop.

    Args:
        receive: What the server says.
        send: What it is told.
        start: Called at the start; what it raises of ours keeps the server from starting.
        end: Called at the end, in a thread: it may wait for one.
    """
    await receive()
    try:
        start()
    except ResourceSyncError as error:
        await send({"type": "lifespan.startup.failed", "message": error.message})
        return
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await to_thread.run_sync(end)
    await send({"type": "lifespan.shutdown.complete"})
