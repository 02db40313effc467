"""A Source whose Resource List and Change List say different things of one resource."""

from collections.abc import Sequence

from tests.support.documents.written import facts, written
from tests.support.worlds.network import BASE
from tests.support.worlds.published_source import PublishedSource

ONE = "a.html"
"""What the lists differ about."""
OTHERS = {f"{number}.html": f"content of {number}" for number in range(5)}
LISTED_AT = "2026-01-02T00:00:00Z"


class ContradictingSource(PublishedSource):
    """A Source of our own, both lists of which are written anew by hand once it was published."""

    def begin(self) -> None:
        for name, text in {**OTHERS, ONE: "first"}.items():
            self.put(name, text)
        self.publish()
        self.list("2026-01-01T00:00:00Z", "first")
        self.clock.advance(seconds=3 * 86_400)

    def list(self, at: str, listed: str | None, *changes: str) -> None:
        known = {**OTHERS} if listed is None else {**OTHERS, ONE: listed}
        entries = [
            f"<url><loc>{BASE}{name}</loc><rs:md{facts(text)}/></url>"
            for name, text in sorted(known.items())
        ]
        self._write("resourcelist", f'at="{at}"', entries)
        self._write("changelist", 'from="2025-12-30T00:00:00Z"', changes)

    def serve_one(self, text: str | None) -> None:
        if text is None:
            self.remove(ONE)
        else:
            self.put(ONE, text)

    def _write(self, capability: str, more: str, entries: Sequence[str]) -> None:
        text = written(f'<rs:md capability="{capability}" {more}/>', entries)
        self.documents.write(f"resourcesync/{capability}.xml", [text.encode()])


def change(kind: str, text: str = "", time: str = LISTED_AT, name: str = ONE) -> str:
    when = f' datetime="{time}"' if time else ""
    what = "" if kind == "deleted" else facts(text)
    return f'<url><loc>{BASE}{name}</loc><rs:md change="{kind}"{when}{what}/></url>'
