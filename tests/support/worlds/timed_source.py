"""A Source in memory whose documents a test writes, each entry with the times that it wants."""

from datetime import UTC, datetime

from resourcesync.ports import FetchRequest
from tests.support.documents.packages import Forged, forge
from tests.support.documents.written import facts, written
from tests.support.in_memory import ManualClock
from tests.support.worlds.network import BASE, Answer

_NOT_LISTED = (".xml", ".zip")
_NOW = datetime(2026, 3, 1, tzinfo=UTC)
CAPABILITIES = f"{BASE}capabilities.xml"


def entry(name: str, text: str, lastmod: str, values: str = "") -> str:
    """Return the entry of a resource; ``values`` are further attributes of ``rs:md``."""
    md = f"<rs:md{facts(text)}{values}/>"
    return f"<url><loc>{BASE}{name}</loc><lastmod>{lastmod}</lastmod>{md}</url>"


def updated(name: str, text: str, at: str, lastmod: str = "") -> str:
    return entry(name, text, lastmod or at, f' change="updated" datetime="{at}"')


def deleted(name: str, at: str) -> str:
    return f'<url><loc>{BASE}{name}</loc><rs:md change="deleted" datetime="{at}"/></url>'


class TimedSource:
    entry = CAPABILITIES

    def __init__(self, *capabilities: str) -> None:
        self.clock = ManualClock(_NOW)
        self.served: dict[str, bytes] = {}
        self.offer(*capabilities or ("resourcelist", "changelist"))

    def offer(self, *capabilities: str) -> None:
        pointers = (
            f'<url><loc>{BASE}{name}.xml</loc><rs:md capability="{name}"/></url>'
            for name in capabilities
        )
        self._write("capabilities", "capabilitylist", "", "".join(pointers))

    def has(self, **resources: str) -> None:
        self.served |= {name: text.encode() for name, text in resources.items()}

    def resource_list(self, at: str, *entries: str) -> None:
        self._write("resourcelist", "resourcelist", f' at="{at}"', "".join(entries))

    def change_list(self, *changes: str, interval: str, name: str = "changelist") -> None:
        self._write(name, "changelist", _interval(interval), "".join(changes))

    def change_index(self, **intervals: str) -> None:
        parts = (
            f"<sitemap><loc>{BASE}{name}.xml</loc><rs:md{_interval(interval)}/></sitemap>"
            for name, interval in intervals.items()
        )
        self._write("changelist", "changelist", "", "".join(parts), "sitemapindex")

    def change_dump(self, *changes: str, since: str, packed: dict[str, str]) -> None:
        manifest = _document("changedump-manifest", _interval(since), "".join(changes))
        members = {"manifest.xml": manifest, **packed}.items()
        package = forge(*(Forged(name.encode(), text.encode()) for name, text in members))
        self.served["package.zip"] = package
        values = f'type="application/zip"{_interval(since)} length="{len(package)}"'
        pointer = f"<url><loc>{BASE}package.zip</loc><rs:md {values}/></url>"
        self._write("changedump", "changedump", _interval(since), pointer)

    def contents(self) -> dict[str, bytes]:
        return {
            BASE + name: body
            for name, body in self.served.items()
            if not name.endswith(_NOT_LISTED)
        }

    def serve(self, request: FetchRequest) -> Answer | Exception:
        body = self.served.get(request.uri.removeprefix(BASE))
        return Answer(status=404) if body is None else Answer(body=body)

    def _write(
        self, name: str, capability: str, values: str, entries: str, tag: str = "urlset"
    ) -> None:
        self.served[f"{name}.xml"] = _document(capability, values, entries, tag).encode()


def _document(capability: str, values: str, entries: str, tag: str = "urlset") -> str:
    head = f'<rs:md capability="{capability}"{values}/>'
    if capability != "capabilitylist":
        head = f'<rs:ln rel="up" href="{CAPABILITIES}"/>{head}'
    return written(head, entries, tag)


def _interval(interval: str) -> str:
    ends = zip(("from", "until"), interval.split(), strict=False)
    return "".join(f' {key}="{end}"' for key, end in ends)
