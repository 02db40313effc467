"""An audit by lists counts what agrees in all at once, and looks at the rest with care."""

from resourcesync.destination.options import Filters
from resourcesync.destination.reports import FindingKind
from tests.support.world import World


def test_a_copy_in_doubt_is_not_counted_as_accurate_though_its_memory_agrees(world: World) -> None:
    world.pull()
    (world.folder / "objects/0001.html").write_text("altered here")
    world.audit(method="stat")

    report = world.audit(method="lists")

    assert (report.listed, report.present, report.accurate) == (41, 41, 40)
    assert [(it.kind, it.path) for it in report.findings] == [
        (FindingKind.DIFFERENT, "objects/0001.html")
    ]


def test_a_copy_that_is_not_wanted_any_more_is_not_counted(world: World) -> None:
    world.pull()
    world.pull(filters=Filters(exclude=("0001.html",)), mode="baseline", delete="never")

    report = world.audit(method="lists")

    assert (report.listed, report.present, report.accurate) == (40, 40, 40)
    assert report.findings == ()
