"""Three Sources of the founding documents over sixty days, pulled daily and with missed days."""

import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.simulated.days import Days, live_days
from tests.support.worlds.daily_source import DailySource, Form
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World

SEEDS = 2
MISSED = 0.2


def lived(folder: Path, form: Form, missed: float) -> list[Days]:
    return [
        live_days(folder / f"{seed}", DailySource(form), random.Random(f"{seed}"), missed=missed)
        for seed in range(SEEDS)
    ]


NIGHT = pytest.mark.night


@pytest.mark.founding(
    "D-Lib §3", "arXiv: daily Change Lists, a Resource List at intervals", "`pull` from cron"
)
@pytest.mark.parametrize(
    ("form", "missed"),
    [
        pytest.param("daily", 0, marks=NIGHT),
        ("daily", MISSED),
        ("window", 0),
        pytest.param("window", MISSED, marks=NIGHT),
        pytest.param("newest-first", 0, marks=NIGHT),
        ("newest-first", MISSED),
    ],
)
def test_no_copy_is_lost_in_sixty_days_and_no_day_is_called_in_sync_that_is_not(
    tmp_path: Path, form: Form, missed: float
) -> None:
    lives = lived(tmp_path, form, missed)

    days = Counter(day.state for life in lives for day in life.pulled)
    in_sync, behind = days[MirrorState.IN_SYNC], days[MirrorState.BEHIND]
    print(
        f"| {form} | {missed:.0%} missed | {in_sync} | {behind} | {sum(x.missed for x in lives)} |"
    )
    assert [life.lies for life in lives] == [[]] * SEEDS
    assert [life.late for life in lives] == [[]] * SEEDS
    if form != "daily":
        assert behind == 0


def resync_build(*words: str | Path) -> None:
    tool = shutil.which("resync-build", path=str(Path(sys.executable).parent))
    if tool is None:
        pytest.skip("resync is not installed")
    subprocess.run([tool, *words, "--hash", "sha-256"], check=True, capture_output=True, timeout=60)


def shape_of(text: str) -> list[str]:
    """Return the elements of a list without moments, prologue and white space."""
    elements = [
        " ".join(sorted(each.strip(" /?").split())) for each in re.findall("<([^>]*)>", text)
    ]
    shapes = [re.sub(r'"2\d{3}-[^"]*"', '""', each) for each in elements]
    return [each for each in shapes if not each.startswith(("'", "encoding", "?"))]


@pytest.mark.timeout(60)
def test_a_daily_source_writes_what_resync_build_writes(tmp_path: Path) -> None:
    """Its elements and their attributes, deletions with the resource as it was, no interval."""
    folder, target = tmp_path / "files", f"{BASE}={tmp_path / 'files'}"
    folder.mkdir()
    source = DailySource()

    def write() -> None:
        for old in folder.iterdir():
            if old.name not in source.files:
                old.unlink()
        for name, text in source.files.items():
            if not (folder / name).exists() or (folder / name).read_text() != text:
                (folder / name).write_text(text)

    write()
    before, changes = tmp_path / "before.xml", tmp_path / "changes.xml"
    resync_build("--write-resourcelist", "--outfile", before, target)
    source.put("0.txt", "changed, at first")
    source.put("0.txt", "changed")
    source.put("new.txt", "made")
    source.remove("1.txt")
    source.end_day()
    write()
    resync_build("--write-changelist", "--reference", before, "--outfile", changes, target)
    world = World(tmp_path / "mirror", source)
    world.pull()

    ours = source.written("changelist.xml")

    assert shape_of(ours) == shape_of(changes.read_text())
