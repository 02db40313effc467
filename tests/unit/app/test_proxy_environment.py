"""The proxies that variables of the environment name."""

import pytest

from resourcesync.errors import ConfigurationError
from resourcesync.settings.environment import read_proxies


@pytest.mark.parametrize(
    ("environ", "http", "https"),
    [
        ({}, None, None),
        ({"http_proxy": "http://p:1"}, "http://p:1", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://p:1", None),
        ({"HTTPS_PROXY": "http://p:1"}, None, "http://p:1"),
        ({"ALL_PROXY": "socks5h://p:1"}, "socks5h://p:1", "socks5h://p:1"),
        ({"all_proxy": "socks5://p"}, "socks5h://p:1080", "socks5h://p:1080"),
        ({"http_proxy": "http://a:1", "HTTP_PROXY": "http://b:1"}, "http://a:1", None),
        ({"https_proxy": "http://a:1", "ALL_PROXY": "http://b:1"}, "http://b:1", "http://a:1"),
        ({"http_proxy": "", "HTTP_PROXY": "http://b:1"}, "http://b:1", None),
        ({"http_proxy": "p.example:3128"}, "http://p.example:3128", None),
        ({"http_proxy": "http://p.example/"}, "http://p.example:80", None),
        ({"https_proxy": "https://p.example"}, None, "https://p.example:443"),
        ({"https_proxy": "HTTP://p.example:3128"}, None, "http://p.example:3128"),
        ({"https_proxy": "http://[::1]:3128"}, None, "http://[::1]:3128"),
        ({"HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, None, None),
        ({"http_proxy": "http://p:1", "REQUEST_METHOD": "GET"}, "http://p:1", None),
    ],
)
def test_a_variable_names_the_proxy_of_a_scheme(
    environ: dict[str, str], http: str | None, https: str | None
) -> None:
    found = read_proxies(environ)

    assert (found.http and found.http.proxy, found.https and found.https.proxy) == (http, https)


def test_a_user_and_a_password_are_decoded_and_not_shown() -> None:
    found = read_proxies({"https_proxy": "http://m%40e:s3%3Acret@p.example:3128"})

    assert found.https is not None
    assert (found.https.proxy, found.https.secret) == ("http://p.example:3128", ("m@e", "s3:cret"))
    assert "cret" not in repr(found)


@pytest.mark.parametrize(
    "value",
    [
        "ftp://s3cret:1",
        "http://",
        "http://h:99999",
        "http://s3cret:1/path",
        "http://u:s3cret@",
        "::",
    ],
)
def test_what_is_no_proxy_is_refused_by_the_name_of_its_variable_without_its_value(
    value: str,
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_proxies({"HTTPS_PROXY": value})

    assert "HTTPS_PROXY" in caught.value.message
    assert "-o proxy=direct" in caught.value.hint
    assert "s3cret" not in f"{caught.value.message}{caught.value.hint}"
