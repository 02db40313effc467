"""Scenes: commands that are run one after the other, and a transcript of what they show."""

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said, spoil
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import Answer, TinySource, dead_address

_ITEM = re.compile(r'(2> )?(?:[-!+*~] |\{"type":"(?:item|finding|applied)",)')
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?: ?[+-]\d\d:\d\d|Z)")
_UNSTEADY = (
    (r"\b[0-9.,]+ (?:s|ms)\b", "T s"),
    (r'("\w*seconds"):[0-9.e-]+', r"\1:T"),
    (r"\b(?=\w*[A-Z])[0-9A-Z]{16}\b", "RUN"),
    (r"\b[0-9a-f]{12}\b", "ID"),
    (r'("(?:disk\w*_bytes|seq)"):\d+', r"\1:N"),
    (r'"hashed":\d+,"left"', '"hashed":N,"left"'),
    (r'("plugins|"others)":\d+', r'\1":N'),
    (r"127\.0\.0\.1(:|%3A)\d+", "HOST"),
    (r"\bpid \d+", "pid N"),
    (rf"\bprocess {os.getpid()} on \S+", "process OURS"),
    (r"reports/\d+-", "reports/NOW-"),
    (r"\d{8}T\d{12}Z", "NOW"),
    (r"(?<![.0-9a-f])[0-9a-f]{16}\b", "ID"),
    (r"(--since \d)\.\d+", r"\1.TIME"),
    (r'("(?:position|confirmed|signature)"):(?:\d+|"[^"]*")', r'\1:"PLACE"'),
    (r"[0-9.]+ [GTMk]?B(?= free|\b.*of its disk)", "N B"),
)


class Scene:
    """A Source, a folder, and a transcript of the commands that are run in it."""

    def __init__(self, source: TinySource, tree: Path, here: Path, said: Said) -> None:
        self.source, self.tree, self.here = source, tree, here
        self._said, self._lines = said, list[str]()

    def run(self, command: str) -> None:
        self._said.readouterr()
        code = run(shlex.split(command)[1:])
        captured = self._said.readouterr()
        shown = [*map(_sorted, captured.out.splitlines())]
        errors = [f"2> {line}" for line in captured.err.splitlines()]
        self._lines += [f"$ {command}", *shown, *errors, f"[exit {code}]", ""]

    def refuse(self, *commands: str) -> None:
        for command in commands:
            self.run(f"resourcesync {command}")

    def silently(self, command: str) -> None:
        run(shlex.split(command)[1:])

    def pulled(self, options: str = "") -> None:
        self.silently(f"resourcesync pull {self.source.url} museum {options}")

    def offer(self, changes: Mapping[str, bytes | None], at: str = LATER) -> None:
        """Offer the usual files but for these; those without content are gone."""
        files = {**FILES, **changes}
        self.source.offer({name: body for name, body in files.items() if body is not None}, at=at)

    def configure(self, text: str) -> None:
        Path("resourcesync.toml").write_text(text.replace("URL", self.source.url))

    def files(self, folder: str) -> None:
        there = files_of(Path(folder)) if Path(folder).is_dir() else {"": b"no folder"}
        shown = [name for name in sorted(there) if ".resourcesync/" not in name]
        self._lines += [f"# {folder}/{name}: {there[name]!r}" for name in shown] + [""]

    def note(self, text: str) -> None:
        self._lines += [f"# {text}", ""]

    def requests(self) -> None:
        asked = sorted({asked.target for asked in self.source.asked})
        self.source.asked.clear()
        self._lines += [f"# requested: {' '.join(asked)}", ""]

    def transcript(self) -> str:
        steady: list[str] = []
        for kind, lines in groupby(self._lines, _kind):
            steady += sorted(lines) if kind else lines  # noqa: B031 - it is read once
        text = "\n".join(steady)
        text = text.replace(str(self.here), "HERE")
        text = _MOMENT.sub(_moment, text)
        for pattern, word in _UNSTEADY:
            text = re.sub(pattern, word, text)
        return text


def _sorted(line: str) -> str:
    if not line.startswith("{") or '"type"' not in line:
        return line
    row = json.loads(line)
    head = {"type": row.pop("type")}
    return json.dumps(head | dict(sorted(row.items())), ensure_ascii=False, separators=(",", ":"))


def _kind(line: str) -> str:
    """Return what a line is about one resource of several: their order is that of the answers."""
    found = _ITEM.match(line)
    return f"{found[1]}item" if found else ""


def _moment(found: re.Match[str]) -> str:
    """Return a moment of the scene as it is, and one of today as a word."""
    moment = datetime.fromisoformat(found[0].replace(" +", "+").replace(" -", "-"))
    is_now = abs((datetime.now(UTC) - moment).total_seconds()) < 2 * 86_400
    return "NOW" if is_now else found[0]


SCENES: dict[str, Callable[[Scene], None]] = {}


def scene(make: Callable[[Scene], None]) -> Callable[[Scene], None]:
    SCENES[make.__name__.replace("_", "-")] = make
    return make


@scene
def pull_0(at: Scene) -> None:
    at.run(f"resourcesync pull {at.source.url} museum")
    at.run(f"resourcesync pull {at.source.url}/ museum")
    files = {**FILES, "/new.txt": b"new", "/objects/0003.txt": b"changed"}
    del files["/objects/0004.txt"]
    at.source.offer(files, at=LATER)
    at.run("resourcesync pull museum --dry-run")
    at.run("resourcesync pull museum -i")
    at.run("resourcesync pull museum --json")
    at.source.offer({**files, "/more.txt": b"more"}, at="2026-01-03T00:00:00Z")
    at.run("resourcesync pull museum --json")


@scene
def pull_0_of_a_sitemap(at: Scene) -> None:
    urls = "".join(f"<url><loc>{at.source.url}/{n}.html</loc></url>" for n in range(4))
    at.source.answers.clear()
    sitemap = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
    at.source.put("/sitemap.xml", sitemap.encode(), "application/xml")
    for number in range(3):
        at.source.put(f"/{number}.html", b"page")
    at.run(f"resourcesync pull {at.source.url} site")
    at.run("resourcesync status")


@scene
def pull_2(at: Scene) -> None:
    at.run("resourcesync pull")
    at.run("resourcesync pull museum --mood good")
    at.run("resourcesync pull museum")


@scene
def pull_3(at: Scene) -> None:
    at.source.answers["/objects/0003.txt"] = Answer(status=404)
    at.source.answers["/objects/0004.txt"] = Answer(status=403)
    at.source.put("/objects/0005.txt", b"objecT 5\n")
    entries = [at.source.entry(target, body) for target, body in FILES.items()]
    entries.append(at.source.entry("/x", b"x", uri="http://elsewhere.example/x"))
    at.source.offer_entries(entries)
    at.run(f"resourcesync pull {at.source.url} museum")
    at.run("resourcesync pull museum --json --jobs 1")
    at.run("resourcesync status museum")
    at.run("resourcesync pull museum -q")
    at.run("resourcesync pull museum -qq")


@scene
def pull_4(at: Scene) -> None:
    with dead_address() as address:
        at.run(f"resourcesync pull {address} museum -o retries=0")
        at.run(f"resourcesync pull {address} museum -o retries=0 --json")


@scene
def pull_5(at: Scene) -> None:
    at.source.answers.clear()
    at.run(f"resourcesync pull {at.source.url} museum")
    at.source.put("/.well-known/resourcesync", b"<html>", "text/html")
    at.run(f"resourcesync pull {at.source.url} museum")


@scene
def pull_6(at: Scene) -> None:
    for target in list(at.source.answers):
        at.source.answers[target] = Answer(status=401)
    at.run(f"resourcesync pull {at.source.url} museum")


@scene
def pull_7(at: Scene) -> None:
    many = {f"/{number}.txt": b"%d" % number for number in range(60)}
    at.source.offer(many)
    at.silently(f"resourcesync pull {at.source.url} museum")
    at.source.offer({name: many[name] for name in list(many)[:10]}, at=LATER)
    at.run("resourcesync pull museum --dry-run")
    at.run("resourcesync pull museum")
    at.run("resourcesync status museum --check")
    at.run("resourcesync pull museum --max-delete 50")


@scene
def pull_8(at: Scene) -> None:
    at.silently(f"resourcesync pull {at.source.url} museum")
    Path("museum/.resourcesync/state.db").write_bytes(b"no database")
    at.run("resourcesync pull museum")


@scene
def pull_several(at: Scene) -> None:
    Path("resourcesync.toml").write_text(
        f'[mirror.good]\nsource = "{at.source.url}"\ndest = "good"\n'
        '[mirror.bad]\nsource = "http://127.0.0.1:9"\ndest = "bad"\nretries = 0\n'
    )
    at.run("resourcesync pull --all")
    at.run("resourcesync status")


@scene
def status_0(at: Scene) -> None:
    at.silently(f"resourcesync pull {at.source.url} museum")
    at.run("resourcesync status")
    at.run("resourcesync status --json")


@scene
def audit_0(at: Scene) -> None:
    at.silently(f"resourcesync pull {at.source.url} museum")
    at.run("resourcesync audit museum")
    at.run("resourcesync audit museum --json")


@scene
def audit_1(at: Scene) -> None:
    at.silently(f"resourcesync pull {at.source.url} museum")
    spoil("museum")
    at.run("resourcesync audit museum")
    at.run("resourcesync audit museum --json")
    at.run("resourcesync status museum --check")
    at.run("resourcesync why museum objects/0003.txt")
    at.run("resourcesync repair museum")
    at.run("resourcesync repair museum --json")


@scene
def list_and_changes_and_trash(at: Scene) -> None:
    few = dict(list(FILES.items())[:3])
    at.source.offer(few)
    at.silently(f"resourcesync pull {at.source.url} museum")
    del few["/objects/0000.txt"]
    at.source.offer(few, at=LATER)
    at.silently("resourcesync pull museum")
    at.run("resourcesync changes museum --since start --json")
    at.run("resourcesync list museum --json")
    at.run("resourcesync list museum --csv")
    at.run("resourcesync trash list museum")
    at.run("resourcesync trash restore museum objects/0000.txt --json")
    at.run("resourcesync pull museum")


@scene
def publish_0(at: Scene) -> None:
    at.run("resourcesync publish public --url https://museum.example --dry-run")
    at.run("resourcesync publish public --url https://museum.example")
    at.run("resourcesync publish public")
    changed = Path("public/objects/0001.txt")
    changed.write_text("changed")
    os.utime(changed, (1_700_000_001, 1_700_000_001))
    Path("public/objects/0002.txt").unlink()
    at.run("resourcesync publish public")
    at.run("resourcesync publish public --json")


@scene
def publish_2(at: Scene) -> None:
    at.run("resourcesync publish public")
    at.run("resourcesync publish nowhere --url https://museum.example")


@scene
def validate_0_and_1(at: Scene) -> None:
    at.run(f"resourcesync validate {at.source.url}/resourcelist.xml")
    at.source.put_document(
        "/resourcelist.xml",
        '<rs:md capability="resourcelist" at="yesterday"/>',
        [at.source.entry("/a", b"a"), at.source.entry("/a", b"b")],
    )
    at.run(f"resourcesync validate {at.source.url}")
    at.run(f"resourcesync validate {at.source.url}/resourcelist.xml --json")
    at.run(f"resourcesync validate {at.source.url}/resourcelist.xml --format github")
    at.run("resourcesync validate nothing.xml")


@scene
def explore_0(at: Scene) -> None:
    at.run(f"resourcesync explore {at.source.url}")
    at.run(f"resourcesync explore {at.source.url} --json")
    at.run(f"resourcesync explore {at.source.url}/nothing.xml")


@scene
def why_1(at: Scene) -> None:
    at.source.answers["/objects/0003.txt"] = Answer(status=404)
    at.silently(f"resourcesync pull {at.source.url} museum")
    at.run("resourcesync why museum objects/0003.txt")
    at.run("resourcesync why museum objects/0001.txt --json")
    at.run("resourcesync why museum nothing.txt")
    at.run("resourcesync why unavailable")
    at.run("resourcesync why RS402")
    at.run("resourcesync why RS402 --json -q")
    at.run("resourcesync why ch05")
    at.refuse("why RS4o2", "why ''", "why nothing", "why ' '")


@scene
def catalogue_0(at: Scene) -> None:
    Path("lines").write_text('{"uri":"https://museum.example/a","length":3}\n')
    at.run("resourcesync catalogue import things.db lines --json")
    at.run("resourcesync publish catalogue:things.db --url https://museum.example --out out")
    at.run("resourcesync catalogue check things.db")
    Path("changes").write_text('{"uri":"https://museum.example/b","change":"created"}\n')
    at.run("resourcesync catalogue post posted.db changes --json")
    with Path("changes").open("a") as file:
        file.write('{"uri":"https://museum.example/a","change":"deleted"}\n')
    at.run("resourcesync catalogue post things.db changes")
    at.run("resourcesync publish catalogue:things.db --json")
    at.run("resourcesync publish catalogue:things.db")
    for name in ("resourcelist", "changelist"):
        uris = Path(f"out/resourcesync/{name}.xml").read_text().split("<loc>")[1:]
        at.note(f"{name}: {[uri.partition('<')[0] for uri in uris]}")


@scene
def results_in_json(at: Scene) -> None:
    at.silently(f"resourcesync pull {at.source.url} museum")
    at.silently("resourcesync publish public --url https://museum.example")
    Path("resourcesync.toml").write_text(
        f'[mirror.museum]\nsource = "{at.source.url}"\ndest = "museum"\n'
    )
    for command in (
        "trash list museum",
        "trash empty museum --all",
        "config check",
        "doctor museum",
    ):
        at.run(f"resourcesync {command} --json")
    at.run("resourcesync catalogue check public/.resourcesync/catalogue.db --json")
    at.run("resourcesync pull --all --json")


@scene
def config_and_doctor(at: Scene) -> None:
    table = f'[mirror.museum]\nsource = "{at.source.url}"\n'
    Path("resourcesync.toml").write_text(table)
    at.run("resourcesync config check")
    Path("resourcesync.toml").write_text(f'{table}dest = "museum"\n')
    at.run("resourcesync config show")
    at.run("resourcesync config check")
    at.silently("resourcesync pull museum")
    at.run("resourcesync doctor museum")
