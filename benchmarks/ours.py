"""Our own commands, and an environment in which nothing of the user's is touched."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_IMPORT_ALL = """
import contextlib, importlib, pkgutil
for name in ("resourcesync", "resync"):
    with contextlib.suppress(ImportError):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, name + "."):
            if not module.name.endswith("__main__"):
                with contextlib.suppress(ImportError):
                    importlib.import_module(module.name)
"""


def installed() -> bool:
    """Whether the command is here."""
    return _command().exists()


def _command() -> Path:
    return Path(sys.executable).parent / "resourcesync"


def environment(home: Path) -> Mapping[str, str]:
    """Return an environment with a home of its own and none of the user's settings.

    Bytecode is cached as on a user's machine, but in that home.
    """
    dropped = ("RESOURCESYNC_", "XDG_", "PYTHON")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    cache = str(home / "bytecode")
    return {**kept, "HOME": str(home), "NO_COLOR": "1", "PYTHONPYCACHEPREFIX": cache}


def warm_up() -> list[str | Path]:
    """Return a command that fills the bytecode cache: no measured run has to compile modules."""
    return [sys.executable, "-c", _IMPORT_ALL]


def help_screen() -> list[str | Path]:
    """Return the command that prints the help."""
    return [_command(), "--help"]


def publish(tree: Path, url: str, out: Path | None = None) -> list[str | Path]:
    """Return the command that publishes a tree."""
    to: list[str | Path] = ["--out", out] if out else []
    return [_command(), "publish", tree, "--url", url, "--quiet", *to]


def dump(tree: Path, url: str) -> list[str | Path]:
    """Return the command that packs a tree into a Resource Dump."""
    return [_command(), "publish", tree, "--url", url, "--dumps", "resources", "--quiet"]


def catalogue(action: str, file: Path, lines: Path) -> list[str | Path]:
    """Return the command that imports or posts lines of JSON."""
    return [_command(), "catalogue", action, file, lines, "--quiet"]


def publish_catalogue(file: Path, url: str, out: Path, *more: str) -> list[str | Path]:
    """Return the command that publishes a catalogue without a folder."""
    return [
        _command(),
        "publish",
        f"catalogue:{file}",
        "--url",
        url,
        "--out",
        out,
        "--quiet",
        *more,
    ]


def pull(url: str, into: Path) -> list[str | Path]:
    """Return the command that pulls a Source; its last line is the summary as JSON."""
    return [_command(), "pull", url, into, "--json", "--quiet"]


def status(mirror: Path) -> list[str | Path]:
    """Return the command that shows the status of a mirror."""
    return [_command(), "status", mirror]


def audit(mirror: Path) -> list[str | Path]:
    """Return the command that audits a mirror, reading every byte."""
    return [_command(), "audit", mirror, "--quiet"]
