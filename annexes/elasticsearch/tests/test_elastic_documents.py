"""What documents of the seed say: locations, dates, digests, lengths, links."""

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.errors import ConfigurationError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Resource
from resourcesync.ports.accounts import AccountOptions
from resourcesync_elasticsearch.client import ServerSettings
from resourcesync_elasticsearch.documents import Locations, ResourceDecoder, parse_date
from resourcesync_elasticsearch.settings import IndexSettings, parse_settings
from tests.support.accounts.published_index import no_fetcher
from tests.support.in_memory import ManualClock

PREFIX = "https://h.example/data/"
ROOT = "/srv/data"
MD5 = "0123456789abcdef0123456789abcdef"
PATHS = st.text(st.characters(codec="utf-8", exclude_characters="\x00/\\"), min_size=1).filter(
    lambda name: name not in {".", ".."}
)


def locations(root: str = ROOT, prefix: str = PREFIX) -> Locations:
    server = ServerSettings(scheme="http", host="h", port=1)
    return Locations(
        IndexSettings(server=server, index="i", resource_root_dir=root, url_prefix=prefix)
    )


def read(**fields: object) -> Resource:
    return ResourceDecoder(locations()).resource(
        "name", {"location": "https://h.example/a", **fields}
    )


@pytest.mark.founding(
    "DIT-ES: resource",
    "A location is `url`, `abs_path` or `rel_path`",
    "`publish elasticsearch:URL`",
)
@given(st.lists(PATHS, min_size=1, max_size=3))
def test_a_location_is_found_by_the_uri_that_it_means(parts: list[str]) -> None:
    item, path = locations(), "/".join(parts)
    for location in (
        {"type": "rel_path", "value": path},
        {"type": "rel_path", "value": f"/{path}"},
        {"type": "rel_path", "value": path.replace("/", "\\")},
        {"type": "abs_path", "value": f"{ROOT}/{path}"},
    ):
        uri = item.uri(location)
        assert uri.startswith(PREFIX)
        assert uri.isascii()
        assert location["value"] in item.spellings(uri)
        assert item.uri({"type": "url", "value": uri}) == uri


def test_a_relative_path_is_quoted_and_a_url_is_not() -> None:
    item = locations()
    assert item.uri({"type": "rel_path", "value": "a b/é.pdf"}) == PREFIX + "a%20b/%C3%A9.pdf"
    assert (
        item.uri({"type": "url", "value": "https://o.example/%41 b"}) == "https://o.example/%41 b"
    )
    assert item.uri([{"type": "abs_path", "value": "/srv/data/x/../y.pdf"}]) == PREFIX + "y.pdf"


@pytest.mark.parametrize("value", ["/srv/database/a", "/srv/data/../a", "/etc/passwd", "/srv/data"])
def test_what_is_outside_the_root_becomes_no_address(value: str) -> None:
    assert not locations().uri({"type": "abs_path", "value": value}).startswith("http")


def test_paths_that_nothing_is_known_about_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="absolute path"):
        locations(root="").uri({"type": "abs_path", "value": "/a"})
    with pytest.raises(ConfigurationError, match="relative"):
        locations(prefix="").uri({"type": "rel_path", "value": "a"})


@pytest.mark.founding(
    "DIT-ES: resource", "`md5` is one hash or an array", "`publish elasticsearch:URL`"
)
@pytest.mark.parametrize(
    "value",
    [MD5, MD5.upper(), f"md5:{MD5}", f"MD5:{MD5.upper()}", [MD5], [f"md5:{MD5}", MD5], f" {MD5} "],
)
def test_md5_is_read_in_every_form(value: object) -> None:
    assert read(md5=value).digests == (Digest("md5", MD5),)


def test_other_digests_beside_md5_are_read_and_nonsense_is_not() -> None:
    sha = "sha-256:" + "a" * 64
    assert list(map(str, read(md5=[MD5, sha, "nonsense", 7]).digests)) == [f"md5:{MD5}", sha]
    assert read(md5="nonsense").digests == ()


@pytest.mark.parametrize(
    "value",
    [
        "2016-11-05T10:20:30Z",
        "2016-11-05T12:20:30+0200",
        "2016-11-05T12:20:30.000+02:00",
        "2016-11-05T10:20:30",
        1478341230000,
        "1478341230000",
        ["2016-11-05T10:20:30Z"],
    ],
)
def test_a_date_is_read_in_every_form_that_servers_take(value: object) -> None:
    assert read(lastmod=value).lastmod == datetime(2016, 11, 5, 10, 20, 30, tzinfo=UTC)


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary()))
def test_no_value_of_a_field_is_too_odd(value: object) -> None:
    found = read(lastmod=value, length=value, md5=value, mime=value, ln=value)

    assert found.uri == "https://h.example/a"
    assert found.lastmod is None or found.lastmod.utcoffset() is not None
    assert found.length is None or 0 <= found.length < 1 << 63
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        parse_date(value)


def options(address: str, **values: str) -> AccountOptions:
    return AccountOptions(
        address=address,
        base_uri="https://h.example/",
        values=values,
        memory="",
        out="",
        clock=ManualClock(),
        fetcher=no_fetcher,
    )


@pytest.mark.founding(
    "DIT-ES: resource",
    "`url_prefix` and `resource_root_dir` resolve locations",
    "`--with url_prefix=URL`",
)
def test_the_seeds_parameters_are_known_by_their_names() -> None:
    found = parse_settings(
        options(
            "elasticsearch:https://s.example/es/omtd-resourcesync",
            resource_set="pdf",
            resource_root_dir="/srv/data/",
            url_prefix="https://h.example/data",
            api_key="secret",
        )
    )

    assert found.index == "omtd-resourcesync"
    assert (found.resource_root_dir, found.url_prefix) == ("/srv/data", "https://h.example/data/")
    server = found.server
    assert (server.host, server.port, server.path) == ("s.example", 9200, "/es")
    assert server.authorization == "ApiKey secret"
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("address", "values"),
    [
        ("elasticsearch:https://u:hidden@s.example/i", {}),
        ("elasticsearch:ftp://s.example/i", {}),
        ("elasticsearch:https://s.example/", {}),
        ("elasticsearch:https://s.example/i*", {}),
        ("elasticsearch:https://s.example:x/i", {}),
        ("elasticsearch:https://s.example/i?a=b", {}),
        ("elasticsearch:https://\u00fc.example/i", {}),
        ("elasticsearch:https://s.example/i", {"user": "me"}),
        ("elasticsearch:https://s.example/i", {"user": "m:e", "password": "hidden"}),
        ("elasticsearch:https://s.example/i", {"api_key": "hid\r\nden"}),
        ("elasticsearch:https://s.example/i", {"user": "m", "password": "x", "api_key": "y"}),
        ("elasticsearch:https://s.example/i", {"window": "nan"}),
        ("elasticsearch:https://s.example/_all", {}),
        ("elasticsearch:https://s.example/i", {"no_such": "x"}),
        ("elasticsearch:https://s.example/i", {"resource_root_dir": "here"}),
        ("elasticsearch:https://s.example/i", {"window": "-1"}),
    ],
)
def test_what_cannot_work_is_refused_without_the_secret(
    address: str, values: dict[str, str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_settings(options(address, **values))
    assert "hidden" not in f"{caught.value.message} {caught.value.evidence} {caught.value.hint}"
