"""Pages of the documentation, typed in a shell that has our command in its PATH."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from tests.support.commands.forking import folder_of
from tests.support.commands.run import Ran, environment, script

RECIPES = Path(__file__).parents[3] / "docs" / "how-to" / "recipes"


class TypedPage:
    def __init__(self, page: Path, folder: Path, stands_for: Mapping[str, str]) -> None:
        self.folder, self._stands_for = folder, stands_for
        self.text = page.read_text("utf-8")
        self.secrets: dict[str, str] = {}

    def blocks(self, language: str) -> list[str]:
        pattern = rf"^ *```{language}\n(.*?)^ *```"
        return [
            self.here(dedent(block))
            for block in re.findall(pattern, self.text, re.DOTALL | re.MULTILINE)
        ]

    def here(self, text: str) -> str:
        for written, meant in self._stands_for.items():
            text = text.replace(written, meant)
        return text

    @property
    def environment(self) -> dict[str, str]:
        return {**environment(self.folder), **self.secrets}

    def type(self, block: str) -> Ran:
        path = f"{folder_of(script('resourcesync'))}:{self.environment['PATH']}"
        ran = subprocess.run(
            ["sh", "-ec", block],
            check=False,
            cwd=self.folder,
            env={**self.environment, "PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def succeed(self, block: str) -> str:
        ran = self.type(block)
        assert (ran.code, ran.stderr) == (0, ""), f"{block}\n{ran.said}"
        return ran.stdout
