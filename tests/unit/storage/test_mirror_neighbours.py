"""What new paths would meet in a mirror's state, found by indexes as by reading all of it."""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resourcesync.mirror_state.database import SqliteMirrorState, conflicting_paths
from resourcesync.mirror_state.rows import Copy, Pending, PendingTask, StateTransaction

BASE = "http://source.example/"
PATHS = st.lists(st.sampled_from(["a", "b", "a.b", "a0", "a!9"]), min_size=1, max_size=3).map(
    "/".join
)
NAMED = st.dictionaries(PATHS, st.tuples(PATHS, st.booleans()), max_size=8)


def rows(named: dict[str, tuple[str, bool]]) -> tuple[list[Copy], list[Pending]]:
    """Copies and tasks: of each the end of its URI, its path, and whether the path is that end."""
    copies, tasks = [], []
    for number, (tail, (other, is_plain)) in enumerate(sorted(named.items())):
        uri = f"{BASE}{tail}"
        is_end = uri.endswith(other)  # no mapping gives a path that is only a part of that end
        path = tail if is_plain or is_end else other
        if number % 3:
            copies.append(Copy(uri, path, 3, "sha-256:x", "", None, "", "", "s", "weak", 5))
        else:
            row = Pending(
                uri, uri, path, PendingTask.FETCH, "", None, None, "404", "gone", 1, 0, 1, 2, 1
            )
            tasks.append(row)
    return copies, tasks


def meets(found: Iterable[tuple[str, str]], paths: list[str]) -> tuple[object, object]:
    """What has a path or is a folder of one; and which paths something is below of."""
    pairs = set(found)
    exact = {*paths, *(str(folder) for path in paths for folder in PurePosixPath(path).parents)}
    at = {pair for pair in pairs if pair[1] in exact}
    return at, {name for name in paths if any(path.startswith(f"{name}/") for _, path in pairs)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(named=NAMED, paths=st.lists(PATHS, max_size=4))
def test_what_is_looked_up_is_what_reading_all_finds(
    tmp_path: Path, named: dict[str, tuple[str, bool]], paths: list[str]
) -> None:
    copies, tasks = rows(named)
    everything = [(copy.uri, copy.path) for copy in copies] + [
        (task.uri, task.path) for task in tasks
    ]
    (tmp_path / "s").unlink(missing_ok=True)
    with SqliteMirrorState(tmp_path / "s") as state:
        state.commit(StateTransaction(installed=copies, pending=tasks, now=1))

        found = list(state.path_conflicts(BASE, paths, None))

    assert meets(found, paths) == meets(conflicting_paths(everything, paths, str), paths)
    assert set(found) <= set(everything)
