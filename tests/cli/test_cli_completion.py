"""A shell completes commands, options and the names of configured mirrors."""

import shutil
import subprocess

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.commands.settings_file import put

MIRRORS = """\
[mirror.museum]
source = "https://museum.example/"
dest = "museum"
[mirror.music]
source = "https://music.example/"
dest = "music"
"""


@pytest.fixture
def completed(said: Said, monkeypatch: pytest.MonkeyPatch) -> "Completed":
    return Completed(said, monkeypatch)


class Completed:
    """What bash is offered at the end of a command line."""

    def __init__(self, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
        self._said, self._monkeypatch = said, monkeypatch

    def __call__(self, line: str) -> list[str]:
        words = line.split(" ")
        self._monkeypatch.setenv("_RESOURCESYNC_COMPLETE", "bash_complete")
        self._monkeypatch.setenv("COMP_WORDS", line)
        self._monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        assert run([]) == 0
        return self._said.readouterr().out.split()


@pytest.mark.parametrize(
    "line",
    [
        *("audit", "changes", "doctor", "pull", "repair", "status", "watch", "why"),
        *("trash list", "pull music"),
    ],
)
def test_the_name_of_a_mirror_completes_where_one_is_expected(
    line: str, completed: Completed
) -> None:
    put(MIRRORS)
    assert completed(f"resourcesync {line} mus") == ["plain,museum", "plain,music"]


def test_a_folder_completes_where_no_mirror_is_named_so(completed: Completed) -> None:
    assert completed("resourcesync pull mus") == ["dir,mus"]
    put("[mirror.museum")
    assert completed("resourcesync pull mus") == ["dir,mus"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_the_shell_understands(
    shell: str, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_RESOURCESYNC_COMPLETE", f"{shell}_source")
    assert run([]) == 0
    script = said.readouterr().out
    assert "_RESOURCESYNC_COMPLETE" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    ran = subprocess.run([shell, "-n"], input=script, check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
