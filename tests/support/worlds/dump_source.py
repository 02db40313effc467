"""A Source with lists and dumps that say what a test wants."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from resourcesync.ports import FetchRequest
from tests.support.documents.packages import Forged, forge, tarball
from tests.support.documents.text import document
from tests.support.documents.written import sha256
from tests.support.in_memory import ManualClock
from tests.support.worlds.network import BASE, Answer

AT = "2026-01-01T00:00:00Z"
MODIFIED = "2025-12-01T00:00:00Z"


@dataclass(frozen=True, kw_only=True)
class Told:
    """One entry of a list or of a manifest, and what a package really holds for it."""

    name: str
    data: bytes = b""
    hash: str | None = None
    length: int | None = None
    lastmod: str = MODIFIED
    change: str = ""
    time: str = ""
    path: str | None = None
    packed: bytes | None = None
    type: str = ""
    base: str = BASE

    def row(self, *, packed: bool = False) -> str:
        """The entry as text; in a manifest with its path."""
        digest = sha256(self.data) if self.hash is None else self.hash
        length = len(self.data) if self.length is None else self.length
        says = {
            "change": self.change,
            "datetime": self.time,
            "hash": "" if self.change == "deleted" else digest,
            "length": "" if length < 0 or self.change == "deleted" else str(length),
            "path": f"/{self.member}" if packed and self.change != "deleted" else "",
            "type": self.type,
        }
        md = "".join(f' {name}="{escape(value)}"' for name, value in says.items() if value)
        lastmod = f"<lastmod>{self.lastmod}</lastmod>" if self.lastmod else ""
        return f"<url><loc>{escape(self.base + self.name)}</loc>{lastmod}<rs:md{md}/></url>"

    @property
    def member(self) -> str:
        return self.name if self.path is None else self.path

    def wrong(self, **says: Any) -> "Told":
        return replace(self, **says)


def rows(*told: Told, packed: bool = False) -> list[str]:
    return [told.row(packed=packed) for told in told]


def md(capability: str, *, at: str = "", from_: str = "", until: str = "") -> str:
    times = {"at": at, "from": from_, "until": until}
    more = "".join(f' {name}="{value}"' for name, value in times.items() if value)
    return f'<rs:md capability="{capability}"{more}/>'


@dataclass(frozen=True, kw_only=True)
class Packed:
    """A package: what its dump says of it, and its bytes."""

    name: str
    body: bytes
    length: int | None = None
    hash: str = ""
    contents: str = ""
    at: str = ""
    from_: str = ""
    until: str = ""
    base: str = BASE

    def row(self) -> str:
        length = len(self.body) if self.length is None else self.length
        says = {
            "length": "" if length < 0 else str(length),
            "hash": self.hash,
            "at": self.at,
            "from": self.from_,
            "until": self.until,
        }
        more = "".join(f' {name}="{value}"' for name, value in says.items() if value)
        link = f'<rs:ln rel="contents" href="{self.base}{self.contents}"/>' if self.contents else ""
        md = f'<rs:md type="application/zip"{more}/>'
        return f"<url><loc>{self.base}{self.name}</loc>{md}{link}</url>"


def manifest_of(
    told: Sequence[Told], *, at: str = AT, from_: str = "", until: str = "", kind: str = ""
) -> bytes:
    kind = kind or ("changedump-manifest" if from_ else "resourcedump-manifest")
    moment = "" if from_ else at
    return document(*rows(*told, packed=True), md=md(kind, at=moment, from_=from_, until=until))


def zipped(told: Sequence[Told], *, missing: Sequence[str] = (), **root: Any) -> bytes:
    """A ZIP whose members are what each entry says is packed, else its data."""
    files = {
        told.member: told.data if told.packed is None else told.packed
        for told in told
        if told.change != "deleted" and told.name not in missing
    }
    members = [Forged(name.encode(), data, method=8) for name, data in files.items()]
    return forge(Forged(b"manifest.xml", manifest_of(told, **root), method=8), *members)


def tarred(told: Sequence[Told], mode: str = "w") -> bytes:
    files = [(told.member, told.data if told.packed is None else told.packed) for told in told]
    return tarball(("manifest.xml", manifest_of(told)), *files, mode=mode)


class DumpSource:
    entry = BASE

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.resources: dict[str, bytes] = {}  # what a mirror in sync has, by URI
        self.served: dict[str, Answer] = {}  # what its server answers, by URI
        self.capabilities: dict[str, str] = {}  # its documents by their capabilities
        self.describe()

    def contents(self) -> dict[str, bytes]:
        return self.resources

    def serve(self, request: FetchRequest) -> Answer | Exception:
        return self.served.get(request.uri, Answer(status=404))

    def say(self, name: str, body: bytes, etag: str = "") -> None:
        headers = {"etag": etag} if etag else {}
        self.served[BASE + name] = Answer(body=body, headers=headers)

    def describe(self) -> None:
        told = [
            f'<url><loc>{BASE}{name}</loc><rs:md capability="{of}"/></url>'
            for of, name in self.capabilities.items()
        ]
        self.say("capabilities.xml", document(*told, md=md("capabilitylist")))
        described = (
            f'<url><loc>{BASE}capabilities.xml</loc><rs:md capability="capabilitylist"/></url>'
        )
        self.say(".well-known/resourcesync", document(described, md=md("description")))

    def offer(self, capability: str, body: bytes, name: str = "") -> None:
        name = name or f"{capability}.xml"
        self.capabilities[capability] = name
        self.say(name, body)
        self.describe()

    def put_all(self, told: Sequence[Told]) -> None:
        for item in told:
            self.resources[BASE + item.name] = item.data
            self.say(item.name, item.data)

    def publish(self, told: Sequence[Told]) -> None:
        self.put_all(told)
        self.list_resources(told)

    def has(self, told: Sequence[Told]) -> None:
        """Have these resources, which cannot be asked for: their bytes come in packages."""
        self.resources |= {BASE + item.name: item.data for item in told}

    def has_only(self, told: Sequence[Told]) -> None:
        self.resources = {}
        self.has(told)

    def list_resources(self, told: Sequence[Told], at: str = AT) -> None:
        self.offer("resourcelist", document(*rows(*told), md=md("resourcelist", at=at)))

    def list_changes(self, told: Sequence[Told], from_: str = AT) -> None:
        self.offer("changelist", document(*rows(*told), md=md("changelist", from_=from_)))

    def dump(self, *packages: Packed, at: str = AT) -> None:
        self._dump("resourcedump", md("resourcedump", at=at), packages)

    def dump_changes(self, *packages: Packed, from_: str = AT, until: str = "") -> None:
        self._dump("changedump", md("changedump", from_=from_, until=until), packages)

    def _dump(self, capability: str, root: str, packages: Sequence[Packed]) -> None:
        for package in packages:
            self.say(package.name, package.body)
        self.offer(capability, document(*(package.row() for package in packages), md=root))


def many(count: int) -> list[Told]:
    return [Told(name=f"r/{n:05}", data=f"{n} ".encode() * 10) for n in range(count)]


def changed(told: list[Told], minute: int) -> list[Told]:
    moment = f"2026-01-01T00:{minute:02}:00Z"
    return [
        told.wrong(
            data=f"{minute}".encode() + told.data, change="updated", time=moment, lastmod=moment
        )
        for told in told
    ]
