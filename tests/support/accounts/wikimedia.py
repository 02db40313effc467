"""What the tests of event streams share: events of a wiki, and what was told of them."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from resourcesync.adapters.system import SystemClock
from resourcesync.app.fetchers import open_fetcher
from resourcesync.ports import CancelToken
from resourcesync.ports.accounts import AccountOptions, ChangeBatch
from resourcesync.settings.mirror import Network

LONG_AGO: Final = datetime(2026, 1, 2, tzinfo=UTC)
"""The time of an event, unless another one is given: no reader takes it for the present."""


def event(name: str, kind: str = "edit", moment: datetime = LONG_AGO, **more: Any) -> bytes:
    said: dict[str, Any] = {
        "meta": {
            "uri": f"https://h/{name}",
            "dt": moment.isoformat().replace("+00:00", "Z"),
            "domain": "h",
        },
        "type": kind,
        "title": name,
        "namespace": 0,
        "wiki": "enwiki",
        **more,
    }
    if kind == "delete":
        said |= {"type": "log", "log_type": "delete", "log_action": "delete"}
    return json.dumps(said).encode()


def names(told: Iterable[ChangeBatch]) -> list[str]:
    return [change.uri.removeprefix("https://h/") for lot in told for change in lot.changes]


def omissions(told: Iterable[ChangeBatch]) -> list[tuple[str, str]]:
    return [(omission.name, omission.reason) for lot in told for omission in lot.omissions]


def options(address: str, /, **values: str) -> AccountOptions:
    clock = SystemClock()
    return AccountOptions(
        address=address,
        base_uri="https://h/",
        values=values,
        memory="/nonexistent",
        out="/nonexistent",
        clock=clock,
        fetcher=partial(open_fetcher, network=Network(), cancel=CancelToken(clock)),
    )
