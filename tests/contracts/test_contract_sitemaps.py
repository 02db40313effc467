"""The account of sitemaps keeps what every account must, and measures what it is told to."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.backends.sitemap import open_account
from resourcesync.backends.sitemap.measurements import MeasurementStore
from resourcesync.documents.reader import read_stream
from resourcesync.errors import (
    ConfigurationError,
    DocumentError,
    ResourceSyncError,
    StateError,
)
from resourcesync.ports import FetchRequest
from resourcesync.ports.accounts import AccountOptions, ResourceAccount, TolerantAccount
from resourcesync.testing import AccountSuite
from tests.support.documents.sitemap_forms import (
    CANONICAL,
    FORMS,
    PAGES,
    URI,
    WrittenSitemap,
    rss,
)
from tests.support.worlds.network import Answer, MemoryFetcher
from tests.support.worlds.site_maps import HOME, MappedSite, index, urlset


def options(
    folder: Path, fetcher: MemoryFetcher, address: str = f"{HOME}sitemap.xml", **values: str
) -> AccountOptions:
    return AccountOptions(
        address=f"sitemap:{address}",
        base_uri="https://mine.example/",
        memory=str(folder / "memory"),
        out=str(folder / "out"),
        clock=SystemClock(),
        fetcher=lambda _: nullcontext(fetcher),
        values=values,
    )


class TestSitemapAccount(AccountSuite):
    has_changes = False
    has_lengths = False
    has_digests = False
    measure = ""
    site: MappedSite

    @pytest.fixture
    def account(self, tmp_path: Path) -> Iterator[ResourceAccount]:
        self.site = MappedSite()
        values = {"measure": self.measure} if self.measure else {}
        with open_account(options(tmp_path, self.site.fetcher, **values)) as account:
            yield account

    def put(self, name: str, content: bytes) -> str:
        self.site.pages[name] = content
        return HOME + name

    def remove(self, name: str) -> None:
        del self.site.pages[name]

    def outage(self) -> AbstractContextManager[None]:
        return self.site.fails(after=0)

    def partial_failure(self) -> AbstractContextManager[None]:
        return self.site.fails(after=2)


class TestMeasuredSitemapAccount(TestSitemapAccount):
    has_lengths = True
    has_digests = True
    measure = "get"

    def partial_failure(self) -> AbstractContextManager[None]:
        return self.site.fails(after=7)  # all sitemaps were read, no page was

    def test_only_what_is_dated_anew_or_not_at_all_is_asked_again(
        self, account: ResourceAccount
    ) -> None:
        for name in ("dated", "changed", "undated", "gone"):
            self.put(name, b"first")
            self.site.dates[name] = "" if name == "undated" else "2026-01-01"
        first = {resource.uri: resource.digests for resource in account.resources()}
        self.site.dates["changed"] = "2026-01-02"
        for name in ("dated", "changed", "undated"):
            self.put(name, b"second")
        del self.site.pages["gone"]
        self.site.fetcher.asked.clear()
        second = {resource.uri: resource.digests for resource in account.resources()}
        asked = self.site.fetcher.asked
        assert asked[-2:] == [f"{HOME}changed", f"{HOME}undated"]
        assert len(asked) == 4
        assert first.keys() - second.keys() == {f"{HOME}gone"}
        assert [uri for uri in second if second[uri] != first[uri]] == asked[-2:]
        assert list(account.resources()) == list(account.resources())

    def test_a_page_that_fails_alone_is_told_as_far_as_it_is_known(
        self, account: ResourceAccount
    ) -> None:
        for number in range(30):
            self.put(f"{number:02}", b"page")
        told = list(account.resources())
        self.site.dates["07"] = "2026-02-02"
        serve = self.site.fetcher.serve
        self.site.fetcher.serve = lambda request: (
            Answer(status=503) if request.uri.endswith(("/07", "/08", "/09")) else serve(request)
        )
        again = list(account.resources())
        assert [resource.uri for resource in again] == [resource.uri for resource in told]
        assert [resource.uri for resource in again if not resource.digests] == [f"{HOME}07"]

    def test_a_page_that_is_listed_and_not_there_is_left_out(
        self, account: ResourceAccount
    ) -> None:
        self.put("here", b"1")
        self.put("gone", b"1")
        serve = self.site.fetcher.serve
        self.site.fetcher.serve = lambda request: (
            Answer(status=404) if request.uri.endswith("/gone") else serve(request)
        )
        assert [resource.uri for resource in account.resources()] == [f"{HOME}here"]

    def test_pages_elsewhere_are_told_as_listed_and_not_asked(
        self, account: ResourceAccount
    ) -> None:
        listed = urlset(("https://other.example/x", "2026-01-01"))
        self.site.fetcher.serve = lambda _: Answer(body=listed)
        (found,) = account.resources()
        assert (found.uri, found.digests) == ("https://other.example/x", ())
        assert self.site.fetcher.asked == [f"{HOME}sitemap.xml"]

    def test_the_date_of_a_page_that_is_listed_without_is_its_own(
        self, account: ResourceAccount
    ) -> None:
        self.put("a", b"1")
        serve = self.site.fetcher.serve
        dates = {"last-modified": "Thu, 01 Jan 2026 10:00:00 GMT"}

        def dated(request: FetchRequest) -> Answer | Exception:
            answer = serve(request)
            return replace(answer, headers=dates) if isinstance(answer, Answer) else answer

        self.site.fetcher.serve = dated
        assert [resource.lastmod for resource in account.resources()] == [
            datetime(2026, 1, 1, 10, tzinfo=UTC)
        ]
        for wrong in ("yesterday", "Thu, 01 Jan 2026 10:00:00 -0000"):
            dates["last-modified"] = wrong
            self.put("a", wrong.encode())
            assert [resource.lastmod for resource in account.resources()] == [None]

    def test_a_page_whose_day_is_not_over_is_asked_with_a_condition(
        self, account: ResourceAccount
    ) -> None:
        today, long_ago = datetime.now(UTC), datetime(2026, 1, 1, tzinfo=UTC)
        for name, day in (("a", today), ("b", long_ago)):
            self.put(name, b"first")
            self.site.dates[name] = f"{day:%Y-%m-%d}"
        first = list(account.resources())
        self.site.fetcher.asked.clear()
        assert list(account.resources()) == first
        assert self.site.fetcher.asked[2:] == [f"{HOME}a"]
        self.put("a", b"second")
        second = list(account.resources())
        assert [resource.uri for resource in second if resource not in first] == [f"{HOME}a"]

    def test_a_page_that_changed_in_the_second_of_its_answer_is_asked_without_a_condition(
        self, account: ResourceAccount
    ) -> None:
        self.put("a", b"1")
        serve = self.site.fetcher.serve
        moment = "Thu, 01 Jan 2026 10:00:00 GMT"
        dates = {"last-modified": moment, "date": moment, "etag": ""}
        conditions = []

        def dated(request: FetchRequest) -> Answer | Exception:
            answer = serve(request)
            assert isinstance(answer, Answer)
            if request.uri == f"{HOME}a":
                conditions.append(request.last_modified)
                answer = replace(answer, headers=dates)
            return answer

        self.site.fetcher.serve = dated
        list(account.resources())
        dates["date"] = "Thu, 01 Jan 2026 10:00:01 GMT"
        assert [resource.lastmod for resource in account.resources()] == [
            datetime(2026, 1, 1, 10, tzinfo=UTC)
        ]
        list(account.resources())
        assert conditions == ["", "", moment]

    def test_what_was_measured_without_a_digest_is_read_for_one(
        self, account: ResourceAccount, tmp_path: Path
    ) -> None:
        for name in "ab":
            self.put(name, b"1")
            self.site.dates[name] = "2026-01-01"
        with open_account(options(tmp_path, self.site.fetcher, measure="head")) as heads:
            assert [resource.digests for resource in heads.resources()] == [(), ()]
        assert all(resource.digests for resource in account.resources())
        self.remove("b")
        assert len(list(account.resources())) == 1
        with MeasurementStore(tmp_path / "memory") as memory:
            assert memory.find([f"{HOME}a", f"{HOME}b"]).keys() == {f"{HOME}a"}

    def test_a_damaged_memory_is_told(self, account: ResourceAccount, tmp_path: Path) -> None:
        self.put("here", b"1")
        (tmp_path / "memory").mkdir()
        (tmp_path / "memory" / "measured.db").write_bytes(b"no database" * 1_000)
        with pytest.raises(StateError, match="damaged"):
            list(account.resources())


PAGE = b"<!DOCTYPE html><html><body>Sorry</body></html>"
GOOD = urlset((f"{HOME}a", "2026-01-01"), (f"{HOME}b", ""))


def told(tmp_path: Path, answers: dict[str, bytes], address: str) -> list[str]:
    def serve(request: object) -> Answer:
        name = getattr(request, "uri", "").removeprefix(HOME)
        return Answer(body=answers[name]) if name in answers else Answer(status=404)

    with open_account(options(tmp_path, MemoryFetcher(serve), address)) as account:
        return [resource.uri for resource in account.resources()]


@pytest.mark.parametrize(
    "answers",
    [
        {"sitemap.xml": GOOD[:-12]},
        {"sitemap.xml": PAGE},
        {"sitemap.xml": b""},
        {},
        {"sitemap.xml": index(f"{HOME}1.xml", f"{HOME}2.xml"), "1.xml": GOOD},
        {"sitemap.xml": index(f"{HOME}1.xml", f"{HOME}2.xml"), "1.xml": GOOD, "2.xml": PAGE},
        {"sitemap.xml": index(f"{HOME}1.xml"), "1.xml": index(f"{HOME}2.xml")},
        {"sitemap.xml": index(f"{HOME}1.xml", ""), "1.xml": GOOD},
    ],
    ids=[
        *("cut", "page", "empty", "missing", "part-missing", "part-page", "index-of-indexes"),
        "part-unnamed",
    ],
)
def test_a_sitemap_that_is_not_whole_is_an_error_before_anything_is_told(
    tmp_path: Path, answers: dict[str, bytes]
) -> None:
    with pytest.raises(ResourceSyncError) as raised:
        told(tmp_path, answers, f"{HOME}sitemap.xml")
    assert raised.value.message


def test_all_sitemaps_that_robots_txt_names_count_and_each_uri_once(tmp_path: Path) -> None:
    other = urlset((f"{HOME}c", ""), (f"{HOME}a", "2026-01-03"))
    robots = f"Sitemap: {HOME}1.xml\nSitemap: {HOME}all.xml\nSitemap: {HOME}2.xml".encode()
    listed = index(f"{HOME}1.xml", f"{HOME}2.xml")
    answers = {"robots.txt": robots, "1.xml": GOOD, "all.xml": listed, "2.xml": other}
    fetcher = MemoryFetcher(lambda request: Answer(body=answers[request.uri.removeprefix(HOME)]))
    with open_account(options(tmp_path, fetcher, HOME)) as account:
        found = {
            resource.uri.removeprefix(HOME): resource.lastmod for resource in account.resources()
        }
    assert found == {"a": datetime(2026, 1, 3, tzinfo=UTC), "b": None, "c": None}
    assert [name.removeprefix(HOME) for name in fetcher.asked] == list(answers)
    del answers["2.xml"]
    with pytest.raises(ResourceSyncError):
        told(tmp_path, answers, HOME)
    assert told(tmp_path, {"sitemap.xml": GOOD}, HOME) == [f"{HOME}a", f"{HOME}b"]


def read_by(tmp_path: Path, answers: dict[str, bytes], address: str) -> TolerantAccount:
    """Return the account after it was read."""

    def serve(request: FetchRequest) -> Answer:
        name = request.uri.removeprefix(HOME)
        return Answer(body=answers[name]) if name in answers else Answer(status=404)

    with open_account(options(tmp_path, MemoryFetcher(serve), address)) as account:
        assert [resource.uri for resource in account.resources()] == list(PAGES)
        return account


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_a_sitemap_in_any_form_is_read_and_each_leniency_told(
    tmp_path: Path, form: WrittenSitemap
) -> None:
    account = read_by(tmp_path, {"sitemap.xml": form.data}, URI)
    document = read_stream(BytesIO(form.data), uri=URI)
    list(document.entries())

    assert {row["code"]: row["count"] for row in account.leniencies()} == document.tolerated_counts
    assert account.lists_all is document.lists_all


def test_feeds_are_read_where_robots_txt_names_nothing_else(tmp_path: Path) -> None:
    feed = next(form.data for form in FORMS if form.name == "RSS 2.0")
    other = rss("<link>https://site.example/new.html</link>")
    robots = f"Sitemap: {HOME}feed.rss\nSitemap: {HOME}s.txt".encode()
    text = "\n".join((*PAGES, "")).encode()
    answers = {"robots.txt": robots, "feed.rss": other, "s.txt": text}

    account = read_by(tmp_path, answers, HOME)

    assert account.lists_all
    assert {row["code"]: row["uri"] for row in account.leniencies()} == {
        "text-form": f"{HOME}s.txt",
        "feed-unread": f"{HOME}feed.rss",
    }

    answers |= {"feed.rss": feed, "s.txt": rss(f"<link>{PAGES[0]}</link>")}
    assert not read_by(tmp_path, answers, HOME).lists_all


def test_an_index_that_lists_itself_is_read_without_that_entry(tmp_path: Path) -> None:
    answers = {"sitemap.xml": index(URI, f"{HOME}1.xml"), "1.xml": CANONICAL}

    [told] = read_by(tmp_path, answers, URI).leniencies()

    assert (told["code"], told["count"]) == ("index-lists-itself", 1)


def test_a_page_in_the_place_of_a_sitemap_names_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as raised:
        told(tmp_path, {"sitemap.xml": PAGE}, URI)

    assert "open the address in a browser" in raised.value.hint


def test_a_list_of_another_kind_is_refused(tmp_path: Path) -> None:
    changes = GOOD.replace(
        b"<url>",
        b'<rs:md xmlns:rs="http://www.openarchives.org/rs/terms/" capability="changelist"/><url>',
        1,
    )
    with pytest.raises(DocumentError, match="expected a sitemap, got a Change List"):
        told(tmp_path, {"sitemap.xml": changes}, f"{HOME}sitemap.xml")


@pytest.mark.parametrize(
    ("address", "values"),
    [("site.example", {}), (HOME, {"measure": "all"}), (HOME, {"colour": "red"})],
)
def test_what_cannot_work_is_refused_at_once(
    tmp_path: Path, address: str, values: dict[str, str]
) -> None:
    fetcher = MemoryFetcher(lambda _: Answer(status=404))
    with pytest.raises(ConfigurationError):
        open_account(options(tmp_path, fetcher, address, **values)).__enter__()
    assert fetcher.asked == []
