"""The documents of Hyrax, the repository software of Samvera: both lists are made when asked for.

Its Change List has each work once, by its last change, the newest first, and knows no deletions: a
work that is gone is listed no more. So it gets shorter. Times are of whole seconds.
"""

from datetime import datetime

from tests.support.software.software_source import Known, document, link, loc, offering, zulu

DESCRIPTION = ".well-known/resourcesync"
CAPABILITY_LIST = "capabilitylist"
_KINDS = {True: "created", False: "updated"}


class Hyrax:
    def __init__(self) -> None:
        self._began: datetime | None = None

    def documents(self, known: Known) -> dict[str, bytes]:
        self._began = began = self._began or known.now
        up = link("up", CAPABILITY_LIST)
        modified = {uri: known.modified(uri) or began for uri in known.contents}
        created = {event.uri for event in known.events if event.change == "created"}
        newest_first = sorted(modified, key=lambda uri: modified[uri], reverse=True)
        start = min(modified.values(), default=began)
        return {
            DESCRIPTION: offering(
                'capability="description"', links=up, capabilitylist=CAPABILITY_LIST
            ),
            CAPABILITY_LIST: offering(
                'capability="capabilitylist"',
                links=link("up", DESCRIPTION),
                resourcelist="resourcelist",
                changelist="changelist",
            ),
            "resourcelist": document(
                f'capability="resourcelist" at="{zulu(known.now)}"',
                [loc(uri, lastmod=modified[uri]) for uri in modified],
                links=up,
            ),
            "changelist": document(
                f'capability="changelist" from="{zulu(start)}"',
                [
                    loc(uri, f'change="{_KINDS[uri in created]}"', modified[uri])
                    for uri in newest_first
                ],
                links=up,
            ),
        }
