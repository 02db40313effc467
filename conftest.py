"""How the suite runs: the same cases every day, in memory, without the settings of the machine."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

# Who wants no compiled files beside the sources gets them in the cache of pytest: else every worker
# compiles all tests again, and every program that a test starts the whole package.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    os.environ["PYTHONPYCACHEPREFIX"] = str(Path(__file__).with_name(".pytest_cache") / "compiled")
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"]
    sys.dont_write_bytecode = False

from hypothesis import HealthCheck, settings

COVERAGE = None
if os.environ.get("TESTS_COVERAGE"):  # its counter costs 50 ms, and Python 3.15 has none
    # Before all that imports the package: lines are counted from their first execution on.
    from tests.support import line_coverage

    COVERAGE = line_coverage.plugin()

from tests.support.servers.object_server import bucket, object_server  # noqa: E402 - what is above

__all__ = ["bucket", "object_server"]

# The checks of ports are no modules of tests by their names.
pytest.register_assert_rewrite("tests.contracts")

# No deadline: two busy cores say nothing of how fast a case is. The cases are the same every day,
# so many of them find nothing new: whoever changes a thing looks deeper.
settings.register_profile(
    "everyday", max_examples=50, derandomize=True, deadline=None, print_blob=True
)
settings.register_profile(
    "deep", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("everyday")

# A shell that starts the suite in the background has it ignore Ctrl-C, and every program that a
# test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Whom the machine trusts is none of our business, and every run would read the whole list.
os.environ.pop("SSL_CERT_FILE", None)

# Nor is the proxy of the machine: every Source of a test is on loopback.
for kind in ("http", "https", "all", "no"):
    os.environ.pop(f"{kind}_proxy", None)
    os.environ.pop(f"{kind}_proxy".upper(), None)

# Thousands of small stores are synced to the disk: let it be memory where there is enough.
MEMORY = Path("/dev/shm")
ROOM = 2 * 1024**3
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    os.environ.setdefault("TMPDIR", str(MEMORY))
    if not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:  # some of what is put there is run
        tempfile.tempdir = None  # pytest asked before us, and the answer is kept
        tempfile.gettempdir()  # and now: else it would be the folder of the first test that asks


def pytest_configure(config: pytest.Config) -> None:
    """Count lines, if that is wanted."""
    if COVERAGE is not None:
        config.pluginmanager.register(COVERAGE, "line_coverage")
    asked = getattr(config, "workerinput", None)
    if asked is not None and config.args_source is config.ArgsSource.TESTPATHS:
        config.args = turned(config.args, int(asked["workerid"][2:]), asked["workercount"])


def turned(roots: list[str], turn: int, turns: int) -> list[str]:
    """Let each worker begin with another part: what one has compiled the others find done."""
    files = sorted(path for root in roots for path in Path(root).rglob("test_*.py"))
    folders = [str(path.parent) for path in files]
    at = len(files) * turn // turns
    return list(dict.fromkeys(folders[at:] + folders[:at]))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the tests of all workers into one order."""
    items.sort(key=lambda item: item.path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run two workers more than there are processors: many tests wait for other programs."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage among what the tests make only: ten thousand tests live to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def without_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: a process that is killed loses nothing that it wrote."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()
