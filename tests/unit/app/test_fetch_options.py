"""What the operator's settings become in the fetcher."""

import pytest

from resourcesync.app.options import fetch_settings
from resourcesync.settings.network import Network


@pytest.mark.parametrize(("timeout", "deadline"), [(None, 60), (5, 60), (600, 1200)])
def test_who_waits_longer_for_an_answer_gives_a_body_more_time(
    timeout: float | None, deadline: float
) -> None:
    found = fetch_settings(Network(timeout=timeout), "https://museum.example/")

    assert found.deadline == deadline
