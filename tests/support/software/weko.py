"""The documents of WEKO3, the repository software of Japan's NII, as it writes them for each day.

What it calls a Change List is an index of one list for each day, though its root is ``urlset``.
The lists of the days tell no interval of their own; the last one ends when the index is asked for.
"""

from datetime import datetime, timedelta

from tests.support.software.software_source import (
    DAY,
    Known,
    document,
    isoformat,
    link,
    loc,
    midnight,
    offering,
    points_to,
)

_UP = link("up", "resync/capability.xml")
INDEX = "resync/33/changelist.xml"


class Weko:
    def __init__(self, *, ahead: timedelta = timedelta(0)) -> None:
        self._ahead = ahead
        self._published: datetime | None = None

    def documents(self, known: Known) -> dict[str, bytes]:
        self._published = self._published or midnight(known.now) - DAY
        return {
            ".well-known/resourcesync": offering(
                'capability="description"', capability="resync/capability.xml"
            ),
            "resync/capability.xml": offering(
                'capability="capabilitylist"',
                links=link("up", ".well-known/resourcesync"),
                resourcelist="resync/33/resourcelist.xml",
                changelist=INDEX,
            ),
            "resync/33/resourcelist.xml": document(
                f'at="{isoformat(known.now)}" capability="resourcelist"',
                [loc(uri, lastmod=known.modified(uri)) for uri in known.contents],
                links=_UP,
            ),
            **self._change_lists(known, self._published),
        }

    def _change_lists(self, known: Known, day: datetime) -> dict[str, bytes]:
        end, parts, lists = known.now + self._ahead, list[str](), dict[str, bytes]()
        while day < end:
            path, until = f"resync/33/{day:%Y%m%d}/changelist.xml", min(day + DAY, end)
            interval = f'from="{isoformat(day)}" until="{isoformat(until)}"'
            parts.append(points_to(path, f'capability="changelist" {interval}'))
            lists[path] = document(
                'capability="changelist"',
                [
                    loc(
                        event.uri,
                        f'at="{isoformat(event.time)}" change="{event.change}"',
                        event.time,
                    )
                    for event in known.between(day, day + DAY)
                ],
                links=_UP + link("index", INDEX),
            )
            day = until
        return lists | {INDEX: document('capability="changelist"', parts, links=_UP)}
