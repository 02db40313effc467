"""``proxy``, ``proxy_auth`` and ``ca_file``: on every command that asks, in the file, and
in the library; no secret is ever shown."""

import shutil
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

import resourcesync
from resourcesync.cli.main import run
from resourcesync.errors import ConfigurationError, SourceRefusedError
from tests.support.commands.command_line import Said
from tests.support.commands.run import files_of
from tests.support.commands.settings_file import museum as table
from tests.support.commands.settings_file import put
from tests.support.servers.hostile_server import HostileServer
from tests.support.servers.proxying import Proxy
from tests.support.servers.tiny_source import TinySource

AUTH = '[auth.door]\ntype = "basic"\nusername = "me"\npassword = { env = "DOOR" }\n'
SENT = "Basic " + b64encode(b"me:s3cret").decode()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as running:
        yield running


def by(proxy: Proxy) -> set[str]:
    return {asked.fields.get("proxy-authorization", "") for asked in proxy.asked}


ASKING = [
    ("pull", "{url}", "here"),
    ("pull", "{url}", "here", "--dry-run"),
    ("explore", "{url}"),
    ("validate", "{url}"),
    ("audit", "museum"),
    ("audit", "museum", "--method", "remote"),
    ("repair", "museum"),
    ("why", "museum", "a.txt"),
]


@pytest.mark.parametrize("command", ASKING, ids=" ".join)
def test_every_command_that_asks_asks_by_the_proxy_of_an_option_or_of_the_environment(
    command: tuple[str, ...],
    source: TinySource,
    proxy: Proxy,
    museum: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = [word.format(url=source.url) for word in command]
    Path(museum, "a.txt").write_bytes(b"altered")

    assert run([*words, "-o", f"proxy={proxy.origin}"]) in {0, 1}
    assert source.asked
    assert len(proxy.asked) == len(source.asked)
    source.asked.clear()
    proxy.asked.clear()
    shutil.rmtree("here", ignore_errors=True)
    monkeypatch.setenv("HTTP_PROXY", proxy.origin.replace("//", "//me:s3cret@"))
    assert run(words) in {0, 1}
    assert len(proxy.asked) == len(source.asked) > 0
    assert by(proxy) == {SENT}


@pytest.mark.parametrize("command", [["pull"], ["audit", "--method", "remote"], ["explore"]])
def test_the_secret_of_the_proxy_is_sent_to_it_and_never_shown(
    command: list[str],
    source: TinySource,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    said: Said,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("DOOR", "s3cret")
    put(AUTH + table(source, f'proxy = "{proxy.origin}"\nproxy_auth = "door"'))
    assert run(["pull", "museum"]) == 0
    proxy.asked.clear()

    run([command[0], "museum", *command[1:], "-vv", "--json"])
    run(["config", "show", "--origin"])
    run(["doctor", "museum"])

    assert by(proxy) == {SENT}
    assert not any("Proxy-Authorization" in asked.headers for asked in source.asked)
    captured = said.readouterr()
    for shown in (captured.out, captured.err, caplog.text):
        assert "s3cret" not in shown
        assert SENT not in shown
    kept = b"".join(path.read_bytes() for path in Path("copies").rglob("*") if path.is_file())
    assert b"s3cret" not in kept


def test_the_secret_of_one_proxy_is_not_sent_to_another(
    source: TinySource, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOOR", "s3cret")
    first = 'proxy = "http://127.0.0.1:9"\nproxy_auth = "door"'
    own = table(source, f'proxy = "{proxy.origin}"')

    put(f"{AUTH}[defaults]\n{first}\n{own}")
    for command in (["pull"], ["explore"], ["audit", "--method", "remote"]):
        run([command[0], "museum", *command[1:]])
    put(AUTH + table(source, first))
    for command in (["pull"], ["explore"], ["audit", "--method", "remote"]):
        run([command[0], "museum", *command[1:], "-o", f"proxy={proxy.origin}"])
    monkeypatch.setenv("RESOURCESYNC_MIRROR__MUSEUM__PROXY", proxy.origin)
    run(["pull", "museum"])
    monkeypatch.delenv("RESOURCESYNC_MIRROR__MUSEUM__PROXY")
    put(f"{AUTH}[defaults]\n{first}\n")
    run(["pull", source.url, "other", "-o", f"proxy={proxy.origin}"])

    assert len(proxy.asked) > 8
    assert by(proxy) == {""}


def test_a_host_in_no_proxy_is_asked_directly(
    source: TinySource, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy.origin)
    monkeypatch.setenv("NO_PROXY", "example.org,127.0.0.0/8")

    assert run(["pull", source.url, "here"]) == 0

    assert not proxy.asked


def test_doctor_names_the_proxy_that_counts_without_its_secret(
    source: TinySource, proxy: Proxy, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.origin.replace("//", "//me:s3cret@"))

    run(["doctor", source.url])
    named = said.readouterr().out
    run(["doctor", source.url, "-o", "proxy=direct"])
    direct = said.readouterr().out

    assert f"reached through the proxy {proxy.origin}" in named
    assert "proxy" not in direct
    assert "s3cret" not in named
    assert named.count("lists can be read") == direct.count("lists can be read") == 1


def test_a_source_of_an_own_authority_is_pulled_with_its_file(
    secure: HostileServer, said: Said
) -> None:
    uri = f"{secure.origin}/list.xml"

    assert run(["pull", uri, "here", "-o", "ca_file=other.pem"]) == 6
    assert "-o ca_file" in said.readouterr().err
    assert not Path("here").exists()
    assert run(["pull", uri, "here", "-o", "ca_file=ca.pem"]) == 0
    assert files_of(Path("here")) == {"a.txt": b"abc"}


def test_the_library_asks_by_a_proxy_and_trusts_a_file(secure: HostileServer, here: Path) -> None:
    with Proxy() as proxy:
        uri = f"{secure.origin}/list.xml"
        mirror = resourcesync.Mirror(
            uri,
            here / "lib",
            proxy=proxy.origin,
            proxy_auth=("me", "s3cret"),
            ca_file=here / "ca.pem",
        )
        network = resourcesync.Network(proxy=proxy.origin, ca_file=str(here / "ca.pem"))

        assert mirror.pull().created == 1
        assert {asked.fields.get("proxy-authorization") for asked in proxy.asked} == {SENT}
        proxy.asked.clear()
        source = resourcesync.discover(uri, network=network)
        assert [resource.uri for resource in source.resources()] == [f"{secure.origin}/a.txt"]
        list(resourcesync.validate(uri, network=network))
        assert len(proxy.asked) >= 3
        with pytest.raises(SourceRefusedError):
            resourcesync.discover(
                uri, network=resourcesync.Network(ca_file=str(here / "other.pem"))
            )


def test_the_library_refuses_what_cannot_work_where_it_is_written(here: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resourcesync.Mirror("https://h.example/", here / "lib", proxy="http://me:s3cret@h:1")
    assert "s3cret" not in str(caught.value) + repr(caught.value)
    with pytest.raises(ConfigurationError, match="no proxy"):
        resourcesync.Mirror("https://h.example/", here / "lib", proxy_auth=("me", "s3cret"))
    with pytest.raises(ConfigurationError, match="control character"):
        resourcesync.Mirror(
            "https://h.example/", here / "lib", proxy="http://h:1", proxy_auth=("me", "s3cret\0")
        )
    assert "s3cret" not in repr(resourcesync.Network(proxy_auth=("me", "s3cret")))
