"""Which entries a Source may speak for, and which the operator wants."""

from datetime import UTC, datetime

import pytest
from hypothesis import given

from resourcesync.destination.scope_and_filters import FilterVerdict, Scope
from resourcesync.errors import ConfigurationError, OutOfScopeError
from resourcesync.model.entries import Resource
from tests.support.documents.hostile_uris import hostile_uris

HOME = "https://museum.example"
ORIGINS = frozenset({HOME})
MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "uri",
    [
        *("http://museum.example/a", "https://museum.example:8443/a", "https://evil.example/a"),
        *("https://museum.example.evil.example/", "https://sub.museum.example/", "https://m/a"),
        "https://museum.exampleevil/",
    ],
)
def test_a_source_does_not_speak_for_another_origin(uri: str) -> None:
    with pytest.raises(OutOfScopeError, match=r"may list https://museum\.example, not") as raised:
        Scope(origins=ORIGINS).judge(Resource(uri=uri))

    assert raised.value.code == "foreign"
    assert raised.value.uri == uri


@given(hostile_uris())
def test_only_the_origins_given_are_ever_selected(uri: str) -> None:
    scope = Scope(origins=ORIGINS)
    try:
        verdict = scope.judge(Resource(uri=uri))
    except OutOfScopeError:
        assert not uri.startswith(f"{HOME}/")
    else:
        assert verdict is FilterVerdict.SELECTED
        host = uri.lower().replace("%2e", ".").replace(":443", "").replace("example.", "example")
        assert host.startswith(HOME)
        assert host[len(HOME) : len(HOME) + 1] in {"", "/", "?", "#"}


@pytest.mark.parametrize(
    ("types", "media_type", "verdict"),
    [
        ((), "image/png", FilterVerdict.SELECTED),
        (("text/html",), "text/html", FilterVerdict.SELECTED),
        (("text/html",), "Text/HTML; charset=UTF-8", FilterVerdict.SELECTED),
        ((" TEXT/html ",), "text/html", FilterVerdict.SELECTED),
        (("text/html",), "text/htmlx", FilterVerdict.FILTERED),
        (("text/html", "image/*"), "image/png", FilterVerdict.SELECTED),
        (("image/*",), "text/html", FilterVerdict.FILTERED),
        (("image/*",), "image", FilterVerdict.FILTERED),
        (("*/*",), "anything", FilterVerdict.SELECTED),
        (("text/html",), "", FilterVerdict.SELECTED),
        (("text/html",), " ; charset=x", FilterVerdict.SELECTED),
    ],
)
def test_a_media_type_that_is_known_must_fit(
    types: tuple[str, ...], media_type: str, verdict: FilterVerdict
) -> None:
    scope = Scope(origins=ORIGINS, types=types)

    assert scope.judge(Resource(uri=f"{HOME}/a", media_type=media_type)) is verdict


@pytest.mark.parametrize("name", ["", "html", "text/", "/html", "*", "*/html", "text/h*", "a/b/c"])
def test_what_is_no_media_type_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a media type") as raised:
        Scope(origins=ORIGINS, types=("text/html", name))

    assert raised.value.code == "type"


def test_a_deletion_is_judged_by_its_uri_alone() -> None:
    scope = Scope(origins=ORIGINS, include=("/a",), types=("text/html",), max_size=1, since=MOMENT)

    assert scope.judge(Resource(uri=f"{HOME}/a")) is FilterVerdict.SELECTED
    assert scope.judge(Resource(uri=f"{HOME}/b")) is FilterVerdict.FILTERED


@pytest.mark.parametrize(
    "origins",
    [
        *((), ("https://museum.example/",), ("https://Museum.example",), ("museum.example",)),
        *(("https://museum.example:443",), ("https://museum.example/a",), ("ftp://a",), ("",)),
        *(("https://a?b",), (HOME, "https://b@c"), ("https://a#b",)),
    ],
)
def test_what_is_no_origin_is_refused(origins: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Scope(origins=frozenset(origins))

    assert raised.value.code == "origins"


def test_a_negative_size_and_a_time_without_a_zone_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="negative"):
        Scope(origins=ORIGINS, max_size=-1)
    with pytest.raises(ConfigurationError, match="zone"):
        Scope(origins=ORIGINS, since=MOMENT.replace(tzinfo=None))
