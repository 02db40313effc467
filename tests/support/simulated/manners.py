"""Manners of the server of a Source: what its answers are, beside what its lists tell.

Its Resource List may be an index that is rewritten between two requests, or made at each; some
answers come from an older replica, or are cut; its clock need not be that of its lists.
"""

import hashlib
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Final, Literal

from msgspec import structs

from resourcesync.model.timestamps import format_w3c
from resourcesync.ports import FetchRequest
from tests.support.documents.written import written
from tests.support.in_memory import ManualClock
from tests.support.worlds.loose_source import CLOCKS, FOLDER, OFF
from tests.support.worlds.network import Answer, Serve

_LIST: Final = f"{FOLDER}resourcelist.xml"
_PART: Final = re.compile(re.escape(FOLDER) + r"resourcelist-([12])\.xml")
_AT: Final = re.compile(r' at="([^"]*)"')
_DATE: Final = re.compile("<lastmod>[^<]*</lastmod>")
_HASH: Final = re.compile('sha-256:[0-9a-f]{64}" length="[0-9]+')


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    # what the index of the Resource List tells of its two parts; empty: it has none
    parts: Literal["", "bare", "lastmod", "at", "hash"] = ""
    made: bool = False  # whether the index and each part are made when they are requested
    replica: float = 0  # how often an older replica answers
    date: float | None = None  # seconds by which its dates are ahead; `None`: it gives none
    cut: float = 0  # how often the beginning or the end of a body is missing
    # whether some resources are listed twice, by the first entry as they were
    duplicates: bool = False


def manners_of(luck: random.Random) -> Manners:
    if luck.random() < 0.5:
        return Manners()
    parts = luck.choice(("", "", "bare", "lastmod", "at", "hash"))
    made = bool(parts) and luck.random() < 0.3
    return Manners(
        parts=parts,  # type: ignore[arg-type]  # one of these
        made=made,
        replica=0 if made else luck.choice((0, 0, 0.1, 0.5)),  # nothing tells that it is old
        date=luck.choice((None, 0, *CLOCKS)),
        cut=luck.choice((0, 0, 0, 0.1)),
        duplicates=luck.random() < 0.2 and "duplicates" not in OFF,
    )


class ServerWithManners:
    def __init__(
        self, manners: Manners, clock: ManualClock, luck: random.Random, *, ahead: float = 0
    ) -> None:
        self.manners = manners
        self.replica: Mapping[str, bytes] = {}
        # A list is written again between two requests, and an older replica or a cut list was sent.
        # Two readings in a row that both lack what moves between parts would prove too much.
        self.is_rewriting = self.is_lying = False
        self.by_replica: set[str] = set()
        self._clock, self._luck, self._ahead = clock, luck, timedelta(seconds=ahead)
        self._list, self._at, self._shift = "", "", 0

    def route(self, request: FetchRequest, serve: Serve) -> Answer | Exception:
        part = _PART.fullmatch(request.uri) if self.manners.parts else None
        uri = _LIST if part else request.uri
        answer = self._answer(structs.replace(request, uri=uri), serve)
        if not isinstance(answer, Answer) or answer.status != 200:
            return answer
        if uri == _LIST:
            answer = replace(answer, body=self._resource_list(answer.body.decode(), part).encode())
        if self._luck.random() < self.manners.cut:
            self.is_lying |= request.uri.endswith(".xml")
            place = self._luck.randrange(len(answer.body) + 1)
            kept = slice(place) if self._luck.random() < 0.5 else slice(place, None)
            answer = replace(answer, body=answer.body[kept])
        return self._dated(answer)

    def _answer(self, request: FetchRequest, serve: Serve) -> Answer | Exception:
        if not self.replica or self._luck.random() >= self.manners.replica:
            return serve(request)
        self.is_lying |= request.uri.endswith(".xml")
        self.by_replica.add(request.uri)
        body = self.replica.get(request.uri)
        return Answer(status=404) if body is None else Answer(body=body)

    def _dated(self, answer: Answer) -> Answer:
        if self.manners.date is None:
            return answer
        ahead, headers = timedelta(seconds=self.manners.date), dict(answer.headers)
        moments = {"date": self._clock.now().replace(microsecond=0)}
        if "last-modified" in headers:  # by the same clock
            moments["last-modified"] = parsedate_to_datetime(headers["last-modified"])
        for name, moment in moments.items():
            headers[name] = format_datetime(moment + ahead, usegmt=True)
        return replace(answer, headers=headers)

    def _resource_list(self, text: str, part: re.Match[str] | None) -> str:
        if self.manners.duplicates:
            text = _doubled(text)
        if not self.manners.parts:
            return text
        if text != self._list:
            found = _AT.search(text)
            self._list, self._at, self._shift = text, found[1] if found else "", 0
        if self.manners.made:
            self._at = self._now()
        first, second = self._parts()
        answer = self._index(first, second) if part is None else first if part[1] == "1" else second
        if self.is_rewriting and self._luck.random() < 0.7:
            self._clock.advance(seconds=self._luck.choice((0.01, 1.5)))
            self._at, self._shift = self._now(), self._luck.choice((-1, 0, 1))
        return answer

    def _now(self) -> str:
        return format_w3c(self._clock.now() + self._ahead)

    def _parts(self) -> tuple[str, str]:
        entries = [line for line in self._list.split("\n") if line.startswith("<url>")]
        middle = max(0, len(entries) // 2 + self._shift)
        head = f'<rs:md capability="resourcelist" at="{self._at}"/>'
        return written(head, "".join(entries[:middle])), written(head, "".join(entries[middle:]))

    def _index(self, *parts: str) -> str:
        children = (
            f"<sitemap><loc>{FOLDER}resourcelist-{number}.xml</loc>{self._announced(part)}</sitemap>"
            for number, part in enumerate(parts, 1)
        )
        head = f'<rs:md capability="resourcelist" at="{self._at}"/>'
        return written(head, "".join(children), "sitemapindex")

    def _announced(self, part: str) -> str:
        match self.manners.parts:
            case "lastmod":
                return f"<lastmod>{self._at}</lastmod>"
            case "at":
                return f'<rs:md at="{self._at}"/>'
            case "hash":
                digest = hashlib.sha256(part.encode()).hexdigest()
                return f'<rs:md hash="sha-256:{digest}" length="{len(part)}"/>'
            case _:
                return ""


def _doubled(text: str) -> str:
    """Return a list whose every third entry has another one before it, older or with a fragment."""
    lines = []
    for number, line in enumerate(text.split("\n")):
        if line.startswith("<url>") and number % 3 == 0:
            older = _DATE.sub("<lastmod>2020-01-01</lastmod>", line)
            is_dated = older != line
            if is_dated:
                digest = hashlib.sha256(b"older").hexdigest()
                older = _HASH.sub(f'sha-256:{digest}" length="5', older)
            lines.append(older.replace("</loc>", "#part</loc>") if number % 2 else older)
        lines.append(line)
    return "\n".join(lines)
