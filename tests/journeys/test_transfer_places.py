"""Mirrors by priority, then the resource itself, then the memento (§14.2, §14.6); raw sockets."""

import hashlib
import re
from html import escape

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.settings.mirror import Network
from tests.support.servers.hostile_server import HostileServer, answer
from tests.support.sources.scripted_source import ScriptedSource, duplicate, serve

BODY, OTHER = b"the listed bytes", b"the newest bytes"
X = "/x.txt"


def reaching(*servers: HostileServer, **more: object) -> Network:
    """Let the test's other loopback origins be connected, as public ones would be."""
    origins = tuple(server.origin for server in servers)
    return Network(retries=0, timeout=2.0, allow_origins=origins, **more)  # type: ignore[arg-type]


def memento(href: str) -> str:
    return f'<rs:ln rel="memento" href="{escape(href)}"/>'


@pytest.mark.founding("0.9 §8.1", "Prioritized mirror locations spare the Source", "`pull`")
def test_the_preferred_mirror_is_asked_and_the_resource_itself_left_alone(
    source: ScriptedSource, far: HostileServer
) -> None:
    second = far.on("/second", serve(BODY))
    first = far.on("/first", serve(BODY))
    source.put(X, BODY, links=duplicate(second, 2) + duplicate(first, 1))

    report = source.pull(reaching(far))

    assert (report.state, report.fetched.verified) == (MirrorState.IN_SYNC, 1)
    assert source.file(X) == BODY
    assert far.targets() == ["/first"]
    assert X not in source.server.targets()


@pytest.mark.parametrize(
    "bad",
    [answer("404 Not Found"), answer("200 OK", OTHER), answer("503 No"), answer("200 OK", b"x")],
)
def test_a_mirror_that_fails_or_lies_is_passed_over(
    source: ScriptedSource, far: HostileServer, bad: list[bytes]
) -> None:
    links = duplicate(far.on("/a", bad), 1) + duplicate(far.on("/b", bad), 2)
    source.put(X, BODY, links=links)

    report = source.pull(reaching(far))

    assert (report.state, report.fetched.verified) == (MirrorState.IN_SYNC, 1)
    assert far.targets() == ["/a", "/b"]
    assert source.server.targets().count(X) == 1
    assert source.file(X) == BODY


def test_a_thousand_resources_with_a_dead_mirror_are_all_had(source: ScriptedSource) -> None:
    with HostileServer("127.0.0.2") as dead:
        address = dead.origin
    for number in range(300):
        source.put(f"/{number}.txt", f"{number}".encode(), links=duplicate(f"{address}/{number}"))

    report = source.pull(Network(retries=0, timeout=2.0, allow_origins=(address,)))

    assert (report.state, report.created, report.failed) == (MirrorState.IN_SYNC, 300, 0)


def test_a_mirror_elsewhere_is_not_asked_without_a_digest(
    source: ScriptedSource, far: HostileServer
) -> None:
    source.put(X, BODY, links=duplicate(far.on("/a", serve(OTHER))), digest="")

    source.pull(reaching(far))

    assert far.targets() == []
    assert X in source.server.targets()


@pytest.mark.founding(
    "0.9 §8.1", "A mirror of another protocol, such as `gsiftp:`, is passed over", "`pull`"
)
@pytest.mark.parametrize(
    "href",
    [
        "ftp://127.0.0.2/x",
        "gsiftp://gridftp.example.com/res1",
        "file:///etc/passwd",
        "http://user:secret@127.0.0.2/x",
        "javascript:1",
        "http://127.1/x",
        "http://127.0.0.2:0/",
        "",
    ],
)
def test_a_mirror_that_is_no_address_is_as_if_it_were_not_there(
    source: ScriptedSource, href: str
) -> None:
    source.put(X, BODY, links=duplicate(href))

    assert source.pull().state is MirrorState.IN_SYNC
    assert X in source.server.targets()


def test_a_mirror_inside_our_own_network_is_not_connected(
    source: ScriptedSource, far: HostileServer
) -> None:
    source.put(X, BODY, links=duplicate(far.on("/a", serve(BODY))))

    assert source.pull().state is MirrorState.IN_SYNC
    assert far.connections == 0


def test_secrets_never_go_to_a_mirror_nor_to_a_memento(
    source: ScriptedSource, far: HostileServer
) -> None:
    source.put(
        X,
        BODY,
        links=duplicate(far.on("/a", answer("404 No"))) + memento(far.on("/m", serve(BODY))),
    )
    source.server.on(X, serve(OTHER))

    source.pull(reaching(far, headers=(("X-Api-Key", "s3cret"),)))

    assert all(a.fields.get("x-api-key") == "s3cret" for a in source.server.asked)
    assert far.targets() == ["/a", "/m"]
    assert "s3cret" not in "".join(asked.text for asked in far.asked)


@pytest.mark.founding("0.9 §8.1", "Mirrors are used with an MD5 only, as weak evidence", "`pull`")
@pytest.mark.parametrize("served", [BODY, OTHER])
def test_a_weak_digest_is_weak_evidence_of_what_a_mirror_elsewhere_serves(
    source: ScriptedSource, far: HostileServer, served: bytes
) -> None:
    md5 = f"md5:{hashlib.md5(BODY).hexdigest()}"
    source.put(X, BODY, links=duplicate(far.on("/a", serve(served))), digest=md5)

    report = source.pull(reaching(far))

    assert far.targets() == ["/a"]
    assert (X in source.server.targets()) == (served == OTHER)
    assert source.file(X) == BODY
    assert (report.state, report.fetched.weak, report.fetched.verified) == ("in sync", 1, 0)


@pytest.mark.founding("0.9 §8.5", "A Destination asks a TimeGate for the listed moment", "`pull`")
def test_a_resource_that_moved_on_is_had_from_its_timegate_of_the_listed_moment(
    source: ScriptedSource, far: HostileServer
) -> None:
    far.on("/m", serve(BODY))
    gate = far.on("/gate", answer("302 Found", Location=f"{far.origin}/m"))
    source.put(X, BODY, links=f'<rs:ln rel="timegate" href="{escape(gate)}"/>')
    source.server.on(X, serve(OTHER))

    report = source.pull(reaching(far))

    assert (report.state, report.fetched.verified) == (MirrorState.IN_SYNC, 1)
    assert source.file(X) == BODY
    assert far.targets() == ["/gate", "/m"]
    (asked,) = (asked.text for asked in far.asked if "/gate" in asked.text)
    assert re.search(r"(?im)^accept-datetime: \w{3}, \d\d \w{3} 20\d\d [\d:]{8} GMT\b", asked)


@pytest.mark.parametrize("newer", [OTHER, OTHER * 2])
def test_a_resource_that_moved_on_is_had_from_its_memento(
    source: ScriptedSource, far: HostileServer, newer: bytes
) -> None:
    source.put(X, BODY, links=memento(far.on("/m", serve(BODY))))
    source.server.on(X, serve(newer))

    report = source.pull(reaching(far))

    assert (report.state, report.fetched.verified) == (MirrorState.IN_SYNC, 1)
    assert source.file(X) == BODY
    assert source.server.targets().count(X) == 2
    assert far.targets() == ["/m"]


def test_a_memento_is_not_asked_when_it_is_not_needed_or_cannot_be_checked(
    source: ScriptedSource, far: HostileServer
) -> None:
    far.on("*", serve(BODY))
    source.put(X, BODY, links=memento(f"{far.origin}/1"))
    source.put("/gone.txt", BODY, links=memento(f"{far.origin}/2"), serving=False)
    source.put("/weak.txt", BODY, links=memento(f"{far.origin}/3"), digest="")
    source.server.on("/weak.txt", serve(BODY * 2))

    source.pull(reaching(far))

    assert far.targets() == []
