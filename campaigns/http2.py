"""The same Source over HTTP/2 and over HTTP/1.1, both behind TLS: connections, time, work."""

import time
from pathlib import Path
from typing import Final

import trustme

from campaigns.generated import installed
from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.adapters.system import SystemClock
from resourcesync.app.mirrors.opening import open_destination
from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import MirrorState
from resourcesync.ports.cancellation import CancelToken
from resourcesync.settings.network import Network
from tests.support.commands.run import resourcesync
from tests.support.servers.nginx import Certificate, serving


def run(asked: Asked) -> Outcome:
    """Pull everything twice and compare what the server wrote down."""
    outcome, tree = Outcome(), asked.folder / "tree"
    if not installed():
        outcome.missing = "nginx is not here"
        return outcome
    for number in range(asked.size):
        path = tree / f"{number // 1_000:03d}" / f"{number:06d}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {number}\n")
    ca_file, certificate = _authority(asked.folder)
    for protocol, http2 in (("HTTP/2.0", True), ("HTTP/1.1", False)):
        folder = asked.folder / protocol[5:]
        folder.mkdir()
        with serving(tree, folder / "nginx", certificate=certificate, http2=http2) as server:
            resourcesync("publish", tree, "--url", server.url, cwd=asked.folder)
            began, used = time.monotonic(), time.process_time()
            state = _pull(server.url, folder / "mirror", ca_file)
            outcome.add(f"{protocol}: seconds", time.monotonic() - began)
            outcome.add(f"{protocol}: seconds of processor time", time.process_time() - used)
            lines = server.take()
        connections = len({line.connection for line in lines})
        outcome.add(f"{protocol}: requests", len(lines))
        outcome.add(f"{protocol}: connections", connections)
        outcome.require(state is MirrorState.IN_SYNC, f"{protocol}: {state}")
        outcome.require({line.protocol for line in lines} == {protocol}, f"{protocol} was not used")
        outcome.require(not http2 or connections <= 2, f"HTTP/2 took {connections} connections")
    return outcome


def _pull(url: str, mirror: Path, ca_file: str) -> MirrorState:
    with open_destination(
        mirror,
        source=url,
        network=Network(ca_file=ca_file),
        report=lambda _event, _fields: None,
        cancel=CancelToken(SystemClock()),
    ) as destination:
        return destination.pull(PullOptions()).state


def _authority(folder: Path) -> tuple[str, Certificate]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    made = authority.issue_cert("127.0.0.1")
    for blob in made.cert_chain_pems:
        blob.write_to_path(folder / "chain.pem", append=True)
    made.private_key_pem.write_to_path(folder / "key.pem")
    return str(folder / "ca.pem"), Certificate(chain=folder / "chain.pem", key=folder / "key.pem")


CAMPAIGN: Final = Campaign(run=run, size=5_000, unit="resources")
