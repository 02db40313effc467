"""One table of exit codes, and every error in it."""

import inspect
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from resourcesync import errors
from resourcesync.cli.exit_codes import ExitCode, exit_code_for, worst
from resourcesync.errors import ResourceSyncError

EXPECTED = {
    "ResourceSyncError": 70,
    "ConfigurationError": 2,
    "StoppedError": 130,
    "BudgetError": 10,
    "PatchError": 3,
    "DocumentError": 5,
    "MalformedDocumentError": 5,
    "TruncatedDocumentError": 5,
    "NotAListError": 5,
    "UnexpectedDocumentError": 5,
    "DocumentLimitError": 5,
    "PackageError": 5,
    "TruncatedPackageError": 5,
    "PackedMemberError": 3,
    "SourceError": 5,
    "SourceNotFoundError": 5,
    "SourceUnavailableError": 4,
    "BadResponseError": 5,
    "SourceRefusedError": 6,
    "ResourceMissingError": 5,
    "VerificationError": 3,
    "LengthMismatchError": 3,
    "DigestMismatchError": 3,
    "SyncError": 7,
    "DiscontinuityError": 7,
    "ChangesLostError": 7,
    "RollbackError": 7,
    "OutOfScopeError": 6,
    "StorageError": 8,
    "EngineError": 8,
    "DiskFullError": 8,
    "StateError": 8,
    "MirrorChangedError": 8,
    "OriginalChangedError": 3,
    "LockedError": 9,
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
    assert {name: exit_code_for(_of(kind)).value for name, kind in TREE.items()} == EXPECTED


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
