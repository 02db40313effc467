"""A program that stops a pull in the middle of a package need not fetch the package again."""

from pathlib import Path
from random import Random

import pytest

from resourcesync import Event, Mirror, MirrorState
from resourcesync.destination.destination import Destination
from resourcesync.destination.options import PullOptions
from resourcesync.errors import StoppedError
from tests.support.servers.tiny_source import STAMP, Answer, TinySource
from tests.support.worlds.dump_source import DumpSource, Packed, Told, many, sha256, zipped
from tests.support.worlds.network import BASE
from tests.support.worlds.network import Answer as WorldAnswer
from tests.support.worlds.world import World


def test_a_package_that_was_being_read_is_kept_for_the_next_pull(tmp_path: Path) -> None:
    noise = Random(1)
    with TinySource() as source:
        files = {f"/r/{n:03}": noise.randbytes(5_000) for n in range(270)}
        source.offer(files)
        told = [
            Told(name=target.removeprefix("/"), data=body, base=f"{source.url}/")
            for target, body in files.items()
        ]
        package = zipped(told)
        assert len(package) > 1 << 20  # less is not worth keeping
        source.answers["/d.zip"] = Answer(body=package, headers={"ETag": '"1"'})
        row = (
            f"<url><loc>{source.url}/d.zip</loc>"
            f'<rs:md type="application/zip" length="{len(package)}"'
            f' hash="{sha256(package)}"/></url>'
        )
        source.put_document("/dump.xml", f'<rs:md capability="resourcedump" at="{STAMP}"/>', [row])
        source.put_document(
            "/capabilitylist.xml",
            '<rs:md capability="capabilitylist"/>',
            [
                source.pointer("/resourcelist.xml", "resourcelist"),
                source.pointer("/dump.xml", "resourcedump"),
            ],
        )
        mirror = Mirror(source.url, tmp_path / "mirror", dumps="always")

        def stop_at_the_first(event: Event) -> None:
            if event.kind == "item":
                raise StoppedError("the program asked to stop")

        with pytest.raises(StoppedError):
            mirror.pull(on_event=stop_at_the_first)
        assert "/d.zip" in {asked.target for asked in source.asked}
        source.asked.clear()

        report = mirror.pull()

        assert report.state is MirrorState.IN_SYNC
        asked = {asked.target for asked in source.asked}
        assert "/d.zip" not in asked
        assert not any(target.startswith("/r/") for target in asked)


def test_a_pull_that_is_cancelled_ends_before_the_next_member_of_a_package(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", DumpSource())
    told = many(20)
    world.source.publish(told)
    body = zipped(told)
    world.source.dump(Packed(name="d.zip", body=body))
    with world.dependencies() as dependencies:
        cancel = dependencies.cancel

        def cancelling(_: object) -> WorldAnswer:
            cancel.cancel()
            return WorldAnswer(body=body)

        world.network.answers[BASE + "d.zip"] = cancelling
        with pytest.raises(StoppedError):
            Destination(dependencies).pull(PullOptions(dumps="always"))
    assert world.files() == {}
