"""HTTP/2 is used where it is offered: nginx's own log says so."""

from pathlib import Path

import pytest
import trustme

from resourcesync.adapters.system import SystemClock
from resourcesync.app.mirrors.mirror_state import Home
from resourcesync.app.mirrors.opening import open_destination
from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.ports import CancelToken
from resourcesync.settings.mirror import Network
from tests.support.commands.run import files_of, resourcesync
from tests.support.servers.nginx import Certificate, installed, serving

pytestmark = pytest.mark.skipif(not installed(), reason="nginx is not here")
FILES = 600


@pytest.fixture
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for number in range(FILES):
        path = root / f"d{number % 9}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"content of {number}\n")
    return root


@pytest.fixture
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Certificate]:
    folder = tmp_path_factory.mktemp("authority")
    made = trustme.CA()
    made.cert_pem.write_to_path(folder / "ca.pem")
    certificate = made.issue_cert("127.0.0.1")
    for blob in certificate.cert_chain_pems:
        blob.write_to_path(folder / "chain.pem", append=True)
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    chain = Certificate(chain=folder / "chain.pem", key=folder / "key.pem")
    return str(folder / "ca.pem"), chain


def pull(url: str, mirror: Path, ca_file: str) -> RunReport:
    with open_destination(
        Home(mirror),
        source=url,
        network=Network(retries=0, ca_file=ca_file),
        report=lambda event, fields: None,
        cancel=CancelToken(SystemClock()),
    ) as destination:
        return destination.pull(PullOptions())


def test_http2_is_used_where_it_is_offered_and_one_connection_carries_all(
    tree: Path, tmp_path: Path, authority: tuple[str, Certificate]
) -> None:
    ca_file, certificate = authority
    with serving(tree, tmp_path / "nginx", certificate=certificate, http2=True) as server:
        assert resourcesync("publish", tree, "--url", server.url, cwd=tmp_path).code == 0
        report = pull(server.url, tmp_path / "mirror", ca_file)
        asked = server.take()

    assert (report.state, report.created) == (MirrorState.IN_SYNC, FILES)
    assert files_of(tmp_path / "mirror") == files_of(tree)
    assert {asked.protocol for asked in asked} == {"HTTP/2.0"}
    assert len(asked) >= FILES
    assert len({asked.connection for asked in asked}) <= 2
