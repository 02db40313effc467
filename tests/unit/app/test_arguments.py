"""A word or a number that a public call does not know is refused before anything is done."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync import AuditRolling, Catalogue, Mirror
from resourcesync.errors import ConfigurationError


@pytest.mark.parametrize("word", ["increm", "Baseline", "", None, 1])
def test_a_pull_is_only_in_a_mode_that_there_is(tmp_path: Path, word: Any) -> None:
    mirror = Mirror("http://127.0.0.1:9/", tmp_path / "copy")

    with pytest.raises(ConfigurationError, match="must be one of auto, baseline") as refused:
        mirror.pull(mode=word)

    assert refused.value.hint == "use one of auto, baseline"
    assert not mirror.folder.exists()


@pytest.mark.parametrize("word", ["sha256", "HASH", "remote ", None])
def test_an_audit_is_only_by_a_method_that_there_is(tmp_path: Path, word: Any) -> None:
    with pytest.raises(ConfigurationError, match="must be one of lists, stat, hash, remote"):
        Mirror(None, tmp_path).audit(method=word)


@pytest.mark.parametrize("after", [-1, "7", 1.5])
def test_changes_are_read_after_a_number(tmp_path: Path, after: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"^after={after!r}: Expected `int`"):
        Catalogue(tmp_path / "a.db").changes(after)


@pytest.mark.parametrize("share", [0, -1, -0.1, 1.1, 50, float("nan")])
def test_the_share_of_a_rolling_audit_is_some_part_of_all(share: float) -> None:
    with pytest.raises(ConfigurationError, match="must be a number above 0 and at most 1"):
        AuditRolling(share=share)


def test_a_rolling_audit_has_no_time_less_than_nothing() -> None:
    with pytest.raises(ConfigurationError, match="seconds=-1 must not be less than 0"):
        AuditRolling(seconds=-1)
