"""A Source in the form of the founding documents: Change Lists that give no interval."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

from resourcesync.model.timestamps import format_w3c
from resourcesync.ports import FetchRequest
from tests.support.documents.written import facts, written
from tests.support.in_memory import ManualClock
from tests.support.worlds.network import BASE, Answer

WEEK: Final = 7
"""Days between two Resource Lists."""

Form = Literal["daily", "window", "newest-first"]
FORMS: Final[tuple[Form, ...]] = ("daily", "window", "newest-first")


@dataclass(frozen=True, kw_only=True)
class _Change:
    name: str
    kind: str
    text: str
    moment: str


class DailySource:
    """A Source that writes its lists at midnight, as cron does."""

    entry = f"{BASE}capabilitylist.xml"

    def __init__(
        self,
        form: Form = "daily",
        *,
        own_times: bool = False,
        archive: bool = False,
        window: int = 12,
    ) -> None:
        self.clock = ManualClock()
        self.files: dict[str, str] = {}
        self.days = 0
        self._form = form
        self._own_times = own_times
        self._compares = form == "daily" and not own_times
        self._before: dict[str, tuple[str, str]] = {}
        self._archive = archive
        self._window = window
        self._changes: list[_Change] = []
        self._written: dict[str, str] = {}
        self._archived: list[str] = []
        self._times: dict[str, str] = {}
        for number in range(6):
            self.put(f"{number}.txt", f"{number} at first")
        self.end_day()

    def _now(self) -> str:
        return format_w3c(self.clock.now())

    def put(self, name: str, text: str) -> None:
        kind = "updated" if name in self.files else "created"
        self.files[name] = text
        self._record(name, kind, text)

    def remove(self, name: str) -> None:
        del self.files[name]
        self._record(name, "deleted", "")
        del self._times[name]

    def _record(self, name: str, kind: str, text: str) -> None:
        self.clock.advance(seconds=60)
        self._times[name] = self._now()
        self._changes.append(_Change(name=name, kind=kind, text=text, moment=self._now()))

    def end_day(self) -> None:
        """Let it be midnight, and write the lists; each seventh day the Resource List, too."""
        now = self.clock.now()
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        self.clock.advance(seconds=(midnight - now).total_seconds())
        if self.days % WEEK == 0:
            self._write_resource_list()
        self.days += 1
        self.clock.advance(seconds=300)
        if self._compares:
            self._write_change_list(self._compare())
        elif self._form == "daily":
            self._write_change_list(sorted(self._changes, key=lambda change: change.name))
            self._changes = []
        else:
            recent = self._changes[-self._window :]
            self._write_change_list(recent if self._form == "window" else recent[::-1])

    def _compare(self) -> list[_Change]:
        before = self._before
        after = {name: (text, self._times[name]) for name, text in self.files.items()}
        self._before, changes = after, list[_Change]()
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                kind = (
                    "deleted" if name not in after else "updated" if name in before else "created"
                )
                text, moment = after.get(name) or before[name]
                changes.append(_Change(name=name, kind=kind, text=text, moment=moment))
        return changes

    def contents(self) -> dict[str, bytes]:
        return {BASE + name: text.encode() for name, text in self.files.items()}

    def saved(self) -> dict[str, bytes]:
        """Return all that can be requested, by URI, as a replica has it."""
        documents = {BASE + name: text.encode() for name, text in self._written.items()}
        return self.contents() | documents

    def written(self, name: str) -> str:
        return self._written[name]

    def asked_files(self, asked: list[str]) -> list[str]:
        return sorted(name for name in asked if name not in self._written)

    def serve(self, request: FetchRequest) -> Answer | Exception:
        name = request.uri.removeprefix(BASE)
        text = self._written.get(name, self.files.get(name))
        return Answer(status=404) if text is None else Answer(body=text.encode())

    def _write_resource_list(self) -> None:
        entries = (
            f"<url><loc>{BASE}{name}</loc><lastmod>{self._times[name]}</lastmod>"
            f"<rs:md{facts(text)}/></url>"
            for name, text in sorted(self.files.items())
        )
        self._write("resourcelist.xml", f'capability="resourcelist" at="{self._now()}"', entries)

    def _write_change_list(self, changes: list[_Change]) -> None:
        self._write("changelist.xml", 'capability="changelist"', map(self._entry, changes))
        kinds = ["resourcelist", "changelist"]
        if self._archive:
            name = f"changes-{self.days}.xml"
            self._archived.append(name)
            self._written[name] = self._written["changelist.xml"]
            parts = (f"<url><loc>{BASE}{each}</loc></url>" for each in self._archived)
            self._write("changelist-archive.xml", 'capability="changelist-archive"', parts)
            kinds.append("changelist-archive")
        pointers = (
            f'<url><loc>{BASE}{kind}.xml</loc><rs:md capability="{kind}"/></url>' for kind in kinds
        )
        self._write("capabilitylist.xml", 'capability="capabilitylist"', pointers)

    def _entry(self, change: _Change) -> str:
        own = f' datetime="{change.moment}"' if self._own_times else ""
        of = facts(change.text) if change.text else ""
        lastmod = "" if self._own_times else f"<lastmod>{change.moment}</lastmod>"
        return (
            f"<url><loc>{BASE}{change.name}</loc>{lastmod}"
            f'<rs:md change="{change.kind}"{own}{of}/></url>'
        )

    def _write(self, name: str, values: str, entries: Iterable[str]) -> None:
        self._written[name] = written(f"<rs:md {values}/>", entries)
