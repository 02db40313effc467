"""The edge: help, mistakes, errors and crashes. What a process really does."""

import inspect
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync import __version__, errors
from resourcesync.cli import crash, main
from resourcesync.cli.exit_codes import ExitCode, exit_code_for, worst
from resourcesync.cli.output import CommandOutcome, Screen
from resourcesync.errors import LockedError, ResourceSyncError
from tests.support.commands.run import environment, program
from tests.support.commands.started import python

HEAVY = ("pycurl", "starlette", "uvicorn", "rich", "sqlite3", "protego", "asyncio", "msgspec")


@pytest.mark.parametrize("arguments", [[], ["-h"]])
def test_the_first_screen_has_five_commands_and_names_the_others_on_24_lines(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments) == 0

    said = capsys.readouterr().out
    lines = said.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 24
    explained = [name for name, text in main.COMMANDS.items() if f"\n{name:<12}{text}\n" in said]
    assert sorted(explained) == sorted(main.FIRST)
    for name in main.COMMANDS:
        assert re.search(rf"\b{name}\b", said)


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_option_of_every_command_is_explained(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    context = click.Context(main.cli, auto_envvar_prefix="RESOURCESYNC")
    found = main.cli.get_command(context, name)
    assert found is not None

    assert main.run([name, "--help"]) == 0

    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 100
    options = [param for param in found.params if isinstance(param, click.Option)]
    assert all(option.help and option.help.endswith(".") for option in options)


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from resourcesync.cli.main import run; code = run(sys.argv[1:]);"
        "print([m for m in sys.modules]); sys.exit(code)"
    )

    for arguments in (["--help"], ["pull", "--help"], ["serve", "--help"], ["demo", "--help"]):
        ran = python(code, *arguments, home=tmp_path, measured=False)
        modules = set(eval(ran.stdout.splitlines()[-1]))
        assert ran.returncode == 0
        assert "click" in modules
        # The settings that a command's options are made from are structs of msgspec.
        own = set() if arguments == ["--help"] else {"msgspec"}
        assert modules & set(HEAVY) - own == set(), arguments


def test_a_mistake_is_told_in_json_when_the_environment_asks_for_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESOURCESYNC_PULL_JSON", "1")

    assert main.run(["pull", "--mode", "sideways", "http://h/"]) == 2

    said = capsys.readouterr()
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert [row["type"] for row in rows] == ["run.start", "error", "run.end"]
    assert (rows[0]["command"], rows[-1]["exit"], said.err) == ("pull", 2, "")


def test_the_package_runs_as_a_module(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "resourcesync", "--version")

    ran = program(*command, env=environment(tmp_path))

    assert (ran.code, ran.stdout) == (0, f"resourcesync {__version__}\n")


def test_a_traceback_is_shown_for_debugging_only(
    with_job: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def work(_screen: Screen) -> CommandOutcome:
        raise LockedError("held")

    with_job(work)
    main.run(["demo"])
    assert "Traceback" not in capsys.readouterr().err

    monkeypatch.setenv("RESOURCESYNC_DEBUG", "1")
    main.run(["demo"])
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("json_too", [False, True])
def test_a_fault_of_ours_leaves_a_report_and_exits_70(
    with_job: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    json_too: bool,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with_job(lambda _screen: 1 // 0, json=json_too)

    assert main.run(["demo"]) == 70

    said = capsys.readouterr()
    (report,) = tmp_path.rglob("crash-*.txt")
    text = report.read_text("utf-8")
    for words in ("ZeroDivisionError", "Traceback", "command: demo"):
        assert words in text
    assert str(report) in said.out + said.err
    assert "Traceback" not in said.out + said.err
    if json_too:
        rows = [json.loads(line) for line in said.out.splitlines()]
        assert [row["type"] for row in rows] == ["run.start", "error", "run.end"]
        assert rows[-1]["exit"] == 70
        assert said.err == ""


def test_a_crash_in_a_real_process_leaves_its_report_with_the_user(tmp_path: Path) -> None:
    code = (
        "import resourcesync.app.mirror_home as m, resourcesync.cli.main as main\n"
        "m.is_mirror = lambda folder: 1 // 0\n"
        "main.main()"
    )

    ran = python(code, "audit", "x", home=tmp_path)

    (report,) = (tmp_path / ".local/state/resourcesync/crashes").iterdir()
    assert ran.returncode == 70
    assert ran.stderr.splitlines()[0].startswith("error[bug]: ")
    assert f"  report  {report}" in ran.stderr.splitlines()
    assert ran.stderr.endswith("exit 70\n")


def test_a_crash_report_goes_where_it_can_and_is_told_if_it_can_go_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked, temporary = tmp_path / "file", tmp_path / "tmp"
    blocked.write_text("")
    temporary.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))

    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    problem = crash.write_crash_report(ValueError("x"), ["pull"])
    (report,) = temporary.iterdir()
    assert ("report", str(report)) in problem.evidence

    monkeypatch.setattr("tempfile.tempdir", str(blocked))
    problem = crash.write_crash_report(ValueError("x"), [])
    assert dict(problem.evidence)["report"].startswith("could not be written")
    assert problem.exit is ExitCode.BUG


EXPECTED = {
    2: "ConfigurationError",
    3: "PatchError PackedMemberError VerificationError LengthMismatchError DigestMismatchError"
    " OriginalChangedError",
    4: "SourceUnavailableError",
    5: "DocumentError MalformedDocumentError TruncatedDocumentError NotAListError"
    " UnexpectedDocumentError DocumentLimitError PackageError TruncatedPackageError SourceError"
    " SourceNotFoundError BadResponseError ResourceMissingError",
    6: "SourceRefusedError OutOfScopeError",
    7: "SyncError DiscontinuityError ChangesLostError RollbackError",
    8: "StorageError EngineError DiskFullError TemporaryDiskFullError StateError"
    " MirrorChangedError",
    9: "LockedError",
    10: "BudgetError",
    70: "ResourceSyncError",
    130: "StoppedError",
}
TREE = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, ResourceSyncError)
}
ORDER = re.compile(r"the worst one, in this order: ([\d, ]+)\.")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md"
SEVERAL = st.lists(st.sampled_from(ExitCode), min_size=1)


def _of(kind: type[ResourceSyncError]) -> ResourceSyncError:
    given_now = {"uri": "http://h/", "expected": "1", "actual": "2"}
    wanted = inspect.signature(kind).parameters
    return kind("what happened", **{k: v for k, v in given_now.items() if k in wanted})  # type: ignore[arg-type]  # each class has its own


def test_every_error_of_the_tree_has_its_exit_code() -> None:
    found = {name: exit_code_for(_of(kind)).value for name, kind in TREE.items()}

    assert found == {name: code for code, names in EXPECTED.items() for name in names.split()}


@given(SEVERAL, SEVERAL)
def test_worst_does_not_depend_on_order_or_grouping(
    item: list[ExitCode], other: list[ExitCode]
) -> None:
    assert worst([*item, *other]) is worst([*other, *item]) is worst([worst(item), worst(other)])
    assert worst(item) in item


def test_the_documented_order_of_codes_is_that_of_several_mirrors() -> None:
    [order] = ORDER.findall(PAGE.read_text("utf-8"))
    codes = [ExitCode(int(code)) for code in order.split(", ")]

    assert sorted(codes) == sorted(ExitCode)
    assert all(worst(codes[place:]) is code for place, code in enumerate(codes))
