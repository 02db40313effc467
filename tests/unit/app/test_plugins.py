"""Plug-ins of other distributions: found by their entry points, imported when they are used."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.app import plugins
from resourcesync.errors import ConfigurationError
from tests.support.accounts.distributions import install


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_name_that_nobody_brings_is_refused_with_those_that_are_there(site: Path) -> None:
    install(site, "acme_one", {plugins.ENGINES: {"there": "acme_one:go"}}, "def go(): ...\n")
    with pytest.raises(ConfigurationError, match="no plug-in 'gone'") as caught:
        plugins.load(plugins.ENGINES, "gone")
    assert caught.value.code == "no-plugin"
    assert ("installed", "there") in caught.value.evidence


def test_two_distributions_with_one_name_are_refused_and_both_are_named(site: Path) -> None:
    for name in ("acme_left", "acme_right"):
        install(site, name, {plugins.ENGINES: {"same": f"{name}:go"}}, "def go(): ...\n")
    with pytest.raises(ConfigurationError, match="several") as caught:
        plugins.load(plugins.ENGINES, "same")
    assert caught.value.code == "ambiguous-plugin"
    assert len(caught.value.evidence) == 2


@pytest.mark.parametrize(
    ("code", "value", "said"),
    [
        ("raise RuntimeError('no luck')", "acme_bad:go", "RuntimeError: no luck"),
        ("", "acme_bad:go", "AttributeError"),
        ("go = 7", "acme_bad:go", "int, not a callable"),
        ("", "acme_nowhere:go", "ModuleNotFoundError"),
    ],
)
def test_a_plug_in_that_cannot_be_imported_is_a_mistake_of_configuration(
    site: Path, code: str, value: str, said: str
) -> None:
    install(site, "acme_bad", {plugins.PATCHES: {"text/x-bad": value}}, code)
    with pytest.raises(ConfigurationError, match="cannot be used") as caught:
        plugins.load(plugins.PATCHES, "text/x-bad")
    assert caught.value.code == "bad-plugin"
    assert said in caught.value.evidence[1][1]
    assert "acme_bad 1.2" in caught.value.evidence[0][1]


def test_a_plug_in_of_others_never_replaces_one_of_ours(site: Path) -> None:
    name = "application/json-patch+json"
    points = {plugins.PATCHES: {name: "acme_store:go"}}
    install(site, "acme_store", points, "def go(): ...\n")

    assert plugins.find(plugins.PATCHES, name).distribution == "resourcesync"
    assert not [plugin for plugin in plugins.installed() if plugin.distribution == "acme_store"]


def test_nothing_but_a_few_files_is_read_where_nobody_brings_a_plug_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(tmp_path, "acme_one", {plugins.ENGINES: {"there": "acme_one:go"}}, "")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "missing")])
    monkeypatch.delitem(sys.modules, "importlib.metadata")

    assert plugins.plugins_in(plugins.COMMANDS) == []
    assert "importlib.metadata" not in sys.modules
    assert [plugin.name for plugin in plugins.plugins_in(plugins.ENGINES)] == ["there"]
