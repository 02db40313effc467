"""Findings, one after the other."""

from resourcesync.validator.rule import RULES, RuleFinding, by_place


def finding(line: int, column: int = 1) -> RuleFinding:
    return RuleFinding(rule=RULES["G12"], uri="list.xml", message="m", line=line, column=column)


def test_findings_are_told_from_the_top_to_the_bottom() -> None:
    told = [finding(6), finding(9, 7), finding(9, 3), finding(4)]

    assert [(finding.line, finding.column) for finding in by_place(told)] == [
        (4, 1),
        (6, 1),
        (9, 3),
        (9, 7),
    ]


def test_findings_at_one_place_keep_their_order_and_none_is_lost_of_many() -> None:
    told = [finding(7) for _ in range(3)] + [finding(line) for line in range(5_000, 0, -1)]

    given = list(by_place(told))

    assert len(given) == len(told)
    assert sorted(given, key=id) == sorted(told, key=id)
    assert [finding for finding in given if any(finding is first for first in told[:3])] == told[:3]
