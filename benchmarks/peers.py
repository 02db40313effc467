"""The programs we are held against: what is here, how to get it, how to run it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

_PACKAGES = {
    "nginx": "nginx-light",
    "curl": "curl",
    "rclone": "rclone",
    "echo module": "libnginx-mod-http-echo",
}
_ECHO = Path("/usr/lib/nginx/modules/ngx_http_echo_module.so")


def script(name: str) -> Path | None:
    """Return a command of this Python environment, or ``None``."""
    path = Path(sys.executable).parent / name
    return path if path.exists() else None


def missing() -> list[str]:
    """Return the names of the peers that are not here."""
    absent = [name for name in ("nginx", "curl", "rclone") if shutil.which(name) is None]
    if not _ECHO.exists():
        absent.append("echo module")
    if script("resync-sync") is None:
        absent.append("resync")
    return absent


def install(names: Iterable[str]) -> None:
    """Install what can be installed; what cannot is skipped later, by name."""
    wanted = list(names)
    packages = [_PACKAGES[name] for name in wanted if name in _PACKAGES]
    if packages and os.geteuid() == 0 and shutil.which("apt-get"):
        _quietly(["apt-get", "update"])
        for package in packages:
            _quietly(["apt-get", "install", "-y", "--no-install-recommends", package])
    if "resync" in wanted and sys.version_info < (3, 12):
        # Its only other need, setuptools, is part of the test requirements.
        _quietly([sys.executable, "-m", "pip", "install", "resync==2.0.1"])


def _quietly(command: Sequence[str]) -> None:
    subprocess.run(
        command,
        check=False,
        timeout=180,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    )


def resync_pull(url: str, into: Path) -> list[str | Path]:
    """Return the command of a baseline synchronization by resync."""
    return [_resync("resync-sync"), "--baseline", url, into]


def resync_audit(url: str, mirror: Path) -> list[str | Path]:
    """Return the command of an audit by resync."""
    return [_resync("resync-sync"), "--audit", url, mirror]


def resync_build(url: str, tree: Path, outfile: Path) -> list[str | Path]:
    """Return the command that writes a Resource List with sha-256 by resync."""
    return [
        _resync("resync-build"),
        "--write-resourcelist",
        "--hash",
        "sha-256",
        "--outfile",
        outfile,
        f"{url}={tree}",
    ]


def _resync(name: str) -> Path:
    path = script(name)
    assert path is not None
    return path


def curl(url: str, names: Iterable[str], into: Path, config: Path) -> list[str | Path]:
    """Return the command that downloads all names by curl, 50 at a time."""
    with config.open("w", encoding="utf-8") as out:
        for name in names:
            out.write(f'url = "{url}/{name}"\noutput = "{into}/{name}"\n')
    return [
        "curl", "--silent", "--show-error", "--fail", "--create-dirs",
        "--parallel", "--parallel-max", "50", "--config", config,
    ]  # fmt: skip


def rclone(url: str, names: Iterable[str], into: Path, config: Path) -> list[str | Path]:
    """Return the command that copies all names by rclone from its http remote, 50 at a time.

    It is given the names and asks for no head, so that it sends one request for each file.
    """
    config.write_text("".join(f"{name}\n" for name in names))
    return [
        "rclone", "copy", ":http:", into, "--http-url", url, "--http-no-head",
        "--files-from-raw", config, "--no-traverse", "--no-check-dest",
        "--transfers", "50", "--checkers", "50", "--quiet", "--config", "",
    ]  # fmt: skip
