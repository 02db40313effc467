"""What a Resource List takes the place of, and what a run leaves that cannot write one."""

from resourcesync.source.plan import PublicationPlan, Span, SupersededList, supersede
from tests.support.worlds.network import BASE

PLAN = PublicationPlan(
    base_uri=BASE,
    documents_uri=BASE,
    at=20,
    monitored_since=20,
    number=1,
    closed=(),
    open=Span(after=0, last=0, start=0, reached=0),
    superseded=(SupersededList(at=5, since=10), SupersededList(at=10, since=20, name="kept.xml")),
)
FORMER = SupersededList(at=20, since=90, name="own.xml")


def test_a_list_that_was_forgotten_and_still_stands_is_held_again() -> None:
    assert supersede(PLAN, 20, FORMER, 7).superseded[-1] == SupersededList(at=7, since=90)
