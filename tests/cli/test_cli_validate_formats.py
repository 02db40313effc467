"""``validate --format``: what other programs read."""

import re

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.cli.render.validate import encode_event, render_github
from resourcesync.validator.rule import RULES, RuleFinding

TEXTS = st.text(max_size=40)
FINDINGS = st.builds(
    RuleFinding,
    rule=st.sampled_from(list(RULES.values())),
    uri=TEXTS,
    message=TEXTS,
    line=st.integers(0, 3),
    column=st.integers(0, 30),
    length=st.integers(0, 30),
    excerpt=TEXTS,
    excerpt_column=st.integers(0, 30),
)


@given(FINDINGS)
def test_a_command_is_one_line_whatever_a_document_holds(finding: RuleFinding) -> None:
    (line,) = render_github(*encode_event(finding))
    command = line.text

    assert "\n" not in command
    assert "\r" not in command
    head, _, _ = command[2:].partition("::")
    assert re.fullmatch(
        r"(error|warning|notice) file=[^,:\n]*(,(line|col|endColumn)=\d+)*"
        r",title=RS\d+",
        head,
    )
