"""Harvesting repositories, those that break the rules too: what is listed is told, and no less."""

from datetime import timedelta
from pathlib import Path

import pytest

from resourcesync.errors import ConfigurationError
from tests.support.accounts.harvested_repository import BASE, MANY, lists, named, titled
from tests.support.accounts.oai_provider import Item, Quirks, changed


@pytest.mark.parametrize(
    "quirks",
    [
        Quirks(),
        Quirks(page=4, empty_token=False),
        Quirks(page=4, complete_size="3"),
        Quirks(page=4, complete_size="many"),
        Quirks(page=4, same_token=True),
        Quirks(page=4, twice=True),
        Quirks(page=4, empty_pages=True),
        Quirks(page=4, circles=True),
        Quirks(page=4, dying_tokens=[1, 2], silent_tokens=True),
        Quirks(page=4, truncated=[1, 2, 4]),
        Quirks(page=4, busy=[5, 0, 300]),
        Quirks(granularity="YYYY-MM-DD"),
        Quirks(deletions="no"),
        Quirks(deletions="transient"),
        Quirks(ignores_from=True),
        Quirks(refuses_seconds=True),
        Quirks(junk_before=b"\n\n", junk_after=b"<b>Notice</b>"),
        Quirks(earliest="long ago"),
        Quirks(earliest="2030-01-01T00:00:00Z"),
    ],
    ids=named,
)
def test_a_repository_is_harvested_and_followed(tmp_path: Path, quirks: Quirks) -> None:
    made = titled(tmp_path, quirks)
    made.fill()
    expected = {f"{BASE}resource/10673/{at}/oai_dc.xml": f"Title {at}" for at in range(MANY)}
    assert made.titles() == expected
    assert made.metadata() == set(expected)

    made.provider.tick(90_000)
    changed(made.provider, "10673/3", title="Another title")
    made.provider.put(Item(local="10673/new", title="New"))
    made.provider.remove("10673/7")
    made.follow()
    expected[f"{BASE}resource/10673/3/oai_dc.xml"] = "Another title"
    expected[f"{BASE}resource/10673/new/oai_dc.xml"] = "New"
    if quirks.deletions == "no":
        made.fill()  # only a whole list tells that a record is not there
    del expected[f"{BASE}resource/10673/7/oai_dc.xml"]

    assert made.titles() == expected
    assert made.metadata() == set(expected)


@pytest.mark.founding(
    "DSpace: Harvesting", "Metadata is harvested incrementally", "`publish oai:URL`"
)
def test_only_what_changed_is_asked_for_again_and_told(tmp_path: Path) -> None:
    made = titled(tmp_path, overlap="1h")
    made.provider.tick(86_400)
    made.fill()
    made.provider.tick(600)
    changed(made.provider, "10673/3", title="Another title")
    del made.provider.asked[:]

    news = made.follow()

    assert list(news) == [f"{BASE}resource/10673/3/oai_dc.xml"]
    assert lists(made) == [
        {"verb": "ListRecords", "metadataPrefix": "oai_dc", "from": "2026-01-01T23:00:11Z"}
    ]
    assert made.follow() == {}


def test_each_harvest_asks_from_the_one_before(tmp_path: Path) -> None:
    made = titled(tmp_path, overlap="0s")
    made.fill()
    for _ in range(3):
        begin = f"{made.provider.tick(60):%Y-%m-%dT%H:%M:%SZ}"
        made.follow()
        made.follow()
        assert lists(made)[-1]["from"] == begin


def test_of_a_record_that_is_listed_twice_the_later_one_counts(tmp_path: Path) -> None:
    made = titled(tmp_path, count=1)
    moment, _ = made.provider.items["10673/0"]
    old = made.provider.record("oai_dc", "10673/0", moment - timedelta(days=1), None)
    plain = made.provider.records
    made.provider.records = (  # type: ignore[method-assign] # a provider that lists it twice
        lambda arguments: plain(arguments).replace("</ListRecords>", f"{old}</ListRecords>")
    )

    assert len(made.fill()) == 1


def test_each_version_of_a_record_is_later_than_the_one_before(tmp_path: Path) -> None:
    made = titled(tmp_path, Quirks(granularity="YYYY-MM-DD"), count=1)
    made.fill()
    [first] = made.told.values()
    changed(made.provider, "10673/0", title="Title 9")

    [second] = made.follow().values()

    assert first.lastmod is not None
    assert second is not None
    assert second.lastmod is not None
    assert first.lastmod < second.lastmod
    [path] = made.out.rglob("*.xml")
    assert path.stat().st_mtime == second.lastmod.timestamp()


def test_records_that_are_published_late_are_found_by_the_overlap(tmp_path: Path) -> None:
    made = titled(tmp_path)
    made.fill()
    late = made.provider.now
    made.provider.tick(86_400)
    made.fill()
    made.provider.put(Item(local="10673/late"), at=late)

    assert list(made.follow()) == [f"{BASE}resource/10673/late/oai_dc.xml"]


def test_days_are_asked_for_where_the_repository_knows_no_seconds(tmp_path: Path) -> None:
    made = titled(tmp_path, Quirks(granularity="YYYY-MM-DD"), window="30d")
    made.fill()
    made.follow()

    times = [fields[key] for fields in lists(made) for key in ("from", "until") if key in fields]
    assert times
    assert {len(time) for time in times} == {10}


def test_windows_cover_everything_once(tmp_path: Path) -> None:
    made = titled(tmp_path, Quirks(earliest="2025-11-20T10:00:00Z"), window="20d")
    made.provider.tick(86_400)
    made.fill()

    windows = [
        (fields.get("from", ""), fields.get("until", ""))
        for fields in lists(made)
        if "until" in fields or "from" in fields
    ]
    assert windows[:3] == [
        ("", "2025-12-10T09:59:59Z"),
        ("2025-12-10T10:00:00Z", "2025-12-30T09:59:59Z"),
        ("2025-12-30T10:00:00Z", ""),
    ]
    assert len(made.metadata()) == MANY


@pytest.mark.parametrize("deletions", ["persistent", "no"])
def test_what_is_withdrawn_is_removed_after_publication(tmp_path: Path, deletions: str) -> None:
    made = titled(tmp_path, Quirks(deletions=deletions))
    made.fill()
    made.provider.remove("10673/7")
    gone = made.out / "resource/10673/7/oai_dc.xml"
    with made.open() as account:
        if deletions == "no":
            made.position = account.position()
            list(account.resources())
        else:
            list(account.changes(made.position, 0))
        assert gone.exists(), "what is published may still tell of it"
        account.published()
    assert not gone.exists()
    assert not gone.parent.exists()
    assert gone.parent.parent.exists()


def test_a_file_is_kept_while_its_end_is_not_recorded(tmp_path: Path) -> None:
    made = titled(tmp_path)
    made.fill()
    made.provider.remove("10673/7")
    gone = made.out / "resource/10673/7/oai_dc.xml"
    with made.open() as account:
        next(iter(account.changes(made.position, 0)))
        account.published()
    assert gone.exists()

    made.follow()
    assert not gone.exists()


def test_a_record_that_comes_back_is_told_again(tmp_path: Path) -> None:
    made = titled(tmp_path)
    made.fill()
    made.provider.remove("10673/7")
    made.follow()
    made.provider.put(Item(local="10673/7", title="Title 7"))

    [(uri, resource)] = made.follow().items()

    assert resource is not None
    assert made.files()[uri]


@pytest.mark.parametrize("bad", ["\x0b", "&nbsp;", "</oai_dc:dc>"])
def test_a_record_that_is_no_xml_costs_no_other(tmp_path: Path, bad: str) -> None:
    made = titled(tmp_path, count=3)
    made.fill()
    changed(made.provider, "10673/1", raw=bad, title="Spoilt")
    changed(made.provider, "10673/2", title="Changed")

    news = made.follow()
    made.fill()

    assert list(news) == [f"{BASE}resource/10673/2/oai_dc.xml"]
    assert sorted(made.titles().values()) == ["Changed", "Title 0", "Title 1"]


def test_what_cannot_be_told_from_what_is_gone_is_kept(tmp_path: Path) -> None:
    made = titled(tmp_path, Quirks(deletions="no"), count=3)
    made.fill()
    made.provider.remove("10673/2")
    made.provider.put(Item(local="10673/\x02", title="Nameless"))
    made.fill()
    assert len(made.metadata()) == 3, "the record without a name may be any"

    made.provider.remove("10673/\x02")
    made.fill()
    assert len(made.metadata()) == 2


@pytest.mark.founding(
    "0.9 §8.6", "An OAI-PMH set is the collection of its records", "`publish oai:URL`"
)
@pytest.mark.founding(
    "DSpace: Next", "Metadata comes in several formats", "`--with prefixes=oai_dc,mods`"
)
def test_formats_are_told_with_links_to_each_other(tmp_path: Path) -> None:
    made = titled(tmp_path, count=1, prefixes="oai_dc,mods", changefreq="never")
    made.fill()
    dc, mods = (f"{BASE}resource/10673/0/{name}.xml" for name in ("oai_dc", "mods"))

    told = made.told[dc]
    assert [profile.href for profile in told.profiles] == [
        "http://www.openarchives.org/OAI/2.0/oai_dc/"
    ]
    assert [(alternate.href, alternate.media_type) for alternate in told.alternates] == [
        (mods, "application/xml")
    ]
    assert [alternate.href for alternate in made.told[mods].alternates] == [dc]
    assert [collection.href for collection in told.collections] == [
        "https://repo.example/oai/request?verb=ListRecords&metadataPrefix=oai_dc&set=col_10673_2"
    ]
    assert (told.media_type, told.changefreq) == ("application/xml", "never")
    assert (told.length, str(told.digests[0]).partition(":")[0]) == (
        len(made.files()[dc]),
        "sha-256",
    )


def test_one_format_of_an_item_may_be_withdrawn(tmp_path: Path) -> None:
    made = titled(tmp_path, count=1, prefixes="oai_dc,mods")
    made.fill()
    answer = made.provider.record
    made.provider.record = (  # type: ignore[method-assign] # a provider with a change of mind
        lambda prefix, local, moment, item: answer(
            prefix, local, moment, None if prefix == "mods" else item
        )
    )

    news = made.follow()

    dc, mods = (f"{BASE}resource/10673/0/{name}.xml" for name in ("oai_dc", "mods"))
    assert news[mods] is None
    assert set(news) == {dc, mods}
    assert made.told[dc].alternates == ()


@pytest.mark.parametrize(
    ("values", "word"), [({"prefixes": "marc21"}, "marc21"), ({"sets": "nothing"}, "nothing")]
)
def test_what_the_repository_does_not_have_is_a_mistake(
    tmp_path: Path, values: dict[str, str], word: str
) -> None:
    made = titled(tmp_path, None, count=2, **values)

    with pytest.raises(ConfigurationError, match=word):
        made.fill()
