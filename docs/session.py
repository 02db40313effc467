"""Records a short session in a terminal, and draws it: python docs/session.py [--check]

The program is run as it is. Times, durations and the port are made the same each time, so that two
recordings can be compared.
"""

import argparse
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).parent / "_static" / "session.svg"
PORT: Final = "8080"
FILES: Final = {"1.txt": "a jug\n", "2.txt": "a bowl\n", "3.txt": "a cup\n"}
SERVE: Final = "resourcesync serve ./public &"
COMMANDS: Final = (
    f"resourcesync publish ./public --url http://127.0.0.1:{PORT}",
    SERVE,
    f"resourcesync pull http://127.0.0.1:{PORT} ./mirror",
    'echo "a blue bowl" > public/objects/2.txt; rm public/objects/3.txt',
    "resourcesync publish ./public",
    "resourcesync pull ./mirror --itemize",
    "resourcesync audit ./mirror",
)
TITLE: Final = (
    "A terminal: a folder with three files is published, served and mirrored. One file is changed "
    "and one is deleted; the next pull fetches the one and removes the other, and an audit of "
    "every byte ends with: In sync."
)

_WIDTH: Final = 100
_CELL: Final = 8.4
_LINE: Final = 19
_EDGE: Final = 18
_TIMEOUT: Final = 60
_SAME: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"), "2026-11-23 09:00:00Z"),
    (re.compile(r"\b\d+\.\d s\b"), "0.2 s"),
)
_CODE: Final = re.compile(r"\x1b\[([0-9;]*)m")
_COLORS: Final = {"31": "red", "32": "green", "33": "yellow", "36": "cyan"}
_STYLE: Final = """
svg { --page: #ffffff; --edge: #d0d7de; --ink: #1f2328; --prompt: #6e7781; --red: #b3261e;
  --green: #116329; --yellow: #7d4e00; --cyan: #0b5c74; }
@media (prefers-color-scheme: dark) { svg { --page: #14181e; --edge: #3d4650; --ink: #e8ecf1;
  --prompt: #a4afbd; --red: #ff8a80; --green: #6fdd8b; --yellow: #e3b341; --cyan: #76d9f0; } }
.page { fill: var(--page); stroke: var(--edge); }
text { fill: var(--ink); font-size: 14px; white-space: pre;
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.typed { font-weight: 600; }
.prompt { fill: var(--prompt); }
.red { fill: var(--red); font-weight: 600; }
.green { fill: var(--green); font-weight: 600; }
.yellow { fill: var(--yellow); font-weight: 600; }
.cyan { fill: var(--cyan); font-weight: 600; }
"""


def record(folder: Path) -> str:
    """Type the commands in a folder; return what a terminal shows, with its colours."""
    objects = folder / "public" / "objects"
    objects.mkdir(parents=True)
    for name, text in FILES.items():
        (objects / name).write_text(text)
    env = environment(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shown = f"$ {COMMANDS[0]}\n{run(COMMANDS[0].replace(PORT, port), folder, env)}"
    with serving(folder, env, port) as printed:
        shown += f"$ {SERVE}\n{printed}"
        for command in COMMANDS[2:]:
            shown += f"$ {command}\n{run(command.replace(PORT, port), folder, env)}"
    return same_each_time(shown.replace(f":{port}", f":{PORT}"))


def environment(folder: Path) -> Mapping[str, str]:
    """Return an environment with the command of this Python, in colour, and nothing of the user."""
    command = folder / "bin" / "resourcesync"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m resourcesync "$@"\n')
    command.chmod(0o755)
    names = ("PYTHONPATH", "LANG", "LC_ALL")
    around = os.environ  # noqa: TID251 - it starts the program as a user does
    known = {name: around[name] for name in names if name in around}
    path = f"{command.parent}:{os.defpath}"
    return {**known, "PATH": path, "HOME": str(folder), "FORCE_COLOR": "1", "COLUMNS": str(_WIDTH)}


def run(command: str, folder: Path, env: Mapping[str, str]) -> str:
    """Run a command to its end; return what it printed."""
    ran = subprocess.run(  # noqa: S603 - the commands above
        ["/bin/sh", "-c", command],
        check=True,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT,
    )
    return ran.stdout


@contextmanager
def serving(folder: Path, env: Mapping[str, str], port: str) -> Iterator[str]:
    """Serve the folder during the block, at a free port; yield what was printed at the start."""
    command = ["/bin/sh", "-c", f"exec {SERVE.rstrip('& ')} --bind 127.0.0.1:{port}"]
    with subprocess.Popen(  # noqa: S603 - the commands above
        command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline() + server.stdout.readline()
        finally:
            server.terminate()


def same_each_time(shown: str) -> str:
    """Return the text with one time and one duration."""
    for pattern, instead in _SAME:
        shown = pattern.sub(instead, shown)
    return shown


def without_colors(shown: str) -> str:
    """Return the text alone."""
    return _CODE.sub("", shown)


def picture(shown: str) -> str:
    """Return the terminal as SVG, for light and dark pages."""
    lines = [part for line in shown.splitlines() for part in folded(line)]
    width, height = round(_WIDTH * _CELL) + 2 * _EDGE, len(lines) * _LINE + 2 * _EDGE
    size = f'width="{width}" height="{height}"'
    box = f'viewBox="0 0 {width} {height}"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} {size} role="img">',
        f"<title>{escape(TITLE)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
    ]
    for number, line in enumerate(lines):
        top = _EDGE + (number + 1) * _LINE - 5
        out.append(f'<text x="{_EDGE}" y="{top}" xml:space="preserve">{colored(line)}</text>')
    return "\n".join([*out, "</svg>\n"])


def folded(line: str) -> Iterator[str]:
    """Yield a line as a terminal breaks it; coloured ones are short."""
    while len(without_colors(line)) > _WIDTH and not _CODE.search(line):
        yield line[:_WIDTH]
        line = line[_WIDTH:]
    yield line


def colored(line: str) -> str:
    """Return a line as text of SVG."""
    if line.startswith("$ "):
        typed = escape(line[2:], quote=False)
        return f'<tspan class="prompt">$ </tspan><tspan class="typed">{typed}</tspan>'
    first, *rest = _CODE.split(line)
    out, color = escape(first, quote=False), ""
    for code, text in zip(rest[::2], rest[1::2], strict=True):
        color = "" if code in {"", "0"} else _COLORS.get(code, color)
        body = escape(text, quote=False)
        out += f'<tspan class="{color}">{body}</tspan>' if color and body else body
    return out


def main() -> int:
    """Write the picture, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    with tempfile.TemporaryDirectory() as folder:
        drawn = picture(record(Path(folder)))
    if FILE.is_file() and FILE.read_text("utf-8") == drawn:
        return 0
    if parser.parse_args().check:
        return 1
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(drawn, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
