"""A stream of IIIF Change Discovery that is not as it should be: bounded, told, never a lie."""

import logging
from typing import Any

import pytest

from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    DocumentError,
    ResourceMissingError,
    SourceError,
    SourceRefusedError,
)
from resourcesync.ports.accounts import TolerantAccount
from resourcesync.ports.catalogue import Omission
from tests.support.accounts.activity_stream import (
    ALL,
    HOME,
    START,
    ActivityStream,
    Json,
    activity,
    manifest,
    moment,
    uri_of,
)
from tests.support.accounts.followed_stream import (
    NOW,
    changed,
    listed,
    opened,
    plain,
    position_of,
    stream_of,
)

# --- what is not as it should be ---


def test_an_object_that_moves_to_the_end_while_pages_are_read_is_not_missed() -> None:
    stream = plain(*(f"Create {number}" for number in range(30)))
    everything = listed(stream)

    def hurry(answers: int) -> None:
        if answers == 5:  # pages 9 to 6 are read
            first = stream.activities.pop(0)
            stream.activities.append(first | {"type": "Update", "endTime": moment(50)})

    stream.fetcher.requests = 0
    stream.hurried = hurry
    assert listed(stream) == everything


def test_what_is_deleted_while_pages_are_read_is_gone() -> None:
    stream = plain(*(f"Create {number}" for number in range(30)))
    stream.hurried = lambda answers: stream.add("Delete", "29") if answers == 6 else None
    assert "29" not in listed(stream)


def test_a_stream_that_never_rests_is_read_nevertheless() -> None:
    stream = plain(*(f"Create {number}" for number in range(30)))
    stream.hurried = lambda answers: stream.add("Create", f"new{answers}")
    assert set(listed(stream)) >= {f"{number}" for number in range(30)}
    assert stream.fetcher.requests < 50


def test_a_stream_with_the_newest_first_has_no_log_and_is_read_by_its_times() -> None:
    stream = plain("Create a", "Create b", "Create c", "Update a", "Delete b", size=2)
    stream.activities.reverse()
    assert position_of(stream) == ""
    assert listed(stream) == ["a", "c"]


def test_pages_in_the_wrong_order_have_no_log_and_are_read_by_their_times(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stream = plain("Create a", "Create b", "Create c", "Create d", "Delete a", "Delete b", size=2)
    stream.activities = [*stream.activities[4:], *stream.activities[2:4], *stream.activities[:2]]
    assert position_of(stream) == ""
    broken(stream, "all-changes", first=None)
    assert position_of(stream) == ""
    with caplog.at_level(logging.WARNING):
        assert listed(stream) == ["c", "d"]
    assert "not in the order of their time" in caplog.text


def test_a_time_in_the_future_does_not_hide_what_follows() -> None:
    stream = plain("Create a", "Create b")
    stream.activities[0]["endTime"] = "2999-01-01T00:00:00Z"
    stream.add("Delete", "a")
    assert listed(stream) == ["b"]


def test_a_total_that_lies_is_told(caplog: pytest.LogCaptureFixture) -> None:
    stream = plain("Create a", "Create b")
    stream.changed = lambda _, found: found | ({"totalItems": 99} if "totalItems" in found else {})
    with caplog.at_level(logging.WARNING):
        assert listed(stream) == ["a", "b"]
    assert "has 2 activities, and says 99" in caplog.text


def broken(stream: ActivityStream, name: str, **members: Any) -> ActivityStream:
    """Change the members of one document."""
    stream.changed = lambda uri, found: found | members if uri == name else found
    return stream


def page(number: int, at: str = f"{HOME}activity/") -> Json:
    return {"id": f"{at}page-{number}", "type": "OrderedCollectionPage"}


@pytest.mark.parametrize(
    ("name", "members", "error"),
    [
        ("page-1", {"prev": page(2)}, BadResponseError),
        ("page-1", {"prev": page(1)}, BadResponseError),
        ("page-0", {"prev": page(2)}, BadResponseError),
        ("page-0", {"startIndex": 40}, BadResponseError),
        ("page-1", {"prev": page(7)}, ResourceMissingError),
        ("page-1", {"prev": None}, BadResponseError),
        ("page-1", {"prev": page(0, "https://other.example/")}, SourceRefusedError),
        ("page-1", {"prev": {"id": "ftp://x/"}}, BadResponseError),
        ("page-1", {"prev": {"id": "https://[/"}}, BadResponseError),
        ("page-1", {"orderedItems": None}, DocumentError),
        ("page-1", {"orderedItems": {}}, DocumentError),
        ("page-1", {"orderedItems": [7] * 20}, BadResponseError),
        ("page-1", {"type": "Manifest"}, DocumentError),
        ("all-changes", {"type": "OrderedCollectionPage"}, DocumentError),
        ("all-changes", {"last": None}, BadResponseError),
        ("all-changes", {"last": page(0, "https://other.example/")}, SourceRefusedError),
        ("all-changes", {"first": page(1)}, BadResponseError),
    ],
)
def test_a_stream_that_cannot_be_whole_is_an_error(
    name: str, members: Json, error: type[Exception]
) -> None:
    stream = plain(*(f"Create {number}" for number in range(9)))
    with pytest.raises(error):
        listed(broken(stream, name, **members))


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>Sorry</html>", b"[]", b"7", b"{", b"[" * 100_000, b"\xff\xfe{}", b'{"a":"\xff"}'],
)
@pytest.mark.parametrize("name", ["all-changes", "page-1"])
def test_what_is_no_json_is_an_error(name: str, body: bytes) -> None:
    stream = plain(*(f"Create {number}" for number in range(9)))
    whole = stream.document
    stream.changed = lambda uri, _: body if uri == name else whole(uri)
    with pytest.raises(DocumentError):
        listed(stream)


def test_a_page_that_is_too_long_is_refused() -> None:
    stream = plain("Create a")
    broken(stream, "page-0", summary="x" * (16 * 1024 * 1024))
    with pytest.raises(SourceError, match="more bytes"):
        listed(stream)


def test_pages_without_activities_and_without_end_are_bounded() -> None:
    stream = plain("Create a")

    def endless(name: str, found: Json) -> Json:
        return found | {"last": page(0)} if name == "all-changes" else found

    stream.changed = endless
    serve = stream.document
    empty: Json = {"type": "OrderedCollectionPage", "orderedItems": []}
    stream.document = lambda name: (  # type: ignore[method-assign]
        serve(name)
        if name == "all-changes"
        else empty | {"prev": page(int(name.removeprefix("page-")) + 1)}
    )
    with pytest.raises(BadResponseError, match="too many"):
        listed(stream)
    assert stream.fetcher.requests < 200


def test_a_few_unusable_activities_are_left_out_and_told() -> None:
    stream = plain("Create a", "Create b", "Create c")
    start = position_of(stream)
    stream.activities += [
        {"type": "Create"},
        {"type": "Create", "object": {"type": "Manifest"}},
        {"object": manifest("x")},
        {"type": "Move", "object": manifest("a")},
        "Create",  # type: ignore[list-item]
        activity("Create", "d", moment(9)),
    ]
    found = listed(stream)
    assert found[-4:] == ["a", "b", "c", "d"]
    assert found[0] == (f"activity 2 of {HOME}activity/page-2, it has no type or no object")
    assert len(found) == 9
    with opened(stream) as account:
        batches = list(account.changes(start, 0))
    assert [change.uri for batch in batches for change in batch.changes] == [uri_of("d")]
    omissions = [item for batch in batches for item in batch.omissions]
    assert len(omissions) == 5
    assert isinstance(omissions[0], Omission)


def test_a_stream_with_an_unusable_activity_proves_no_absence() -> None:
    stream = plain("Create a", "Create b")
    with opened(stream) as account:
        list(account.resources())
        assert isinstance(account, TolerantAccount)
        assert account.lists_all

    stream.activities[0] = {"object": manifest("a")}
    with opened(stream) as account:
        list(account.resources())
        assert isinstance(account, TolerantAccount)
        assert not account.lists_all


@pytest.mark.parametrize(
    "as_written",
    [
        {"object": "https://iiif.example/iiif/a/manifest"},
        {"object": {"@id": "https://iiif.example/iiif/a/manifest", "@type": "Manifest"}},
        {"object": {"id": " https://iiif.example/iiif/a/manifest\n"}},
        {"endTime": "2026-03-01 10:00:00+00"},
        {"endTime": 7},
        {"endTime": ""},
        {"type": ["Create", "as:Create"]},
        {"summary": {"en": ["x"]}, "actor": 7, "target": [], "origin": None},
    ],
)
def test_an_activity_in_another_form_is_understood(as_written: Json) -> None:
    assert listed(stream_of(activity("Create", "a", moment(1)) | as_written)) == ["a"]


def test_pages_that_are_named_relatively_or_by_http_are_read_where_the_collection_is() -> None:
    stream = plain(*(f"Create {number}" for number in range(9)))

    def rename(_: str, found: Json) -> Json:
        for name, before in (("last", "http://iiif.example/activity/"), ("prev", "")):
            if name in found:
                found[name] = {"id": before + found[name]["id"].rpartition("/")[2]}
        return found | ({"first": "/activity/page-0"} if "first" in found else {})

    stream.changed = rename
    assert len(listed(stream)) == 9
    assert all(uri.startswith(HOME) for uri in stream.fetcher.asked)


def test_pages_on_an_origin_that_the_operator_names_are_read() -> None:
    stream = plain(*(f"Create {number}" for number in range(9)))
    elsewhere = broken(stream, "all-changes", last=page(2, "https://iiif.example:8443/activity/"))
    with pytest.raises(SourceRefusedError, match="another origin"):
        listed(elsewhere)
    with pytest.raises(ResourceMissingError):  # it is asked
        listed(elsewhere, origins="https://iiif.example:8443")


def test_a_first_page_that_is_not_there_or_has_another_address_does_no_harm() -> None:
    stream = plain(*(f"Create {number}" for number in range(9)))
    for wrong in (page(7), page(0, f"{HOME}activity/../activity/")):
        broken(stream, "all-changes", first=wrong)
        assert position_of(stream)
        assert len(listed(stream)) == 9


def test_a_last_page_without_activities_proves_nothing() -> None:
    stream = plain(*(f"Create {number}" for number in range(4)))
    start = position_of(stream)
    stream.add("Create", "new")
    serve = stream.document
    empty: Json = {"type": "OrderedCollectionPage", "orderedItems": [], "prev": page(1)}
    stream.document = lambda name: empty if name == "page-2" else serve(name)  # type: ignore[method-assign]
    broken(stream, "all-changes", last=page(2))
    assert position_of(stream) == ""
    with opened(stream) as account:
        (batch,) = account.changes(start, 0)
        assert [change.uri for change in batch.changes] == [uri_of("new")]
        assert list(account.changes(batch.position, 0)) == []


def test_an_empty_stream_may_name_a_last_page_that_is_not_there() -> None:
    stream = ActivityStream()
    broken(stream, "all-changes", last=page(-1), totalItems=0)
    assert listed(stream) == []
    assert position_of(stream)
    broken(stream, "all-changes", last=page(-1), totalItems=1)
    with pytest.raises(ResourceMissingError):
        listed(stream)


def test_a_collection_that_has_its_activities_itself_is_read() -> None:
    stream = plain("Create a", "Create b")
    broken(stream, "all-changes", last=None, first=None, orderedItems=stream.activities)
    assert listed(stream) == ["a", "b"]


def test_an_empty_stream_has_a_position_from_which_all_is_told() -> None:
    stream = ActivityStream()
    start = position_of(stream)
    assert listed(stream) == []
    assert changed(stream, start) == []
    stream.add("Create", "a")
    assert changed(stream, start) == [("+", "a")]


@pytest.mark.parametrize(
    ("address", "values"),
    [
        ("iiif.example/all", {}),
        ("https://user:secret@iiif.example/all", {}),
        (ALL, {"type": "Manifest"}),
        (ALL, {"types": "Manifest,,"}),
        (ALL, {"origins": "other.example"}),
    ],
)
def test_what_cannot_work_is_refused_at_once(address: str, values: dict[str, str]) -> None:
    stream = plain("Create a")
    with (
        pytest.raises(ConfigurationError) as raised,
        opened(stream, address, **values),
    ):
        pass
    assert "secret" not in str(raised.value)
    assert stream.fetcher.asked == []


def test_the_world_has_times_that_are_past() -> None:
    assert moment(1_000) < f"{NOW:%Y-%m-%dT%H:%M:%SZ}"
    assert START < NOW
