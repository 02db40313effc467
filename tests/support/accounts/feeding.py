"""What the tests of feeds share: lines of changes, and what was told of them."""

import hashlib
import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from resourcesync.adapters.system import SystemClock
from resourcesync.app.document_access import open_fetcher
from resourcesync.ports import Clock
from resourcesync.ports.accounts import AccountOptions, ChangeBatch
from resourcesync.ports.cancellation import CancelToken
from resourcesync.settings.network import Network


def line(name: str, change: str = "updated", body: bytes | None = None, **more: Any) -> bytes:
    """Return a line that tells of a change."""
    said: dict[str, Any] = {"uri": f"https://h/{name}", "change": change, **more}
    if body is not None:
        said |= {"length": len(body), "hash": f"sha-256:{hashlib.sha256(body).hexdigest()}"}
    return json.dumps(said).encode() + b"\n"


def names(told: Iterable[ChangeBatch]) -> list[str]:
    """Return the names of the resources that were told of, in order."""
    return [change.uri.removeprefix("https://h/") for lot in told for change in lot.changes]


def omissions(told: Iterable[ChangeBatch]) -> list[tuple[str, str]]:
    """Return what was left out, and why."""
    return [(omission.name, omission.reason) for lot in told for omission in lot.omissions]


def options(address: str, clock: Clock | None = None, /, **values: str) -> AccountOptions:
    """Return what an account is opened with: the real network, and the real clock by default."""
    clock = clock or SystemClock()
    return AccountOptions(
        address=address,
        base_uri="https://h/",
        values=values,
        memory="/nonexistent",
        out="/nonexistent",
        clock=clock,
        fetcher=partial(open_fetcher, network=Network(), cancel=CancelToken(clock)),
    )
