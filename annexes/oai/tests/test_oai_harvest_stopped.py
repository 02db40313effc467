"""Harvests that fail, are killed or meet another memory: nothing is lost, nothing deleted."""

from contextlib import suppress
from pathlib import Path

import pytest

from resourcesync.errors import (
    BadResponseError,
    DiscontinuityError,
    ResourceSyncError,
    SourceError,
    SourceUnavailableError,
)
from tests.support.accounts.harvested_repository import BASE, MANY, lists, named, titled
from tests.support.accounts.oai_provider import BEGINNING, OAI, Item, Quirks, changed


@pytest.mark.parametrize(
    ("quirks", "kind", "code"),
    [
        (Quirks(page=4, circles=True, complete_size="900"), BadResponseError, "oai-endless"),
        (Quirks(page=4, endless=True), BadResponseError, "oai-endless"),
        (Quirks(page=4, dying_tokens=[2] * 9), BadResponseError, "oai-error"),
        (Quirks(page=4, always_truncated=True), SourceUnavailableError, "truncated"),
        (Quirks(busy=[9_999]), SourceUnavailableError, "unavailable"),
        (Quirks(busy=[1] * 99), SourceUnavailableError, "unavailable"),
        (Quirks(down=True), SourceUnavailableError, "unavailable"),
        (Quirks(doctype="<!DOCTYPE OAI-PMH SYSTEM 'x'>\n"), BadResponseError, "xml-dtd"),
        (Quirks(junk_before=b"Fatal error "), BadResponseError, "xml"),
    ],
    ids=named,
)
def test_a_list_that_cannot_be_had_whole_is_an_error_and_nothing_is_gone(
    tmp_path: Path, quirks: Quirks, kind: type[SourceError], code: str
) -> None:
    made = titled(tmp_path)
    made.fill()
    before = made.files()
    made.provider.quirks = quirks

    with pytest.raises(kind) as caught:
        made.fill()

    assert caught.value.code == code
    if code != "unavailable":  # that is the transport's to say
        told = dict(caught.value.evidence)
        assert told["sent"].startswith("GET https://repo.example/oai/request")
        assert told["kept"]
        assert caught.value.hint
        if code == "oai-error":
            assert told["got"].startswith("badResumptionToken")
            assert "--with window=30d" in caught.value.hint
    assert made.files() == before
    made.provider.quirks = Quirks()
    assert made.follow() == {}


@pytest.mark.parametrize("seconds", [0, 90_000], ids=["just now", "long ago"])
def test_a_harvest_that_was_killed_goes_on_where_it_was_or_begins_anew(
    tmp_path: Path, seconds: int
) -> None:
    made = titled(tmp_path, Quirks(page=2))
    made.killed_after = 6  # Identify, the formats, and four pages of nine
    with pytest.raises(KeyboardInterrupt):
        made.fill()
    made.killed_after = None
    del made.provider.asked[:]
    made.clock.sleep(seconds)

    made.fill()

    assert lists(made)[0].get("resumptionToken", "")[-2:] == ("" if seconds else "|4")
    assert len(made.metadata()) == MANY


def test_a_harvest_that_went_round_in_circles_begins_anew(tmp_path: Path) -> None:
    made = titled(tmp_path, Quirks(page=2, circles=True, complete_size="900"))
    with pytest.raises(BadResponseError):
        made.fill()
    made.provider.quirks = Quirks(page=2)
    del made.provider.asked[:]

    made.fill()

    assert "resumptionToken" not in lists(made)[0]
    assert len(made.metadata()) == MANY


def test_killed_at_any_request_the_next_run_is_right(tmp_path: Path) -> None:
    quirks = Quirks(page=3, deletions="no")
    made = titled(tmp_path, quirks, count=8, prefixes="oai_dc,mods")
    made.fill()
    for number in range(8):
        changed(made.provider, "10673/2", title=f"Turn {number}")
        made.provider.put(Item(local=f"new/{number}", title=f"New {number}"))
        if number % 3 == 2:
            made.provider.remove(f"new/{number - 1}")
        made.killed_after = number
        with suppress(KeyboardInterrupt):
            made.fill() if number % 2 else made.follow()
        made.killed_after = None
        if number % 4 == 3:
            made.fill()
        else:
            made.follow()
            continue
        expected = {
            f"{BASE}resource/{local}/{prefix}.xml"
            for local in made.provider.items
            for prefix in ("oai_dc", "mods")
        }
        assert made.metadata() == expected == set(made.files())
        for uri, body in made.files().items():
            assert made.told[uri].length == len(body)


def test_a_format_that_is_suddenly_empty_is_not_taken_for_withdrawn(tmp_path: Path) -> None:
    made = titled(tmp_path, Quirks(page=6), count=11, prefixes="oai_dc,mods")
    made.fill()
    made.provider.quirks.empty = "mods"

    with pytest.raises(BadResponseError) as caught:
        made.fill()

    assert caught.value.code == "oai-many-gone"
    assert "--allow-empty" in caught.value.hint
    assert "remove" not in caught.value.hint
    made.provider.quirks.empty = ""
    assert made.follow() == {}
    made.provider.remove("10673/1")
    made.follow()
    made.provider.quirks.empty = "mods"
    made.fill()
    assert len(made.metadata()) == 10, "ten may go at once"


def test_a_memory_that_is_another_one_is_noticed(tmp_path: Path) -> None:
    made = titled(tmp_path, count=2)
    made.fill()
    (tmp_path / "memory/oai/oai.db").unlink()

    with pytest.raises(DiscontinuityError):
        made.follow()
    made.fill()
    assert len(made.files()) == 2


def test_another_choice_is_told_anew_and_leaves_no_old_files(tmp_path: Path) -> None:
    made = titled(tmp_path, count=2)
    made.fill()
    made.values = {"prefixes": "mods", "names": "dspace"}

    with pytest.raises(DiscontinuityError):
        made.follow()
    made.fill()

    assert set(made.files()) == made.metadata()
    assert made.metadata() == {f"{BASE}resource/10673/{at}/mods" for at in range(2)}


def test_files_that_somebody_removed_come_back(tmp_path: Path) -> None:
    made = titled(tmp_path, count=3)
    made.fill()
    changed(made.provider, "10673/1", title="Another title")
    made.provider.items["10673/1"] = (BEGINNING, made.provider.items["10673/1"][1])
    made.fill()
    before = made.files()
    (made.out / "resource/10673/1/oai_dc.xml").unlink()
    (made.out / "resource/10673/2/oai_dc.xml").write_text("spoilt")

    told = dict(made.told)
    made.fill()

    assert made.files() == before
    assert made.told == told


def test_a_second_run_at_a_time_is_refused(tmp_path: Path) -> None:
    made = titled(tmp_path, count=2)

    with made.open(), pytest.raises(ResourceSyncError) as caught, made.open():
        pass

    assert caught.value.code == "locked"


@pytest.mark.parametrize(
    "content", [b"no database at all, but long enough" * 100, b"SQLite format 3\x00"]
)
def test_a_damaged_memory_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    made = titled(tmp_path, count=2)
    made.fill()
    (tmp_path / "memory/oai/oai.db").write_bytes(content)

    with pytest.raises(ResourceSyncError) as caught, made.open():
        pass

    assert "away" in caught.value.hint


def test_a_page_that_is_no_provider_is_refused_by_name(tmp_path: Path) -> None:
    made = titled(tmp_path)
    made.provider.quirks.junk_before = b"  <!doctype HTML>\n<title>Down</title><p>Back soon"

    with pytest.raises(BadResponseError) as caught:
        made.fill()

    assert caught.value.code == "not-oai"
    assert "base URL" in caught.value.hint


@pytest.mark.parametrize("inner", ["", "<request>x</request>"])
def test_an_answer_that_says_nothing_is_an_error(tmp_path: Path, inner: str) -> None:
    made = titled(tmp_path)
    made.fill()
    sound = made.answer
    made.answer = lambda asked: (
        f'<OAI-PMH xmlns="{OAI}">{inner}</OAI-PMH>'.encode()
        if asked["verb"] == "ListRecords"
        else sound(asked)
    )

    with pytest.raises(BadResponseError, match="response is empty"):
        made.fill()
