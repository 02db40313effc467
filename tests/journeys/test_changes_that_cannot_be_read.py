"""A change that cannot be read costs its entry: the rest goes on, and nothing is deleted by it."""

from pathlib import Path
from typing import Final

import pytest

from resourcesync.destination.audits.explain import ResourceVerdict
from resourcesync.destination.reports import MirrorState, RunReport
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World
from tests.support.worlds.written_source import WrittenList, WrittenSource

ODD: Final = {
    "no kind": ('change="updated" ', ""),
    "an unknown kind": ('change="updated"', 'change="touched"'),
    "a second rs:md with the change": (
        '<rs:md change="updated"',
        '<rs:md/><rs:md change="updated"',
    ),
}


class OddSource(WrittenSource):
    odd = ("", "")

    def _document(self, name: str) -> str | None:
        text = super()._document(name)
        if text is None or name != "c.xml":
            return text
        head, mark, rest = text.rpartition(f"<url><loc>{BASE}3.html</loc>")
        return head + mark + rest.replace(*self.odd, 1)


@pytest.fixture
def world(tmp_path: Path) -> World[OddSource]:
    made = World(tmp_path / "mirror", OddSource())
    made.source.written.lists = [WrittenList("c.xml", from_=0)]
    return made


def pull_at(world: World[OddSource], seconds: float) -> RunReport:
    world.source.wait_until(seconds)
    return world.pull()


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_the_other_changes_are_made_and_the_entry_is_refused(
    world: World[OddSource], odd: tuple[str, str], *, first: bool
) -> None:
    world.source.odd = odd
    (changes,) = world.source.written.lists
    if not first:
        assert pull_at(world, 5).state is MirrorState.IN_SYNC
    world.source.change(changes, "1.html", "new", 10)
    world.source.change(changes, "3.html", "new", 11)
    world.source.change(changes, "5.html", "", 12)

    report = pull_at(world, 20)

    assert (report.listed.refused, report.state) == (1, MirrorState.BEHIND)
    assert "1.html" in world.texts()
    assert world.texts()["1.html"] == "new"
    assert [fields["uri"] for fields in world.told("item") if fields["action"] == "refuse"] == [
        BASE + "3.html"
    ]
    if not first:
        assert world.why("3.html").verdict is ResourceVerdict.REFUSED
    world.source.odd = ("", "")
    world.source.change(changes, "3.html", "newer", 30)
    assert pull_at(world, 40).state is MirrorState.IN_SYNC
    assert world.in_sync()
