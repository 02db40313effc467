"""All versions of a folder that changes at random, shown by a Wayback program as they were.

Files are written, emptied, deleted and made again; often with bytes that they had before. The
export is checked by warcio, read by FastWARC, validated by py-wacz and shown by pywb: each version
at its time, with its bytes. The programs are taken from ``PATH``, or else installed into an
environment of their own, for which the network is needed.
"""

import hashlib
import os
import random
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from campaigns.measured import command
from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.adapters.in_memory import ManualClock
from resourcesync.app.publishing.trees import publish_tree
from tests.support.servers import wayback
from tests.support.warc_records import in_wacz

_PACKAGES: Final = ("fastwarc==2.0.1", "pywb==2.10.0", "wacz==0.6.0", "warcio==1.8.1")
PROGRAMS: Final = ("wayback", "wb-manager", "wacz", "warcio", "fastwarc")
_BASE: Final = "https://museum.example/a%20b/"
# No two of them differ only in what an index ignores, such as case: a Wayback program would take
# them for one.
_NAMES: Final = (
    "a.txt", "B.TXT", "é ü.html", "per%20cent.json", "x?y=1&z=2.xml", "no-name", "100%", "+&=~.txt",
    "deep/er/page.html", "www.example.com", "sid=" + "a1" * 16, "~user", "日本.pdf", "index.html",
)  # fmt: skip
_BODIES: Final = (b"", b"one", b"two", b"<!doctype html><p>", bytes(range(256)) * 2_000)
_PER_PUBLICATION: Final = 10
_READ: Final = """
import hashlib, sys
from fastwarc.warc import ArchiveIterator, WarcRecordType
for path in sys.argv[1:]:
    for record in ArchiveIterator(open(path, "rb"), record_types=WarcRecordType.resource):
        body = record.reader.read()
        print(record.headers["WARC-Target-URI"], record.headers["WARC-Date"],
              hashlib.sha256(body).hexdigest())
"""

Version = tuple[str, str]
"""The path of a file, and the second when it was written, as 14 digits."""


def replay(asked: Asked) -> Outcome:
    """Publish, export and show."""
    outcome = Outcome()
    _install(asked.folder / "programs")
    versions = _publish(asked.folder / "public", asked, random.Random(asked.seed))
    outcome.add("versions", len(versions))
    for form, out in (("wacz", "all.wacz"), ("warc", "warcs")):
        words = ("--versions", "--max-package", "200K", "--format", form)
        places = (asked.folder / "public", "--out", asked.folder / out)
        ran = command("export", *words, *places, home=asked.folder)
        outcome.require(ran.code == 0, f"the export ended with {ran.code}: {ran.said}")
    if not outcome.violations:
        _judge(asked.folder, versions, outcome)
        _show(asked.folder, versions, outcome)
    return outcome


def _install(folder: Path) -> None:
    """Install the programs, unless they are on ``PATH``."""
    if all(shutil.which(name) for name in PROGRAMS):
        return
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "-q", *_PACKAGES], check=True)
    os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"


def _publish(root: Path, asked: Asked, chance: random.Random) -> dict[Version, bytes]:
    """Publish a folder after each few changes; return what each version of its files was."""
    clock = ManualClock(datetime(2025, 1, 1, tzinfo=UTC))
    chosen: dict[str, object] = {"url": _BASE, "versions": True, "versions_keep": 1e9}
    versions: dict[Version, bytes] = {}
    for _ in range(-(-asked.size // _PER_PUBLICATION)):
        stamp = clock.now().strftime("%Y%m%d%H%M%S")
        for name in chance.sample(_NAMES, _PER_PUBLICATION):
            path = root / name
            before = path.read_bytes() if path.exists() else None
            if before is not None and chance.random() < 0.2:
                path.unlink()
                continue
            body = chance.choice([body for body in _BODIES if body != before])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
            os.utime(path, (clock.now().timestamp(), clock.now().timestamp()))
            versions[name, stamp] = body
        publish_tree(root, chosen, clock=clock)
        chosen = {}
        clock.advance(hours=1)
    return versions


def _judge(folder: Path, versions: dict[Version, bytes], outcome: Outcome) -> None:
    """Let other programs read and check the exports."""
    warcs = sorted((folder / "warcs").iterdir())
    found = in_wacz(folder / "all.wacz")
    outcome.add("WARC files", len(warcs))
    outcome.add("revisits", sum(one.kind == "revisit" for one in found))
    outcome.require(
        {_version(one.uri, one.date) for one in found} == versions.keys(),
        "other versions were exported than were published",
    )
    python = Path(shutil.which("fastwarc") or "").parent / "python"
    read = _ran(python, "-c", _READ, *warcs).stdout.splitlines()
    for line in read:
        uri, date, digest = line.split()
        body = versions.get(_version(uri, date))
        is_it = body is not None and hashlib.sha256(body).hexdigest() == digest
        outcome.require(is_it, f"FastWARC reads other bytes of {uri} at {date}")
    revisits = sum(one.kind == "revisit" for one in found)
    outcome.require(len(read) == len(versions) - revisits, f"FastWARC reads {len(read)} records")
    checked = _ran("warcio", "check", *warcs)
    outcome.require(checked.returncode == 0, f"warcio: {checked.stdout}{checked.stderr}")
    valid = _ran("wacz", "validate", "-f", folder / "all.wacz")
    outcome.require("WACZ is valid" in valid.stdout, f"wacz: {valid.stdout}{valid.stderr}")


def _show(folder: Path, versions: dict[Version, bytes], outcome: Outcome) -> None:
    """Ask a Wayback program for each version."""
    home = folder / "wayback"
    home.mkdir()
    wayback.add(home, "wacz", folder / "all.wacz")
    wayback.add(home, "warcs", *sorted((folder / "warcs").iterdir()))
    found = in_wacz(folder / "all.wacz")
    with wayback.running(home) as shown:
        for one in found:
            name, stamp = _version(one.uri, one.date)
            for collection in ("wacz", "warcs"):
                is_it = shown.get(collection, stamp, one.uri)[0] == versions.get((name, stamp))
                outcome.require(is_it, f"pywb shows other bytes of {name} at {stamp}")
    outcome.add("shown by pywb", 2 * len(found))


def _version(uri: str, date: str) -> Version:
    return unquote(uri.removeprefix(_BASE)), "".join(filter(str.isdigit, date))[:14]


def _ran(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=False, capture_output=True, text=True)


CAMPAIGN: Final = Campaign(run=replay, size=1_000, unit="changes")
