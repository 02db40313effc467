"""Schemas of settings: what options, file, variables and library make of one description."""

from datetime import datetime, timedelta
from typing import Any, get_type_hints

import msgspec
import pytest

from resourcesync.app.keywords import (
    OF_REQUESTS,
    MirrorOptions,
    PublisherOptions,
    mirror_settings,
    publisher_settings,
)
from resourcesync.destination.options import PullOptions
from resourcesync.errors import ConfigurationError
from resourcesync.model.settings import Limit
from resourcesync.settings.mirror import Network
from resourcesync.settings.schema import fields_of, from_file, from_variable
from resourcesync.source.publication_settings import PublicationSettings


@pytest.mark.parametrize(
    ("keywords", "schema"), [(MirrorOptions, PullOptions), (PublisherOptions, PublicationSettings)]
)
def test_the_library_has_a_keyword_for_each_setting_that_is_for_it(
    keywords: type, schema: type[msgspec.Struct]
) -> None:
    wanted = {field.name for field in fields_of(schema).values() if field.setting.in_library}

    assert set(get_type_hints(keywords)) - OF_REQUESTS.keys() == wanted


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("jobs", "8", 8),
        ("trash", "7d", 604_800.0),
        ("rate", "5/s", 5.0),
        ("bwlimit", "2M", 2_000_000),
        ("delete", "never", "never"),
        ("fail_fast", "true", True),
        ("include", "/a/** /b/**", ("/a/**", "/b/**")),
        ("max_size", "", ""),
    ],
)
def test_a_variable_has_the_value_that_the_file_has(key: str, text: str, value: object) -> None:
    field = fields_of(PullOptions, Network)[key]
    written: Any = text
    if field.is_flag:
        written = True
    elif field.is_many:
        written = text.split()
    elif field.is_whole:
        written = int(text)

    assert from_variable(field, text) == from_file(field, written) == value


@pytest.mark.parametrize(
    ("key", "written", "message"),
    [
        ("jobs", 0, "must be from 1 to 1000"),
        ("jobs", "8", "must be a whole number"),
        ("jobs", True, "must be a whole number"),
        ("delete", "sometimes", "must be one of auto, signalled, absent, never"),
        ("include", "/a/**", "must be a list of strings"),
        ("include", ["/a/**", 1], "must be a list of strings"),
        ("fail_fast", "yes", "must be true or false"),
        ("trash", "soon", "is wrong"),
        ("mode", 1, "must be a string"),
        ("header", ["Cookie: a=b"], "must not contain Cookie"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_right(
    key: str, written: object, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        from_file(fields_of(PullOptions, Network)[key], written)


@pytest.mark.parametrize("text", ["1_0", "+5", " 5", "5.0", ""])
def test_a_whole_number_in_a_variable_is_written_in_digits(text: str) -> None:
    with pytest.raises(ConfigurationError, match="must be a whole number"):
        from_variable(fields_of(Network)["jobs"], text)


def test_the_library_takes_what_the_command_line_takes() -> None:
    texts = mirror_settings(
        {"max_size": "5M", "trash": "30d", "max_delete": "10%", "since": "-7d", "max_bytes": "2G"}
    )
    values = mirror_settings(
        {
            "max_size": 5_000_000,
            "trash": 2_592_000.0,
            "since": timedelta(days=-7),
            "max_bytes": 2_000_000_000,
        }
    )

    assert texts == values


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_size": "big"}, "max_size='big' is wrong"),
        ({"max_bytes": -1}, "max_bytes=-1 is negative"),
        ({"delete": "all"}, "delete='all' must be one of auto"),
        ({"delete": False}, "delete=False must be one of auto"),
        ({"verify": 5}, "verify=5 must be one of strict"),
        ({"fail_fast": 1}, "fail_fast=1 must be true or false"),
        ({"max_bytes": [1]}, "must be a number"),
        ({"max_bytes": True}, "must be a number"),
        ({"trash": b"5"}, "must be a number"),
        ({"since": 5}, "must be a timedelta, or a datetime with"),
        ({"mapper": 5}, "must be a string"),
        ({"include": "/a/**"}, "must be a list of strings"),
        ({"include": [1]}, r"include=\[1\] must be a list of strings"),
        ({"set_name": 1.5}, "set_name=1.5: Expected"),
        ({"network": {}}, "network must be a Network"),
        ({"proxy": 1}, "proxy: is wrong"),
        ({"proxy_auth": ("me", 5)}, "proxy_auth: Expected"),
        ({"ca_file": 5}, "ca_file=5 must be a string"),
        ({"since": datetime(2026, 1, 1)}, "with a time zone"),  # noqa: DTZ001 - the mistake
    ],
)
def test_a_wrong_keyword_is_refused_by_its_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        mirror_settings(options)


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ({"include": ()}, "include", ()),
        ({"include": [""]}, "include", ()),
        ({"exclude": ""}, "exclude", ()),
        ({"max_size": ""}, "max_size", None),
        ({"since": ""}, "since", None),
        ({"trash": 30}, "trash", 30.0),
        ({"set_name": 2}, "set_name", "2"),
        ({"max_delete": 250}, "max_delete", Limit(number=250)),
    ],
)
def test_a_keyword_means_what_it_means_on_the_command_line(
    options: dict[str, Any], name: str, value: object
) -> None:
    assert getattr(mirror_settings(options)[0], name) == value


def test_none_means_not_given_for_each_keyword() -> None:
    nothing = dict.fromkeys(MirrorOptions.__annotations__)

    assert mirror_settings(nothing) == mirror_settings({})
    assert publisher_settings(dict.fromkeys(PublisherOptions.__annotations__), "Publisher") == {}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"retries": 1.5}, "retries: must be a whole number"),
        ({"jobs": 0}, "jobs: must be from 1 to 1000"),
        ({"timeout": -1}, "timeout: is negative"),
        ({"robots": "no"}, "robots: must be one of obey, ignore"),
        ({"headers": {"A": "b"}}, "headers: Expected `array`, got `object`"),
        ({"credentials": ["me"]}, "credentials: Expected"),
    ],
)
def test_a_wrong_setting_of_requests_is_refused_where_it_is_written(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Network(**values)
