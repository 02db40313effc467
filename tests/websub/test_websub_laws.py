"""What holds of signatures, leases, allowances and forms, whatever comes."""

import string
from urllib.parse import urlsplit

from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.model.timestamps import SECOND
from resourcesync.push_state.rows import SubscriptionIntent
from resourcesync.websub import messages
from resourcesync.websub.hub import RateLimiter, is_notification
from resourcesync.websub.messages import METHODS, HubMode, MonotonicTime, is_signed, sign
from resourcesync.websub.verification import verification_uri
from tests.support.servers.hubs import TOPIC

few = settings(max_examples=30)
bodies = st.binary(max_size=200)
secrets = st.binary(min_size=1, max_size=199)
methods = st.sampled_from(METHODS)


@few
@given(secret=secrets, body=bodies, method=methods, data=st.data())
def test_a_body_is_signed_by_its_own_signature_and_a_change_of_anything_breaks_it(
    secret: bytes, body: bytes, method: str, data: st.DataObject
) -> None:
    value = sign(secret, body, method)
    assert is_signed(secret, body, [value])
    at = data.draw(st.integers(0, len(value) - 1))
    other = data.draw(st.characters().filter(lambda name: name != value[at]))
    assert not is_signed(secret, body, [value[:at] + other + value[at + 1 :]])
    assert not is_signed(secret, body + b"x", [value])
    assert not is_signed(secret + b"x", body, [value])
    assert not is_signed(secret, body, [value, value])


@few
@given(text=st.text(max_size=20) | st.integers().map(str))
def test_a_lease_of_any_text_is_within_its_bounds(text: str) -> None:
    seconds = messages.parse_seconds(text)
    assert not seconds or (text.isascii() and int(text) == seconds)
    assert messages.SHORTEST_LEASE <= messages.bounded_lease(seconds) <= messages.LONGEST_LEASE


@few
@given(attempts=st.integers(0, 10_000), chance=st.floats(0.0, 1.0))
def test_a_delay_grows_and_never_over_its_bound(attempts: int, chance: float) -> None:
    found = messages.retry_delay(attempts, chance)
    assert 0.5 <= found <= 3_600.0
    assert found <= messages.retry_delay(attempts + 2, chance)


@few
@given(steps=st.lists(st.tuples(st.integers(-(10**9), 10**9), st.floats(0.0, 1e4)), max_size=20))
def test_time_for_leases_never_goes_back(steps: list[tuple[int, float]]) -> None:
    wall, elapsed = 10**12, 5.0
    time = MonotonicTime(wall, elapsed, latest=wall + 77)
    last = time.at(wall, elapsed)
    assert last == wall + 77
    for jump, passed in steps:
        wall, elapsed = wall + jump, elapsed + passed
        now = time.at(wall, elapsed)
        assert now >= wall
        assert now - 10**12 - 77 >= int((elapsed - 5.0) * SECOND) - 1
        last = max(last, now)


@few
@given(most=st.integers(1, 20), gaps=st.lists(st.floats(0.0, 30.0), min_size=1, max_size=100))
def test_an_allowance_is_never_exceeded(most: int, gaps: list[float]) -> None:
    allowance = RateLimiter(most)
    now, begin, granted = 100.0, 100.0, 0
    for gap in gaps:
        now += gap
        granted += allowance.acquire("one", now)
        assert granted <= most + (now - begin) * most / 60 + 1e-6
    assert allowance.acquire("other", now)


def test_an_allowance_forgets_who_asked_longest_ago() -> None:
    allowance = RateLimiter(1)
    for number in range(10_001):
        assert allowance.acquire(str(number), 0.0)
    assert allowance.acquire("0", 0.0)
    assert not allowance.acquire("10000", 0.0)


words = st.text(string.ascii_letters + string.digits + "-._~/", max_size=20)
callbacks = st.builds(
    lambda host, path, query: (
        f"https://{host or 'h'}.example/{path}" + (f"?{query}" if query else "")
    ),
    st.text(string.ascii_lowercase, max_size=10),
    words,
    st.text(string.ascii_letters + "=&%?", max_size=20),
)


@few
@given(callback=callbacks, secret=st.text(string.printable[:95], min_size=1, max_size=150))
def test_a_request_is_read_as_it_was_written(callback: str, secret: str) -> None:
    fields = messages.read_fields(messages.subscription_form(TOPIC, callback, secret))
    assert fields is not None
    assert messages.read_subscription_request(fields) == SubscriptionIntent(
        mode=HubMode.SUBSCRIBE,
        topic=TOPIC,
        callback=callback,
        secret=secret.encode(),
        lease=messages.DEFAULT_LEASE,
    )


@few
@given(callback=callbacks, challenge=words)
def test_a_question_keeps_the_callback_and_is_understood(callback: str, challenge: str) -> None:
    intent = SubscriptionIntent(
        mode=HubMode.SUBSCRIBE, topic=TOPIC, callback=callback, secret=b"", lease=4_000
    )
    uri = verification_uri(intent, challenge)
    assert uri.startswith(callback + ("&" if "?" in callback else "?"))
    fields = messages.read_fields(uri[len(callback) + 1 :].encode())
    assert fields == {
        "hub.mode": "subscribe",
        "hub.topic": TOPIC,
        "hub.challenge": challenge,
        "hub.lease_seconds": "4000",
    }
    assert urlsplit(uri).netloc == urlsplit(callback).netloc


@few
@given(raw=st.binary(max_size=300))
def test_any_bytes_are_a_form_or_none(raw: bytes) -> None:
    fields = messages.read_fields(raw)
    if fields is not None:
        messages.read_subscription_request(fields)
    assert not is_notification(raw)
