"""Wikipedia's profile: a live feed, published every few seconds, pushed, and mirrored.

The feed speaks as Wikimedia EventStreams do. It cuts its connections again and again, and the
publisher is killed again and again. Four programs as anybody runs them: this one, which is the wiki
and its feed; ``publish eventstreams:… --watch``; ``serve --hub``; ``watch`` with ``push = true``.
It is done at the pace of the English Wikipedia of 2013 and at ten times that, with the catalogue in
memory (tmpfs) and on disk; ``--size`` says for how many seconds each.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.commands.run import environment, free_port
from tests.support.servers.event_server import EventServer

_RATES: Final = (1.4, 14.0)
_EVERY: Final = 5
_KILL_EVERY: Final = 20.0
_CUT_AFTER: Final = 40
_PAGES: Final = 400
_PATIENCE: Final = 180.0
_LOOK: Final = 0.1
_MEMORY: Final = Path("/dev/shm")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def run(asked: Asked) -> Outcome:
    """Run it at both rates, in memory and on disk."""
    outcome = Outcome()
    places = {"on disk": asked.folder}
    with ExitStack() as stack:
        if _MEMORY.is_dir():
            made = stack.enter_context(tempfile.TemporaryDirectory(dir=_MEMORY))
            places = {"in memory": Path(made), **places}
        for where, folder in places.items():
            for rate in _RATES:
                own = folder / f"at-{rate}"
                own.mkdir()
                _follow(own, rate, asked, Told(outcome, f"{rate}/s, {where}"))
    return outcome


@dataclass(frozen=True, slots=True)
class Told:
    """An outcome, and what stands before each row."""

    outcome: Outcome
    name: str

    def add(self, label: str, value: object) -> None:
        self.outcome.add(f"{self.name}: {label}", value)

    def require(self, holds: object, otherwise: str) -> None:
        self.outcome.require(holds, f"{self.name}: {otherwise}")


@dataclass(slots=True)
class Wiki:
    """The pages as they are, each of them a file, and what became of them.

    Attributes:
        root: The folder that is served.
        feed: Tells of each change.
        happened: For each change that has to be seen: the page, its number, and when.
        numbers: The number of the last change of each page.
        gone: The number of the last deletion of each page.
    """

    root: Path
    feed: EventServer
    luck: random.Random
    happened: list[tuple[str, int, float]] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)

    def path(self, title: str) -> Path:
        return self.root / "wiki" / title

    def happen(self) -> None:
        """Let one thing happen, and tell of it."""
        title = f"page_{self.luck.randrange(_PAGES)}.html"
        dice, is_there = self.luck.random(), self.path(title).exists()
        if dice < 0.1:
            self._tell(title, self.luck.choice(("categorize", "talk", "other", "canary")))
        elif dice < 0.17 and is_there:
            self._remove(title)
            self._tell(title, "log", log_type="delete", log_action="delete")
        elif dice < 0.22 and is_there:
            target = f"page_{self.luck.randrange(_PAGES)}.html"
            if target == title:
                return
            self._remove(title)
            self._write(target)
            params = {"target": target.replace("_", " "), "noredir": "1"}
            self._tell(title, "log", log_type="move", log_action="move", log_params=params)
        else:
            self._write(title)
            self._tell(title, "edit" if is_there else "new")

    def _write(self, title: str) -> None:
        number = self._number(title)
        fresh = self.path(f".{title}")
        fresh.write_text(f"{title}, change {number}\n")
        fresh.rename(self.path(title))

    def _remove(self, title: str) -> None:
        self.gone[title] = self._number(title)
        self.path(title).unlink()

    def _number(self, title: str) -> int:
        number = self.numbers[title] = self.numbers.get(title, 0) + 1
        self.happened.append((title, number, time.monotonic()))
        return number

    def _tell(self, title: str, kind: str, **more: object) -> None:
        domain = "canary" if kind == "canary" else "en.wikipedia.org"
        said = {
            "$schema": "/mediawiki/recentchange/1.0.0",
            "meta": {
                "uri": f"https://en.wikipedia.org/wiki/{title}",
                "domain": domain,
                "dt": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
                "stream": "mediawiki.recentchange",
            },
            "type": "edit" if kind in {"talk", "other", "canary"} else kind,
            "namespace": 1 if kind == "talk" else 0,
            "title": title.replace("_", " "),
            "wiki": "dewiki" if kind == "other" else "enwiki",
            "server_url": "https://en.wikipedia.org",
            "comment": "c" * self.luck.randrange(1_000),
            **more,
        }
        self.feed.tell(json.dumps(said).encode())


@dataclass(slots=True)
class Publisher:
    """``publish --watch``, killed and begun anew; what its processes cost.

    Attributes:
        seconds: Seconds of processor time of those that ended.
        peak: Most memory of one of them, in MiB.
        kills: How often it was killed.
        ends: What it said last when it ended by itself.
    """

    folder: Path
    words: list[str]
    seconds: float = 0.0
    peak: float = 0.0
    kills: int = 0
    ends: list[str] = field(default_factory=list)
    process: "subprocess.Popen[bytes] | None" = None

    def begin(self) -> None:
        self.process = _started(self.folder, "publish", self.words)

    def end(self, number: signal.Signals) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)  # it is not waited for yet, so it is still this one
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds += used.ru_utime + used.ru_stime
        self.peak = max(self.peak, used.ru_maxrss / 1024)
        self.kills += number is signal.SIGKILL
        if self.process.returncode not in {0, -number}:
            self.ends.append((self.folder / "publish.log").read_text()[-600:])


def _follow(folder: Path, rate: float, asked: Asked, told: Told) -> None:
    """Let a wiki live for a while; see that all of it arrives."""
    root, copy = folder / "public", folder / "copy"
    (root / "wiki").mkdir(parents=True)
    port, listen = free_port(), free_port()
    base = f"http://127.0.0.1:{port}/"
    with EventServer() as feed, ExitStack() as stack:
        feed.named(lambda number: json.dumps([{"topic": "t", "partition": 0, "offset": number}]))
        feed.manners.cut_after = _CUT_AFTER
        wiki = Wiki(root, feed, random.Random(asked.seed))
        publisher = Publisher(folder, _words(feed.url, base, root))
        publisher.begin()
        stack.callback(lambda: publisher.end(signal.SIGINT))
        _await((root / "resourcesync/resourcelist.xml").exists)
        words = ["serve", str(root), "--bind", f"127.0.0.1:{port}", "--hub", "--private-callbacks"]
        server = stack.enter_context(_program(folder, "serve", words))
        _await(lambda: _listens(port))
        _configure(folder, base, copy, listen)
        mirror = stack.enter_context(_program(folder, "watch", ["watch", "--config", "watch.toml"]))
        _await((copy / ".resourcesync").exists)
        time.sleep(3)
        before = _used(mirror), _used(server)
        seen = _live(wiki, publisher, copy, rate, asked.size)
        after = _used(mirror), _used(server)
    _report(told, wiki, seen, publisher, asked.size)
    for name, item, other in zip(("mirror", "server and hub"), before, after, strict=True):
        share = 100 * (other - item) / asked.size
        told.add(f"processor time of the {name}, % of a core", round(share, 1))
    told.add("connections to the feed", len(feed.asked))
    _compare(told, wiki, copy)


def _words(feed: str, base: str, root: Path) -> list[str]:
    return [
        *("publish", f"eventstreams:{feed}", "--url", base, "--out", str(root)),
        *("--watch", "--every", f"{_EVERY}s", "--hub", f"{base}hub", "--notify"),
        *("--with", f"uri={base}wiki/{{title}}", "--with", "namespace=0"),
        *("--with", "wiki=enwiki", "--with", "quiet=0.5"),
    ]


def _configure(folder: Path, base: str, copy: Path, listen: int) -> None:
    folder.joinpath("watch.toml").write_text(
        f'[mirror.copy]\nsource = "{base}"\ndest = "{copy}"\nevery = "30s"\npush = true\n'
        f'[watch]\ncallback = "http://127.0.0.1:{listen}/push/"\nlisten = "127.0.0.1:{listen}"\n'
        f'state = "{folder / "state"}"\n'
    )


def _started(folder: Path, name: str, words: list[str]) -> "subprocess.Popen[bytes]":
    code = "from resourcesync.cli.main import main; main()"
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            cwd=folder,
            env={**environment(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=log,
            stderr=log,
        )


@contextmanager
def _program(folder: Path, name: str, words: list[str]) -> Iterator[int]:
    process = _started(folder, name, words)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def _live(
    wiki: Wiki, publisher: Publisher, copy: Path, rate: float, seconds: float
) -> dict[tuple[str, int], float]:
    """Let things happen at their rate; return when each was seen in the mirror."""
    seen: dict[tuple[str, int], float] = {}
    is_over = threading.Event()
    looking = threading.Thread(target=_look, args=(wiki, copy, seen, is_over))
    looking.start()
    began = killed = time.monotonic()
    for number in range(int(rate * seconds)):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        wiki.happen()
        if time.monotonic() - killed > _KILL_EVERY:
            publisher.end(signal.SIGKILL)
            publisher.begin()
            killed = time.monotonic()
    is_over.set()
    looking.join()
    return seen


def _look(
    wiki: Wiki, copy: Path, seen: dict[tuple[str, int], float], is_over: threading.Event
) -> None:
    """Take note of what has arrived, until all has or nobody waits any more."""
    patience = 0.0
    while True:
        pending = [item for item in list(wiki.happened) if item[:2] not in seen]
        if is_over.is_set():
            patience = patience or time.monotonic() + _PATIENCE
            if not pending or time.monotonic() > patience:
                return
        for title in {item[0] for item in pending}:
            number = _number_of(copy / "wiki" / title)
            if number is None:
                number = wiki.gone.get(title, 0)
            for name, wanted, _ in pending:
                if name == title and wanted <= number:
                    seen[name, wanted] = time.monotonic()
        time.sleep(_LOOK)


def _number_of(path: Path) -> int | None:
    try:
        return int(path.read_text().rpartition(" ")[2])
    except (FileNotFoundError, ValueError):
        return None


def _used(process: int) -> float:
    """Return the seconds of processor time that a running program has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _report(
    told: Told,
    wiki: Wiki,
    seen: dict[tuple[str, int], float],
    publisher: Publisher,
    seconds: float,
) -> None:
    times = {(title, number): moment for title, number, moment in wiki.happened}
    lost = [time for time in times if time not in seen]
    ordered = sorted(seen[item] - times[item] for item in seen)
    told.add("events told", wiki.feed.told)
    told.add("changes of pages", len(times))
    told.add("changes that never arrived", len(lost))
    last = (publisher.folder / "watch.log").read_text()[-400:]
    told.require(not lost, f"{len(lost)} changes never arrived, such as {lost[:3]}: {last}")
    for label, share in (("median", 0.5), ("p95", 0.95), ("slowest", 1.0)):
        if ordered:
            at = min(len(ordered) - 1, int(share * len(ordered)))
            told.add(f"from the event to the copy in place, s, {label}", round(ordered[at], 2))
    told.add("kills of the publisher", publisher.kills)
    share = 100 * publisher.seconds / seconds
    told.add("processor time of the publisher, starts included, % of a core", round(share, 1))
    told.add("peak memory of the publisher, MiB", round(publisher.peak))
    told.require(not publisher.ends, f"the publisher ended by itself: {publisher.ends[:1]}")
    told.require(publisher.kills or seconds < _KILL_EVERY, "nobody was killed")


def _compare(told: Told, wiki: Wiki, copy: Path) -> None:
    here = {path.name: path.read_text() for path in wiki.path("x").parent.iterdir()}
    there = {path.name: path.read_text() for path in (copy / "wiki").glob("*")}
    told.require(here == there, "the mirror is not equal to the wiki in the end")
    told.require(here, "there was nothing to compare")


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _await(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > end:
            return
        time.sleep(_LOOK)


CAMPAIGN: Final = Campaign(run=run, size=120, unit="seconds at each rate and place")
