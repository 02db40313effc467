"""The settings of ``watch``: what each mirror gets of what all share."""

from pathlib import Path

import pytest

from resourcesync.app.watching.watch_settings import WatchSettings
from resourcesync.cli import options
from resourcesync.settings.mirror import ServiceSettings


@pytest.mark.parametrize(
    ("own", "jobs", "parallel", "share"),
    [("", 64, 4, 16), ("jobs = 5", 64, 4, 5), ("jobs = 50", 64, 4, 16), ("", 2, 4, 1)],
)
def test_each_mirror_has_its_share_of_all_requests_or_its_own_lower_limit(
    own: str, jobs: int, parallel: int, share: int, tmp_path: Path
) -> None:
    file = tmp_path / "resourcesync.toml"
    file.write_text(f'[mirror.a]\nsource = "https://h.example/"\ndest = "a"\n{own}\n')
    settings = WatchSettings(
        configuration=options.load(file),
        names=("a",),
        service=ServiceSettings(jobs=jobs, parallel=parallel),
    )

    watched, _ = settings.watched_mirrors()

    assert watched["a"].target.network.jobs == share
