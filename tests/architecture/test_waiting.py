"""Tests wait for events: a fixed time is too long on a fast machine and too short on a busy one."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
WAITS: Final = {"time.sleep", "sleep", "threading.Timer", "Timer"}
ALLOWED: Final = {
    "tests/cli/test_cli_buckets.py": 1,
    "tests/cli/test_cli_publish.py": 1,
    "tests/cli/test_cli_publish_watch.py": 1,
    "tests/cli/test_cli_stopping.py": 4,
    "tests/cli/test_cli_watch.py": 1,
    "tests/journeys/test_library_keeping.py": 1,
    "tests/journeys/test_transfer_resume.py": 1,
    "tests/postgresql/test_killed_while_following.py": 1,
    "tests/server/test_server_guarding.py": 1,
    "tests/server/test_server_running.py": 1,
    "tests/support/cluster/unit_work.py": 2,
    "tests/support/crashes/killed.py": 1,
    "tests/unit/app/test_watched_publisher.py": 1,
    "tests/unit/http/test_http_streams.py": 1,
    "tests/unit/storage/test_files_measuring.py": 1,
    "tests/unit/storage/test_mirror_syncing.py": 1,
    "tests/watch/test_watch_keeping.py": 2,
    "tests/websub/test_websub_hub.py": 5,
}
"""Fixed waits that tests still have, with how many: less each time."""


def fixed_waits(node: ast.AST) -> Iterator[int]:
    """Yield the lines of waits that end at a fixed time; a loop looks for an event."""
    if isinstance(node, ast.While | ast.For):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) in WAITS:
        yield node.lineno
    for child in ast.iter_child_nodes(node):
        yield from fixed_waits(child)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("time.sleep(3)", [1]),
        ("while not is_here():\n    time.sleep(0.01)", []),
        ("threading.Timer(3, act).start()", [1]),
        ("for _ in range(99):\n    if is_here():\n        break\n    sleep(1)", []),
        ("clock.sleep(3); asyncio.sleep(3)", []),
    ],
)
def test_a_wait_that_looks_for_no_event_is_found(text: str, lines: list[int]) -> None:
    assert list(fixed_waits(ast.parse(text))) == lines


def test_tests_wait_for_events() -> None:
    texts = {path: path.read_text("utf-8") for path in sorted((ROOT / "tests").rglob("*.py"))}
    found = {
        path.relative_to(ROOT).as_posix(): len(list(fixed_waits(ast.parse(text))))
        for path, text in texts.items()
        if "sleep(" in text or "Timer(" in text
    }

    assert {name: count for name, count in found.items() if count} == ALLOWED
