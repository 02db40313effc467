"""A week in the life of three mirrors, by our real publisher and our real pulls; simulated time.

``python -m tests.support.simulated.simulated_week FOLDER`` makes the mirrors there, and a
configuration file that names them. The week ends at the present moment.
"""

import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from resourcesync.adapters.mirror.audit_files import AuditFiles
from resourcesync.errors import ResourceSyncError
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.source.plan import Policy
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World

_HOURS = 7 * 24 - 8
_DAY = 86_400_000_000


class Week:
    """One mirror's week.

    Args:
        folder: Of the mirror.
        seed: Of what happens.
        size: How many resources the Source begins with.
        hours: How long it lasts.
    """

    def __init__(self, folder: Path, *, seed: int, size: int = 400, hours: int = _HOURS) -> None:
        self.world = World(folder)
        self.world.source.policy = Policy(rotate=_DAY, rebase=3 * _DAY, keep=3 * _DAY)
        self.random = Random(seed)
        self.hours = hours
        self.number = size
        # Publications take a little of the clock too: the week begins early enough.
        self.end = datetime.now(tz=UTC) - timedelta(minutes=4)
        self.world.clock.set(self.end - timedelta(hours=hours, minutes=30))
        for number in range(size):
            self.world.source.put(self.name(number), self.content())

    def name(self, number: int) -> str:
        return f"collection-{number % 7}/item-{number:05}.xml"

    def content(self) -> bytes:
        return self.random.randbytes(self.random.randint(2_000, 60_000))

    def live(self, *, breaks: range = range(0), fails: range = range(0), pull: int = 2) -> None:
        """Let the week pass.

        Args:
            breaks: Hours in which nobody pulls.
            fails: Hours in which the Source does not answer.
            pull: Pulls in an hour.
        """
        self.world.source.publish()
        self.pull()
        start = self.end - timedelta(hours=self.hours)
        for hour in range(self.hours):
            for part in range(4):
                now = start + timedelta(hours=hour, minutes=15 * part + self.random.random() * 9)
                self.world.clock.set(max(now, self.world.clock.now()))
                if self.work(now):
                    self.world.source.publish()
                if hour in breaks or part % (4 // pull):
                    continue
                self.world.clock.advance(seconds=self.random.random() * 200)
                self.answer(is_well=hour not in fails)
                self.pull()

    def work(self, now: datetime) -> bool:
        """Change some of the Source, more by day than by night; return whether anything was."""
        is_day = 6 <= now.hour < 18 and now.weekday() < 5
        many = self.random.randint(0, 6 if is_day else 1)
        for _ in range(many):
            dice = self.random.random()
            if dice < 0.5:
                self.world.source.put(self.name(self.random.randrange(self.number)), self.content())
            elif dice < 0.85:
                self.world.source.put(self.name(self.number), self.content())
                self.number += 1
            else:
                self.world.source.remove(self.name(self.random.randrange(self.number)))
        return many > 0

    def answer(self, *, is_well: bool) -> None:
        self.world.network.answers.clear()
        if not is_well:
            for path in (".well-known/resourcesync", "resourcesync/capabilitylist.xml"):
                self.world.network.answers[BASE + path] = Answer(status=503)
            for path in ("resourcesync/changelist.xml", "resourcesync/resourcelist.xml"):
                self.world.network.answers[BASE + path] = Answer(status=503)

    def pull(self) -> None:
        with suppress(ResourceSyncError):
            self.world.pull(delete="signalled")

    def audit(self) -> None:
        own = self.world.folder / OWN_FOLDER
        with AuditFiles(own).write_findings() as kept:
            report = self.world.audit()
            for finding in report.findings:
                fields = {"uri": finding.uri, "path": finding.path, "reason": finding.reason}
                kept.add({"kind": finding.kind.value, **fields})
            if report.findings:
                moment = self.world.clock.now().strftime("%Y%m%d%H%M%S%f")
                kept.set_name(report.run, moment)


def simulate(folder: Path, *, hours: int = _HOURS) -> Path:
    """Make the mirrors of a week; return the configuration file that names them."""
    museum = Week(folder / "museum", seed=1, hours=hours)
    museum.live(breaks=range(hours // 2, hours // 2 + hours // 15))
    museum.pull()
    museum.audit()
    theses = Week(folder / "theses", seed=2, size=150, hours=hours)
    theses.live(pull=1)
    late = [f"collection-{number % 7}/item-{number:05}.xml" for number in (3, 4, 5, 6)]
    for name in late:
        theses.world.source.put(name, b"newer")
    theses.world.source.publish()
    for number, name in enumerate(late):
        theses.world.network.answers[BASE + name] = Answer(status=404 if number % 2 else 500)
    theses.pull()
    (theses.world.folder / "collection-0" / "item-00007.xml").write_bytes(b"altered here")
    theses.audit()
    maps = Week(folder / "maps", seed=3, size=90, hours=hours)
    maps.live(fails=range(hours - max(hours // 12, 1), hours), pull=1)
    path = folder / "resourcesync.toml"
    tables = [
        f'[mirror.{name}]\nsource = "{BASE}"\ndest = "{folder / name}"\nevery = "12h"\n'
        f'max_lag = "2h"\n'
        for name in ("museum", "theses", "maps")
    ]
    path.write_text("\n".join(tables))
    return path


if __name__ == "__main__":
    print(simulate(Path(sys.argv[1]).resolve()))
