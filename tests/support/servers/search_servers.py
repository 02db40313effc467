"""Real Elasticsearch and OpenSearch on loopback, and an emulator where no Java is.

Their runnable distributions come from Maven Central. No test waits for that: ``python3 -m
tests.support.servers.search_servers`` fetches them, with nothing but Python and Maven.
"""

import contextlib
import fcntl
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers.second_try import Program, started

_GIVEN_UP = 180.0
_MAVEN = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy"
_NOT_ROOT = "nobody"
_QUICK = (
    "-Xms384m -Xmx384m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Has a server start with less work: a few hundred documents do not pay for more."""


@dataclass(frozen=True)
class Distribution:
    """A server that Maven Central has, and what it needs."""

    name: str
    version: str
    group: str
    oldest_java: int
    variables: str
    settings: str
    given: str

    @property
    def home(self) -> Path:
        return _cache() / f"{self.name}-{self.version}"


ELASTICSEARCH = Distribution(
    "elasticsearch",
    "8.19.8",
    "org.elasticsearch.distribution.integ-test-zip",
    17,
    "ES",
    # The breaker would count garbage as memory in use, and answer 429 when much is written.
    "xpack.security.enabled: false\nindices.breaker.total.use_real_memory: false\n",
    "RS_TEST_ES_URL",
)
OPENSEARCH = Distribution(
    "opensearch",
    "3.4.0",
    "org.opensearch.distribution.integ-test-zip",
    21,
    "OPENSEARCH",
    "",
    "RS_TEST_OPENSEARCH_URL",
)


class NotHereError(Exception):
    """A server cannot be run on this machine; says why."""


def fetch(distribution: Distribution) -> Path:
    if distribution.home.is_dir():
        return distribution.home
    maven = shutil.which("mvn")
    if maven is None:
        raise NotHereError(f"no Maven to fetch {distribution.name} with")
    distribution.home.parent.mkdir(parents=True, exist_ok=True)
    with (
        (distribution.home.parent / f"{distribution.name}.lock").open("wb") as lock,
        tempfile.TemporaryDirectory(dir=distribution.home.parent) as folder,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)  # who comes second waits for the first
        if distribution.home.is_dir():
            return distribution.home
        artifact = f"{distribution.group}:{distribution.name}:{distribution.version}:zip"
        done = subprocess.run(
            [maven, "-q", "-B", _MAVEN, f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        found = list(Path(folder).glob("*.zip"))
        if done.returncode or not found:
            raise NotHereError(f"{artifact} cannot be fetched: {done.stdout[-300:]}")
        unpacked = Path(folder, distribution.home.name)
        shutil.unpack_archive(found[0], folder)
        for path in [unpacked, *unpacked.rglob("*")]:  # another user than we will run it
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
        unpacked.rename(distribution.home)
    return distribution.home


@contextlib.contextmanager
def running(distribution: Distribution) -> Iterator[str]:
    given = os.environ.get(distribution.given)
    if given:
        yield given.rstrip("/")
        return
    java = _java(distribution.oldest_java)
    home = fetch(distribution)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield from _run(distribution, java, home, Path(folder))


def _run(distribution: Distribution, java: Path, home: Path, folder: Path) -> Iterator[str]:
    words = distribution.variables
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        f"{words}_JAVA_HOME": str(java),
        f"{words}_JAVA_OPTS": _QUICK,
        f"{words}_PATH_CONF": str(folder / "config"),
        f"{words}_TMPDIR": str(folder / "tmp"),
    }
    setpriv = shutil.which("setpriv")
    # It ends with us, however we end.
    before = [setpriv, "--pdeathsig", "TERM"] if setpriv else []

    def command(ports: Mapping[str, int]) -> list[str | Path]:
        _configure(distribution, home, folder, ports)
        return [*before, home / "bin" / distribution.name]

    with started(
        command,
        folder / "output",
        ready=lambda found: _answers(_address(found)),
        names=("http", "transport"),
        seconds=_GIVEN_UP,
        env=environment,
        cwd=folder,
        user=_NOT_ROOT if os.getuid() == 0 else None,
        extra_groups=[] if os.getuid() == 0 else None,
    ) as found:
        yield _address(found)


def _address(found: Program) -> str:
    return f"http://127.0.0.1:{found.ports['http']}"


@contextlib.contextmanager
def emulating() -> Iterator[str]:
    from osmem_server import resolve_binary

    server = subprocess.Popen(
        [resolve_binary(), "-addr", "127.0.0.1:0", "-no-ja", "-parent-pid", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with server:
        try:
            assert server.stdout is not None
            url: str = json.loads(server.stdout.readline())["url"]
            yield url
        finally:
            server.terminate()


@contextlib.contextmanager
def any_server() -> Iterator[tuple[str, bool]]:
    for distribution in (ELASTICSEARCH, OPENSEARCH):
        given = os.environ.get(distribution.given)
        if given:
            yield given.rstrip("/"), distribution is OPENSEARCH
            return
    with emulating() as url:
        yield url, True


def version_of(url: str) -> str:
    with urllib.request.urlopen(f"{url}/_nodes/_local", timeout=30) as answer:
        (node,) = json.load(answer)["nodes"].values()
    version: str = node["version"]
    return version


def _cache() -> Path:
    """Return a folder that outlasts a run, and that another user than root can read."""
    if os.getuid() == 0:
        return Path("/var/cache/resourcesync-tests")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "resourcesync-tests")


def _java(oldest: int) -> Path:
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    homes += sorted(Path("/usr/lib/jvm").glob("*"))
    found = shutil.which("java")
    if found:
        homes.append(Path(found).resolve().parent.parent)
    known = {version: home for home in homes if (version := _java_version(home)) >= oldest}
    if not known:
        raise NotHereError(f"no Java {oldest} or newer")
    return known[min(known)]


def _java_version(home: Path) -> int:
    try:
        text = (home / "release").read_text()
    except OSError:
        return 0
    match = re.search(r'JAVA_VERSION="(\d+)', text)
    return int(match[1]) if match and (home / "bin/java").exists() else 0


def _configure(
    distribution: Distribution, home: Path, folder: Path, ports: Mapping[str, int]
) -> None:
    shutil.copytree(home / "config", folder / "config", dirs_exist_ok=True)
    options = folder / "config/jvm.options"
    lines = options.read_text().splitlines()
    kept = (line for line in lines if "gc.log" not in line and "G1" not in line)
    options.write_text("\n".join(kept))
    (folder / f"config/{distribution.name}.yml").write_text(
        f"path.data: {folder}/data\npath.logs: {folder}/logs\n"
        f"network.host: 127.0.0.1\nhttp.port: {ports['http']}\n"
        f"transport.port: {ports['transport']}\n"
        "discovery.type: single-node\ncluster.routing.allocation.disk.threshold_enabled: false\n"
        + distribution.settings
    )
    for name in ("data", "logs", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    if os.getuid() == 0:
        user = pwd.getpwnam(_NOT_ROOT)
        for place in [folder, *folder.rglob("*")]:
            os.chown(place, user.pw_uid, user.pw_gid)


def _answers(url: str) -> bool:
    try:
        version_of(url)
    except (OSError, urllib.error.URLError, ValueError):
        return False
    return True


if __name__ == "__main__":
    for one in (ELASTICSEARCH, OPENSEARCH):
        try:
            print(f"{one.name} {one.version}: {fetch(one)}")
        except NotHereError as error:
            print(f"{one.name} {one.version}: {error}", file=sys.stderr)
