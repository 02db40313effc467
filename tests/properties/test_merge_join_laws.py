"""The laws of ``compare``: what every other part relies on."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.merge_join import Created, Deleted, Same, UnorderedAccountError, Updated, compare


@dataclass(frozen=True)
class Told:
    uri: str
    content: int = 0


accounts = st.dictionaries(st.text("abcé/.-", max_size=4), st.integers(0, 2), max_size=12)


def account(content: dict[str, int]) -> list[Told]:
    return [Told(uri, content[uri]) for uri in sorted(content)]


def equal(told: Told, other: Told) -> bool:
    return told.content == other.content


@given(accounts, accounts)
def test_applying_the_differences_to_the_first_account_gives_the_second(
    before: dict[str, int], after: dict[str, int]
) -> None:
    result = dict(before)

    for difference in compare(account(before), account(after), same=equal):
        match difference:
            case Created(told) | Updated(_, told):
                result[told.uri] = told.content
            case Deleted(told):
                del result[told.uri]
            case Same(left, right):
                assert left == right

    assert result == after


@given(accounts, accounts)
def test_each_uri_of_either_account_is_told_of_once_and_in_order(
    before: dict[str, int], after: dict[str, int]
) -> None:
    uris = []
    for difference in compare(account(before), account(after), same=equal):
        match difference:
            case Created(told) | Deleted(told):
                uris.append(told.uri)
            case Updated(told, _) | Same(told, _):
                uris.append(told.uri)

    assert uris == sorted({*before, *after})


@given(accounts)
def test_an_account_compared_with_itself_is_all_the_same(content: dict[str, int]) -> None:
    differences = list(compare(account(content), account(content), same=equal))

    assert len(differences) == len(content)
    assert all(isinstance(difference, Same) for difference in differences)


@pytest.mark.parametrize("wrong", [["b", "a"], ["a", "a"]])
def test_an_account_out_of_order_is_refused_on_either_side(wrong: list[str]) -> None:
    told = [Told(uri) for uri in wrong]

    with pytest.raises(UnorderedAccountError):
        list(compare(told, [], same=equal))
    with pytest.raises(UnorderedAccountError):
        list(compare([], told, same=equal))
