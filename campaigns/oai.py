"""A repository behind OAI-PMH becomes a Source that is judged, and that a mirror follows.

10,000 records and 12,000 files, a real provider over HTTP, our commands as a user starts them. The
repository creates, changes and withdraws; a harvest is killed; in the end mirror and repository
have the same.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from campaigns.measured import command
from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.accounts.oai_metadata import Bitstream, Item
from tests.support.accounts.oai_provider import Provider, Quirks, changed, providing
from tests.support.commands.run import files_of, free_port, running, script

_PREFIXES: Final = ("oai_dc", "mods")
_PAGE: Final = 100


class Ended(Protocol):
    """What is asked of a command that has ended."""

    @property
    def code(self) -> int:
        """Its exit code."""
        ...

    @property
    def said(self) -> str:
        """Its output."""
        ...


Do = Callable[..., Ended]
"""Runs our command with its words, in a folder that is ``home``."""


@dataclass
class Repository:
    """A repository, and how it is published and mirrored."""

    provider: Provider
    home: Path
    port: int
    outcome: Outcome
    do: Do

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def publish(self, label: str, *more: str | Path) -> None:
        words = (f"oai:{self.provider.base}", "--url", self.url, "--out", self.home / "out")
        chosen = ("--with", f"prefixes={','.join(_PREFIXES)}", "--with", "files-from=xoai")
        asked = len(self.provider.asked)
        self.measured(label, "publish", *words, *chosen, *more)
        self.outcome.add(f"{label}, requests", len(self.provider.asked) - asked)

    def measured(self, label: str, *words: str | Path) -> None:
        """Run our command, and note what it took."""
        began = time.monotonic()
        ended = self.do(*words, home=self.home)
        self.outcome.add(f"{label}, seconds", time.monotonic() - began)
        if cpu := getattr(ended, "cpu", None):
            self.outcome.add(f"{label}, seconds of processor time", cpu)
            self.outcome.add(f"{label}, peak MiB", getattr(ended, "peak_mib", 0.0))
        self.outcome.require(ended.code == 0, f"{label}: {ended.code}, {ended.said[-500:]}")

    def pull(self, label: str) -> None:
        trusted = ("--allow-origin", self.provider.url)
        self.measured(label, "pull", self.url, self.home / "mirror", "--quiet", *trusted)

    def judge(self, label: str, sample: int) -> None:
        trusted = ("--allow-origin", self.provider.url)
        how = ("--live", "--sample", str(sample), "--fail-on", "warning")
        self.measured(label, "validate", self.url, *how, *trusted)

    def compare(self, label: str) -> None:
        """Note what the mirror has otherwise than the repository."""
        held = {f"/{path}": body for path, body in files_of(self.home / "mirror").items()}
        metadata = {path: body for path, body in held.items() if path.startswith("/resource/")}
        files = {path[path.index("/bitstream/") :]: held[path] for path in held.keys() - metadata}
        items = {local: item for local, (_, item) in self.provider.items.items() if item}
        wanted = {f"/resource/{item}/{prefix}.xml" for item in items for prefix in _PREFIXES}
        self.outcome.require(metadata.keys() == wanted, f"{label}: other metadata in the mirror")
        titles = [
            local
            for local, item in items.items()
            for prefix in _PREFIXES
            if item.title.encode() not in metadata.get(f"/resource/{local}/{prefix}.xml", b"")
        ]
        self.outcome.require(not titles, f"{label}: old metadata of {titles[:3]}")
        bodies = {
            f"/bitstream/{local}/{bitstream.name}": bitstream.body
            for local, item in items.items()
            for bitstream in item.bitstreams
        }
        self.outcome.require(files == bodies, f"{label}: other files in the mirror")
        served = {
            path: body
            for path, body in files_of(self.home / "out").items()
            if path.startswith("resource/")
        }
        self.outcome.require(len(served) == len(wanted), f"{label}: old files are still served")
        self.outcome.add(f"{label}, resources", len(held))


def run(asked: Asked) -> Outcome:
    """Fill, publish, judge, mirror; change, follow; kill, follow."""
    return follow(asked, command)


def follow(asked: Asked, do: Do) -> Outcome:
    """Do the same by any way to run our command.

    Args:
        asked: How many records.
        do: Runs it.
    """
    outcome, luck = Outcome(), random.Random(asked.seed)
    provider = Provider(Quirks(page=min(_PAGE, max(5, asked.size // 5))))
    for number in range(asked.size):
        provider.put(_item(number, luck))
    provider.tick(3 * 86_400)  # behind the overlap of harvests
    with providing(provider):
        port = free_port()
        here = Repository(provider, asked.folder, port, outcome, do)
        here.publish("first publication")
        words = ("serve", asked.folder / "out", "--bind", f"127.0.0.1:{port}")
        with running(script("resourcesync"), *words, port=port, cwd=asked.folder):
            here.judge("judged live", min(500, asked.size))
            here.pull("first pull")
            here.compare("mirror at first")
            here.publish("publication of no change")
            _change(provider, asked.size, luck)
            here.publish("publication of the changes")
            here.pull("pull of the changes")
            here.compare("mirror after the changes")
            _change(provider, asked.size, luck)
            _killed(here, asked, outcome)
            here.publish("publication after the kill", "--rescan", "1s")
            here.pull("pull after the kill")
            here.compare("mirror in the end")
            here.judge("judged again", min(500, asked.size))
    return outcome


def _item(number: int, luck: random.Random) -> Item:
    """Return an item; five have six files."""
    count = 1 + (number % 5 == 0)
    return Item(
        local=f"10673/{number}",
        title=f"Report {number} on the state of the coast",
        sets=(f"col_10673_{number % 7}", "com_10673_1"),
        bitstreams=tuple(
            Bitstream(name=f"report-{at}.pdf", body=luck.randbytes(600)) for at in range(count)
        ),
    )


def _change(provider: Provider, size: int, luck: random.Random) -> None:
    """Create, change and withdraw: each a fiftieth of what there is."""
    provider.tick(3 * 86_400)
    there = [local for local, (_, item) in provider.items.items() if item]
    some = luck.sample(there, k=min(len(there), max(3, 3 * size // 50)))
    third = len(some) // 3
    for local in some[:third]:
        provider.remove(local)
    for local in some[third : 2 * third]:
        changed(provider, local, title=f"Corrected report {luck.random()}")
    for local in some[2 * third :]:
        item = provider.items[local][1]
        assert item is not None
        first = replace(item.bitstreams[0], body=luck.randbytes(700))
        changed(provider, local, bitstreams=(first, *item.bitstreams[1:]))
    for _ in range(third):
        provider.put(_item(size + len(provider.items), luck))


def _killed(here: Repository, asked: Asked, outcome: Outcome) -> None:
    """Kill a harvest of everything in its middle."""
    if here.do is not command:
        return
    before = len(here.provider.asked)
    pages = asked.size // here.provider.quirks.page
    words = (f"oai:{here.provider.base}", "--url", here.url, "--out", asked.folder / "out")
    chosen = ("--with", f"prefixes={','.join(_PREFIXES)}", "--with", "files-from=xoai")
    ended = command(
        "publish",
        *words,
        *chosen,
        "--rescan",
        "1s",
        home=asked.folder,
        until=lambda: len(here.provider.asked) - before > pages,
    )
    outcome.require(ended.code == -9, f"the harvest ended with {ended.code} before it was killed")
    outcome.add("pages listed when it was killed", len(here.provider.asked) - before - 2)


CAMPAIGN: Final = Campaign(run=run, size=10_000, unit="records")
