"""The host that starts programs for tests outlives the test that needed it first."""

import subprocess
import sys
from pathlib import Path

from tests.support.commands.forking import ROOT

_FIRST_TEST = """\
import shutil, sys, tempfile
from pathlib import Path
from tests.support.commands.forking import Forked, folder_of
mine = Path(sys.argv[1])
tempfile.tempdir = str(mine)
program = Path(sys.executable).with_name("resourcesync")
folder_of(program)
shutil.rmtree(mine)
with Forked(program, "--version", cwd=Path("/"), env={}, streams=(0, 1, 2)) as forked:
    sys.exit(forked.wait(30))
"""


def test_a_temporary_folder_of_the_first_test_may_go(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()

    done = subprocess.run(
        [sys.executable, "-c", _FIRST_TEST, mine],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("resourcesync ")
