"""Clients that others wrote: how each is set up, and how it follows a Source once.

Nothing of them is part of the project. Each is installed or built in a folder of its own, from the
registries and repositories that the machine can reach; one that cannot be had is skipped, with the
reason. ``git`` gets the repositories: its ``url.….insteadOf`` leads to copies of them.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote, unquote, urlsplit

from tests.support.commands.run import environment

_PATIENCE: Final = 900
_PYTHON: Final = (
    "resync==2.0.1",
    "ultimate-sitemap-parser==1.8.1",
    "scrapy==2.19.0",
    "trafilatura==2.3.1",
    "lxml-html-clean==0.4.6",
)
_JAXB: Final = (
    ("javax.xml.bind", "jaxb-api", "2.3.1"),
    ("org.glassfish.jaxb", "jaxb-runtime", "2.3.1"),
    ("javax.annotation", "javax.annotation-api", "1.3.2"),
)
_AGGREGATOR: Final = ("EHRI/rs-aggregator", "85fd0d298879ac3861f41920904054f10f5f590f")
_GO: Final = ("nathj07/go-resourcesync", "90e0f2781041614f1dc1b88321d676ada360ebf7")
_RUBY: Final = (
    ("CDLUC3/resync", "f59a1f77f3c378180ee9ebcc42b325372f1e7a31"),
    ("CDLUC3/resync-client", "e621c9d0c8b8de436923359d6ad36f74c89bb2c2"),
    ("multi-io/xml-mapping", "c53cb36c2b1eebea290b9ff2c7077c3e84c20a48"),
    ("dmolesUC/typesafe_enum", "0.3.1"),
    ("dmolesUC/xml-mapping_extensions", "0.4.8"),
    ("bhuga/promising-future", "0.3.1"),
)
_ENTRY: Final = re.compile(r"Loc: (\S+) LastMod: (\S*)")

Seen = Mapping[str, str]
"""What a client has or reads: of copies, path to SHA-256; of entries, URI to lastmod or nothing."""


class SetupError(Exception):
    """A client cannot be had here."""


class Client(Protocol):
    """A client of a Source, with what it remembers in a folder."""

    name: str
    copies: bool

    def follow(self, base: str, home: Path, *, first: bool) -> Seen:
        """Follow a Source once; return what it has then."""


class ClientError(Exception):
    """A client ended with an error."""


def run_program(words: Sequence[str | Path], *, cwd: Path, **variables: str) -> str:
    """Run a program to its end; return what it printed."""
    kept = {name: text for name, text in os.environ.items() if name.startswith(("GIT_", "PIP_"))}
    cwd.mkdir(parents=True, exist_ok=True)
    try:
        ran = subprocess.run(
            [str(word) for word in words],
            cwd=cwd,
            env={**environment(Path.home()), **kept, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClientError(str(error)) from error
    said = (ran.stdout + ran.stderr).decode(errors="replace")
    if ran.returncode:
        last = [line.strip() for line in said.splitlines() if line.strip()][-1:]
        raise ClientError(f"{Path(words[0]).name} ended with {ran.returncode}: {' '.join(last)}")
    return said


def needs(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise SetupError(f"{program} is not installed")
    return found


def checkout(folder: Path, repository: tuple[str, str]) -> Path:
    """Return a repository's files at a commit or tag."""
    name, commit = repository
    place, git = folder / name.replace("/", "-"), needs("git")
    if not place.exists():
        address, half = f"https://github.com/{name}", folder / "half"
        shutil.rmtree(half, ignore_errors=True)
        try:
            run_program([git, "clone", "-q", address, half], cwd=folder, GIT_TERMINAL_PROMPT="0")
            run_program([git, "checkout", "-q", commit], cwd=half)
        except ClientError as error:
            raise SetupError(f"{name} cannot be fetched: {error}") from error
        half.rename(place)
    return place


def go_program(place: Path, folder: Path, code: str = "", *, of: str = "part") -> Path:
    """Build a command of a Go module: its own one, or one of ours that uses it."""
    program, go = place / f"{of}.built", needs("go")
    source = place / "cmd" / of / "main.go"
    if code and not (source.exists() and source.read_text() == code):
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(code)
        program.unlink(missing_ok=True)
    if not program.exists():
        words: list[str | Path] = [go, "build", "-o", program, f"./cmd/{of}"]
        try:
            run_program(words, cwd=place, GOCACHE=str(folder / "go-cache"))
        except ClientError as error:
            raise SetupError(f"Go cannot build it: {error}") from error
    return program


def _mended(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    if new not in text:
        path.write_text(text.replace(old, new))


def _copies(folder: Path) -> Seen:
    """Return the files below a folder: the path as it is at the Source, and the SHA-256."""
    return {
        unquote(path.relative_to(folder).as_posix()): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def python_of(folder: Path) -> Path:
    """Return the Python of an environment with the clients that are written in it."""
    found = Path(sys.executable) if sys.version_info < (3, 12) else Path(needs("python3.11"))
    place = folder / "python"
    python = place / "bin" / "python"
    if not (place / "complete").exists():
        try:
            run_program([found, "-m", "venv", place], cwd=folder)
            run_program([python, "-m", "pip", "install", "-q", *_PYTHON], cwd=folder)
        except ClientError as error:
            raise SetupError(f"pip cannot install them: {error}") from error
        (place / "complete").touch()
    return python


class Resync:
    """``resync-sync`` 2.0.1, the client of the standard's authors."""

    copies = True

    def __init__(self, folder: Path, *, incremental: bool = False) -> None:
        self.name = f"resync-sync --{'incremental' if incremental else 'baseline'}"
        self._program = python_of(folder).with_name("resync-sync")
        self._incremental = incremental

    def follow(self, base: str, home: Path, *, first: bool) -> Seen:
        """Read the Resource List; later, if so wished, the Change List."""
        copy = home / "copy"
        words = ["--baseline", "--delete"]
        if self._incremental and not first:
            words = ["--incremental", "--delete", "--changelist-uri"]
            words.append(f"{base}resourcesync/changelist.xml")
        said = run_program([self._program, *words, base, copy], cwd=home)
        for word in ("FatalError", "Traceback"):
            if word in said:
                raise ClientError(said[said.index(word) :][:200])
        return _copies(copy)


class Aggregator:
    """``rs-aggregator`` of EHRI, whose fork CORE gives to the customers of FastSync."""

    name = "rs-aggregator"
    copies = True

    def __init__(self, folder: Path) -> None:
        self._java, maven = needs("java"), needs("mvn")
        self._place = checkout(folder, _AGGREGATOR)
        path = self._place / "classpath.txt"
        if not path.exists():
            further = "".join(
                f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
                f"<version>{version}</version></dependency>"
                for group, artifact, version in _JAXB
            )
            _mended(self._place / "pom.xml", "    </dependencies>", f"{further}    </dependencies>")
            goals = ["compile", "dependency:build-classpath", f"-Dmdep.outputFile={path}.half"]
            try:
                run_program([maven, "-B", "-q", "-Dmaven.test.skip=true", *goals], cwd=self._place)
            except ClientError as error:
                raise SetupError(f"Maven cannot build it: {error}") from error
            Path(f"{path}.half").rename(path)
        self._path = f"{self._place / 'target' / 'classes'}{os.pathsep}{path.read_text().strip()}"

    def follow(self, base: str, home: Path, *, first: bool) -> Seen:
        """Run its job once."""
        if first:
            settings = home / "cfg"
            settings.mkdir(parents=True)
            own = (self._place / "cfg" / "syncapp-context.xml").read_text()
            head, _, _ = own.partition("<!-- Choose and configure a job-scheduler")
            job = "nl.knaw.dans.rs.aggregator.schedule.RunOnceScheduler"
            text = f'{head}<bean id="job-scheduler" class="{job}"/></beans>'
            (settings / "syncapp-context.xml").write_text(text)
            (settings / "uri-list.txt").write_text(f"{base}resourcesync/capabilitylist.xml\n")
        main = "nl.knaw.dans.rs.aggregator.main.SyncApp"
        run_program([self._java, "-cp", self._path, main], cwd=home)
        found = [path for path in home.rglob("__SOR__") if path.is_dir()]
        if len(found) != 1:
            raise ClientError(f"it has {len(found)} folders of resources")
        return _copies(found[0])


_READ_RUBY: Final = """
require 'digest'
require 'json'
require 'resync/client'
base, kind, place = ARGV
client = Resync::Client.new
source = client.get_and_parse(base + '.well-known/resourcesync')
capabilities = source.resource_for(capability: 'capabilitylist').get_and_parse
file = File.join(place, 'copies.json')
copies = File.exist?(file) ? JSON.parse(File.read(file)) : {}
if kind == 'resourcelist' || copies.empty?
  copies = {}
  entries = capabilities.resource_list.all_resources
else
  list = capabilities.change_list
  entries = list.respond_to?(:all_changes) ? list.all_changes : list.all_resources
end
entries.each do |entry|
  if entry.metadata.change == Resync::Types::Change::DELETED
    copies.delete(entry.uri.to_s)
    next
  end
  begin
    copies[entry.uri.to_s] = Digest::SHA256.hexdigest(entry.get)
  rescue StandardError
    copies.delete(entry.uri.to_s)
  end
end
File.write(file, JSON.generate(copies))
puts JSON.generate(copies)
"""


class RubyClient:
    """``resync-client`` of the California Digital Library.

    It is a library: a short program makes copies of what it reads, from the Resource List or, after
    the first time, from all changes that it finds.
    """

    copies = True

    def __init__(self, folder: Path, *, changes: bool = False) -> None:
        self._kind = "changelist" if changes else "resourcelist"
        self.name = f"resync-client (Ruby), {'changes' if changes else 'Resource List'}"
        self._ruby = needs("ruby")
        places = [checkout(folder, repository) for repository in _RUBY]
        # Ruby 3 refuses this path; what is meant stays the same.
        _mended(places[0] / "lib" / "resync" / "xml_parser.rb", "/*/[", "/*/*[")
        self._path = os.pathsep.join(str(place / "lib") for place in places)
        try:
            self._run("require 'resync/client'", cwd=folder)
        except ClientError as error:
            raise SetupError(f"{error} (it needs the gems mime-types and rubyzip)") from error

    def _run(self, text: str, *words: str, cwd: Path) -> str:
        return run_program([self._ruby, "-W0", "-e", text, *words], cwd=cwd, RUBYLIB=self._path)

    def follow(self, base: str, home: Path, *, first: bool) -> Seen:
        """Read a list, and fetch what it names."""
        del first
        said = self._run(_READ_RUBY, base, self._kind, str(home), cwd=home)
        copies: dict[str, str] = json.loads(said.splitlines()[-1])
        return {unquote(uri.removeprefix(base)): digest for uri, digest in copies.items()}


class GoReader:
    """``go-resourcesync``, made for customers of CORE FastSync; its tester prints what it reads."""

    name = "go-resourcesync"
    copies = False

    def __init__(self, folder: Path) -> None:
        self._program = go_program(checkout(folder, _GO), folder, of="resourcesynctester")

    def follow(self, base: str, home: Path, *, first: bool) -> Seen:
        """Read the Resource List, with its parts."""
        del first
        target = f"{base}resourcesync/resourcelist.xml"
        said = run_program([self._program, "-target", target, "-follow", "-verbose"], cwd=home)
        parts = re.compile(r"/resourcesync/[^/]*\.xml\Z")
        return {uri: time for uri, time in _ENTRY.findall(said) if not parts.search(uri)}


_READ_PYTHON: Final = {
    "ultimate-sitemap-parser": """
from usp.tree import sitemap_tree_for_homepage
for page in sitemap_tree_for_homepage(base).all_pages():
    found[page.url] = page.last_modified.isoformat() if page.last_modified else ""
""",
    "scrapy SitemapSpider": """
from scrapy.crawler import CrawlerProcess
from scrapy.spiders import SitemapSpider
class Spider(SitemapSpider):
    name = "reader"
    sitemap_urls = [base + "robots.txt"]
    def sitemap_filter(self, entries):
        for entry in entries:
            if entries.type == "urlset":
                found[entry["loc"]] = entry.get("lastmod", "")
            else:
                yield entry
process = CrawlerProcess({"LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False})
process.crawl(Spider)
process.start()
""",
    "trafilatura": """
from urllib.request import urlopen
from urllib.robotparser import RobotFileParser
from trafilatura.sitemaps import SitemapObject
robots = RobotFileParser(base + "robots.txt")
robots.read()
# It refuses loopback addresses: it is given what it would fetch, with another host in it.
host = "http://museum.example/"
sitemaps = [uri.replace(base, host) for uri in robots.site_maps() or []]
read = SitemapObject(host, "museum.example", sitemaps)
while read.sitemap_urls:
    read.current_url = read.sitemap_urls.pop()
    with urlopen(read.current_url.replace(host, base)) as answer:
        read.content = answer.read().decode().replace(base, host)
    read.process()
found.update((uri.replace(host, base), "") for uri in read.urls)
""",
}


class PythonReader:
    """A reader of plain sitemaps, which begins with ``robots.txt``."""

    copies = False

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._python = python_of(folder)

    def follow(self, base: str, home: Path, *, first: bool) -> Seen:
        """Read the sitemap."""
        del first
        text = f"import json, sys\nbase, found = sys.argv[1], {{}}\n{_READ_PYTHON[self.name]}"
        said = run_program(
            [self._python, "-c", f"{text}\nprint(json.dumps(found))", base], cwd=home
        )
        lines = [line for line in said.splitlines() if line.startswith("{")]
        if not lines:
            raise ClientError(said[-200:])
        found: dict[str, str] = json.loads(lines[-1])
        return found


READERS: Final = tuple(_READ_PYTHON)


def plain_uri(uri: str) -> str:
    """Return a URI in one form: readers decode and encode what is not ASCII in their own ways."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}{quote(unquote(parts.path))}"
