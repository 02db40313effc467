"""``ca_file``, ``ca_file`` in the configuration, and both ways of the library."""

import ssl
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

import resourcesync
from resourcesync.adapters.system import SystemClock
from resourcesync.cli.main import run
from resourcesync.errors import ConfigurationError, SourceRefusedError
from tests.support.commands.command_line import Said
from tests.support.commands.run import files_of
from tests.support.servers.hostile_server import HostileServer, answer
from tests.support.servers.proxying import Proxy

SENT = "Basic " + b64encode(b"me:s3cret").decode()


@pytest.fixture
def secure(here: Path) -> Iterator[HostileServer]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(here / "ca.pem"))
    trustme.CA().cert_pem.write_to_path(str(here / "other.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with HostileServer(tls=context) as server:
        now = SystemClock().now().strftime("%Y-%m-%dT%H:%M:%SZ")
        body = (
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
            ' xmlns:rs="http://www.openarchives.org/rs/terms/">'
            f'<rs:md capability="resourcelist" at="{now}"/>'
            f"<url><loc>{server.origin}/a.txt</loc></url></urlset>"
        )
        server.on("/list.xml", answer(body=body.encode(), Content_Type="application/xml"))
        server.on("/a.txt", answer(body=b"a"))
        yield server


def test_a_source_of_an_own_authority_is_pulled_with_its_file(
    secure: HostileServer, said: Said
) -> None:
    uri = f"{secure.origin}/list.xml"

    assert run(["pull", uri, "here", "-o", "ca_file=other.pem"]) == 6
    assert "-o ca_file" in said.readouterr().err
    assert not Path("here").exists()
    assert run(["pull", uri, "here", "-o", "ca_file=ca.pem"]) == 0
    assert files_of(Path("here")) == {"a.txt": b"a"}


def test_the_library_asks_by_a_proxy_and_trusts_a_file(secure: HostileServer, here: Path) -> None:
    with Proxy() as proxy:
        uri = f"{secure.origin}/list.xml"
        mirror = resourcesync.Mirror(
            uri, here / "lib", proxy=proxy.url, proxy_auth=("me", "s3cret"), ca_file=here / "ca.pem"
        )
        network = resourcesync.Network(proxy=proxy.url, ca_file=str(here / "ca.pem"))

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
