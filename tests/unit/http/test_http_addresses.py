"""Which URIs are sent, which addresses are connected, where redirects lead; no network."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.adapters.http.addresses import (
    is_ambiguous_number,
    is_public,
    parse_address,
    without_query,
)
from resourcesync.adapters.http.redirects import follow_redirect
from resourcesync.errors import BadResponseError, SourceRefusedError

PRIVATE = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.255",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.168.1.1",
    "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:1::", "2001:db8::1", "fc00::1",
    "fd00::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1",
    "", "localhost", "example.org",
]  # fmt: skip


PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("address", [*PUBLIC, *PRIVATE])
def test_a_public_address_and_no_other_is_known_as_such(address: str) -> None:
    assert is_public(address) is (address in PUBLIC)


@given(st.integers(0, 2**32 - 1))
def test_every_way_to_write_a_private_address_in_ipv6_is_as_private(number: int) -> None:
    plain = str(IPv4Address(number))

    assert is_public(str(IPv6Address((0xFFFF << 32) | number))) == is_public(plain)
    assert not is_public(str(IPv6Address(number)))
    assert not is_public(str(IPv6Address((0x64FF9B << 96) | number)))
    assert not is_public(str(IPv6Address((0x2002 << 112) | (number << 80))))


@pytest.mark.parametrize(
    "host",
    ["127.1", "0x7f.1", "2130706433", "0x7f000001", "017700000001", "127.0.0.1.", "0177.0.0.1",
     "1.2.3.4.5", "256.1.1.1", "0", "a.1", "0x"],
)  # fmt: skip
def test_a_number_that_only_a_resolver_understands_is_odd(host: str) -> None:
    assert is_ambiguous_number(host)


@pytest.mark.parametrize(
    "uri",
    ["ftp://h/", "file:///etc/passwd", "//h/x", "/x", "", "http://", "http:///x", "http://u@h/",
     "http://u:p@h/", "http://h\\@evil/", "http://h/\r\nX: y", "http://h/\0",
     "http://h:x/", "http://h:123456/", "http://①.example/", "http://%31.example/", "http://h /",
     "http://h\n/", "http://h/" + "a" * 9000, "http://[::1/", "http://[v1.x]/", "javascript:1"],
)  # fmt: skip
def test_a_uri_that_could_be_read_in_two_ways_is_refused(uri: str) -> None:
    with pytest.raises(SourceRefusedError) as caught:
        parse_address(uri)

    assert caught.value.code == "uri"


@pytest.mark.parametrize(
    ("uri", "sent"),
    [
        ("http://h/a/../b//c?q=%2F&x", "http://h/a/../b//c?q=%2F&x"),
        ("HTTP://Host:80/x", "HTTP://Host:80/x"),
        ("http://h/x#part", "http://h/x"),
        ("http://h/müsli", "http://h/m%C3%BCsli"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://h?x", "http://h?x"),
    ],
)
def test_a_uri_is_sent_as_written(uri: str, sent: str) -> None:
    assert parse_address(uri).uri == sent


def test_what_may_be_a_secret_is_not_shown() -> None:
    assert without_query("http://h/x?token=abc") == "http://h/x?…"


@pytest.mark.parametrize(
    ("uri", "location"),
    [
        *(
            ("http://h/d/x", location)
            for location in (
                *("file:///etc/passwd", "ftp://h/", "gopher://h/", "data:,x", "http://u@h/"),
                *("http://[::1", "https:"),
            )
        ),
        ("https://h/x", "http://h/x"),
    ],
)
def test_a_redirect_out_of_http_or_https_is_refused(uri: str, location: str) -> None:
    with pytest.raises(SourceRefusedError) as caught:
        follow_redirect(uri, location, left=5)

    assert caught.value.code == "redirect"


@given(st.text(max_size=40))
def test_any_text_as_location_is_followed_to_http_or_refused(location: str) -> None:
    try:
        address = follow_redirect("https://h/x", location, left=5)
    except (BadResponseError, SourceRefusedError):
        return

    assert address.uri.startswith("https://")
    assert address.uri.isascii()
