"""A repository, and an account of it without a network: what is asked is answered in memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from resourcesync.errors import SourceUnavailableError
from resourcesync.model.entries import Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Fetcher, FetchRequest
from resourcesync.ports.accounts import AccountOptions
from resourcesync_oai import OaiAccount, open_account
from tests.support.accounts.oai_provider import Item, Provider, Quirks
from tests.support.in_memory import ManualClock
from tests.support.worlds.network import Answer, MemoryFetcher

BASE: Final = "https://rs.example/"
MANY: Final = 11


class HarvestedRepository:
    """A repository, the folder that is published, and what an account told of it so far."""

    def __init__(self, root: Path, quirks: Quirks | None = None, **values: str) -> None:
        self.provider = Provider(quirks)
        self.provider.url = "https://repo.example"
        self.answer: Callable[[dict[str, str]], bytes] = self.provider.answer
        self.root, self.values, self.clock = (
            root,
            values,
            ManualClock(datetime(2026, 6, 1, tzinfo=UTC)),
        )
        self.out = root / "out"
        self.position = ""
        self.told: dict[str, Resource] = {}
        self.fetcher = MemoryFetcher(self._serve)
        self.killed_after: int | None = None
        self.allow_empty = False

    def _serve(self, request: FetchRequest) -> Answer | Exception:
        if self.killed_after is not None:
            self.killed_after -= 1
            if self.killed_after < 0:
                return KeyboardInterrupt()  # type: ignore[return-value] # it is raised
        parts, quirks = urlsplit(request.uri), self.provider.quirks
        if quirks.down:
            return SourceUnavailableError("it does not answer", uri=request.uri)
        if parts.path == "/oai/request":
            if quirks.busy:
                return SourceUnavailableError(
                    "busy", uri=request.uri, status=503, retry_after=quirks.busy.pop(0)
                )
            asked = {key: values[0] for key, values in parse_qs(parts.query).items()}
            return Answer(body=self.answer(asked))
        status, body, media_type, links = self.provider.file(parts.path)
        fields = {"content-length": str(len(body)), "content-type": media_type, "link": links}
        return Answer(status=status, headers=fields)

    @contextmanager
    def open(self) -> Iterator[OaiAccount]:
        @contextmanager
        def fetcher(_uri: str) -> Iterator[Fetcher]:
            yield self.fetcher

        options = AccountOptions(
            address=f"oai:{self.provider.base}",
            base_uri=BASE,
            memory=str(self.root / "memory"),
            out=str(self.out),
            clock=self.clock,
            fetcher=fetcher,
            allow_empty=self.allow_empty,
            values={key.replace("_", "-"): value for key, value in self.values.items()},
        )
        with open_account(options) as account:
            yield account

    def fill(self) -> dict[str, Resource]:
        with self.open() as account:
            position = account.position()
            told = {resource.uri: resource for resource in account.resources()}
            self.position, self.told = position, told
            account.published()
        return self.told

    def follow(self) -> dict[str, Resource | None]:
        news: dict[str, Resource | None] = {}
        with self.open() as account:
            for lot in account.changes(self.position, 0):
                for change in lot.changes:
                    gone = change.kind is ChangeKind.DELETED
                    news[change.uri] = None if gone else change.resource
                self.position = lot.position
            account.published()
        for uri, resource in news.items():
            if resource is None:
                self.told.pop(uri, None)
            else:
                self.told[uri] = resource
        return news

    def files(self) -> dict[str, bytes]:
        return {
            BASE + path.relative_to(self.out).as_posix(): path.read_bytes()
            for path in self.out.rglob("*")
            if path.is_file()
        }

    def metadata(self) -> set[str]:
        return {uri for uri in self.told if uri.startswith(BASE)}

    def titles(self) -> dict[str, str]:
        return {
            uri: body.decode().partition("<dc:title>")[2].partition("</dc:title>")[0]
            for uri, body in self.files().items()
            if "oai_dc" in uri
        }


def titled(
    root: Path, quirks: Quirks | None = None, *, count: int = MANY, **values: str
) -> HarvestedRepository:
    made = HarvestedRepository(root, quirks, **values)
    for number in range(count):
        made.provider.put(Item(local=f"10673/{number}", title=f"Title {number}"))
    return made


def lists(made: HarvestedRepository) -> list[dict[str, str]]:
    return [fields for fields in made.provider.asked if fields["verb"] == "ListRecords"]


def named(value: object) -> str | None:
    if not isinstance(value, Quirks):
        return None
    usual = vars(Quirks())
    return "+".join(key for key, item in vars(value).items() if item != usual[key]) or "sound"


def fill_with_titles(
    made: HarvestedRepository, put: Callable[[str, str], object]
) -> dict[str, str]:
    """Put records on a shelf and harvest them all; return their titles by address."""
    for number in range(MANY):
        put(str(number), f"Title & {number}")
    made.fill()
    expected = {f"{BASE}resource/{at}/oai_dc.xml": f"Title &amp; {at}" for at in range(MANY)}
    assert made.titles() == expected
    return expected
